//! Versions, errors of the protocol, and the life of the server.

use chorus_tests::ctl::{chorusctl, chorusctl_with};
use chorus_tests::daemon::Daemon;
use chorus_tests::process::{is_running, peak_rss};
use chorus_tests::wait::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::McpClient;
use super::client::VERSION;
use crate::home;

#[test]
fn every_version_with_initialize_is_negotiated() {
    let home = home();
    for version in [VERSION, "2025-06-18", "2025-03-26", "2024-11-05"] {
        let mut client = McpClient::spawn(&home, &["mcp"]);
        let result = client.initialize(version);
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "chorus");
        assert!(result["capabilities"]["tools"].is_object() && result["capabilities"]["resources"].is_object());
        assert!(result["instructions"].as_str().is_some_and(|text| text.contains("search")), "{result}");
        let tools = client.request("tools/list", json!({})).expect("tools");
        assert!(tools["tools"].as_array().is_some_and(|tools| tools.len() == 4), "{tools}");
        let (status, said, rest) = client.close();
        assert!(status.success() && said.is_empty() && rest.is_empty(), "{said}{rest:?}");
    }
    let unknown = McpClient::spawn(&home, &["mcp"]).initialize("2019-01-01");
    assert_eq!(unknown["protocolVersion"], VERSION, "a version that is not known gets the newest");
    // Nothing of this needed the daemon.
    assert_eq!(home.running_pid(), None);
}

#[test]
fn the_stateless_version_needs_no_initialize() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = McpClient::spawn(&home, &["mcp"]);
    client.meta = Some(json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }));
    let found = client.request("server/discover", json!({})).expect("what it is");
    let versions = found["supportedVersions"].as_array().expect("versions");
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!(VERSION)), "{found}");
    let tools = client.request("tools/list", json!({})).expect("tools");
    assert_eq!((&tools["resultType"], &tools["tools"][0]["name"]), (&json!("complete"), &json!("search")));
    let text = client.text_of("list", json!({}));
    assert!(text.starts_with("0 conversations"), "{text}");
    client.meta = None;
    let refused = client.request("tools/list", json!({})).expect_err("every request says its version");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("_meta")), "{refused}");
    drop(daemon);
}

#[test]
fn mistakes_of_a_client_are_answered_and_end_nothing() {
    let home = home();
    let mut client = McpClient::start(&home, &["mcp"]);
    client.send_line("{\"jsonrpc\": \"2.0\", \"id\": 7, ");
    client.send_line("");
    client.send_line("\u{1}\u{2}");
    client.send_line("[]");
    let answer = client.receive();
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null), "{answer}");
    let unknown = client.request("tools/call", json!({"name": "format_disk", "arguments": {}})).expect_err("unknown");
    assert_eq!((&unknown["code"], &unknown["message"]), (&json!(-32602), &json!("unknown tool: format_disk")));
    assert_eq!(client.request("no/such", json!({})).expect_err("unknown")["code"], -32601);
    assert!(client.request("tools/call", json!({"arguments": {}})).is_err());
    let wrong = client.call("search", json!({"query": "x", "colour": 1})).expect_err("an unknown argument");
    assert!(
        wrong.contains("invalid arguments for `search`: unknown field `colour`") && wrong.contains("hint: "),
        "{wrong}"
    );
    let wrong = client.call("search", json!({})).expect_err("a missing argument");
    assert!(wrong.contains("missing field `query`"), "{wrong}");
    let wrong = client.call("show", json!({"from": "one"})).expect_err("a wrong type");
    assert!(wrong.contains("invalid type"), "{wrong}");
    assert_eq!(client.request("ping", json!({})), Ok(json!({})));
    let (status, said, rest) = client.close();
    assert!(status.success() && said.is_empty() && rest.is_empty(), "{said}{rest:?}");
}

#[test]
fn huge_input_is_refused_without_filling_memory() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = McpClient::start(&home, &["mcp"]);
    let long = "word ".repeat(4 << 20);
    let refused = client.call("search", json!({"query": long})).expect_err("no query is 20 MB long");
    assert!(refused.starts_with("error: "), "{refused}");
    // Without an end, and longer than any message can be: it is not kept.
    let before = peak_rss(client.pid());
    let piece = vec![b' '; 1 << 20];
    for _ in 0..200 {
        client.send_bytes(&piece);
    }
    client.send_line("");
    assert_eq!(client.request("ping", json!({})), Ok(json!({})));
    let grown = peak_rss(client.pid()).saturating_sub(before);
    assert!(grown < 150 << 20, "it grew by {} MB", grown >> 20);
    drop(daemon);
}

#[test]
fn the_end_of_the_input_ends_the_server_in_the_middle_of_anything() {
    let home = home();
    let daemon = Daemon::start(&home);
    // Half a message.
    let mut client = McpClient::start(&home, &["mcp"]);
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\"");
    let (status, said, rest) = client.close();
    assert!(status.success() && said.is_empty() && rest.is_empty(), "{said}{rest:?}");
    // Requests that are not answered yet are answered.
    let mut client = McpClient::start(&home, &["mcp"]);
    let ids: Vec<u64> = (0..30).map(|_| client.begin("tools/call", json!({"name": "list"}))).collect();
    let (status, said, rest) = client.close();
    assert!(status.success() && said.is_empty(), "{said}");
    let answers = rest.iter().map(|line| serde_json::from_str::<Value>(line).expect("a message"));
    let mut answered: Vec<u64> = answers.map(|answer| answer["id"].as_u64().expect("an id")).collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
    // Before anything was said.
    let (status, said, rest) = McpClient::spawn(&home, &["mcp"]).close();
    assert!(status.success() && said.is_empty() && rest.is_empty(), "{said}{rest:?}");
    drop(daemon);
}

#[test]
fn the_daemon_is_started_for_the_first_call_and_again_if_it_is_gone() {
    let home = home();
    let mut client = McpClient::start(&home, &["mcp"]);
    assert_eq!(home.running_pid(), None, "nothing needed it yet");
    assert!(client.text_of("list", json!({})).starts_with("0 conversations"));
    let pid = home.running_pid().expect("it was started");
    chorusctl(&home, ["daemon", "stop"]).expect_success();
    wait_until("the daemon to end", DEADLINE, || (!is_running(pid)).then_some(()));
    assert!(client.text_of("list", json!({})).starts_with("0 conversations"));
    assert!(home.running_pid().is_some_and(|now| now != pid), "another one was started");
    let (status, said, _) = client.close();
    assert!(status.success() && said.is_empty(), "{said}");
    assert!(home.running_pid().is_some(), "it outlives the server");
    chorusctl(&home, ["daemon", "stop"]).expect_success();
}

#[test]
fn without_a_daemon_a_call_fails_and_the_next_one_tries_again() {
    let home = home();
    let mut client = McpClient::start(&home, &["--no-autostart", "mcp"]);
    let refused = client.call("list", json!({})).expect_err("no daemon");
    assert!(refused.starts_with("error: no daemon running (") && refused.contains("\nhint: "), "{refused}");
    assert!(refused.contains("chorusctl daemon start"), "{refused}");
    let daemon = Daemon::start(&home);
    assert!(client.text_of("list", json!({})).starts_with("0 conversations"));
    daemon.kill9();
    assert!(client.call("list", json!({})).is_err());
    let _daemon = Daemon::start(&home);
    assert!(client.text_of("list", json!({})).starts_with("0 conversations"));
}

#[test]
fn a_configuration_that_cannot_be_used_is_reported_by_the_call() {
    let home = home();
    home.write_config("nonsense = 1\n");
    let mut client = McpClient::start(&home, &["mcp"]);
    let refused = client.call("list", json!({})).expect_err("no daemon starts");
    assert!(refused.contains("nonsense") && refused.contains("\nhint: "), "{refused}");
    let (status, said, _) = client.close();
    assert!(status.success() && said.is_empty(), "{said}");
}

#[test]
fn whoever_does_not_speak_the_protocol_gets_an_error_on_standard_error() {
    let home = home();
    let said = chorusctl_with(&home, ["mcp"], b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    assert!(said.expect_failure_with_hint(2).contains("Model Context Protocol"), "{}", said.stderr);
}
