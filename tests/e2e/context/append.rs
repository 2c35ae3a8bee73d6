//! `context append`: kept exactly, all of it or none.

use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::{ErrorKind, NewMessage, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::home;

fn message(value: Value) -> NewMessage {
    serde_json::from_value(value).expect("a message")
}

#[test]
fn what_the_sender_leaves_out_is_filled_in() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let before = jiff::Timestamp::now();
    client.append("a", "hello");
    let shown = client.messages("a");
    let id: Uuid = shown[0].id.parse().expect("a UUID");
    assert_eq!(id.get_version_num(), 7);
    assert!(shown[0].timestamp >= before - jiff::SignedDuration::from_secs(1));
    assert!(shown[0].timestamp <= jiff::Timestamp::now());
    assert_eq!(shown[0].role, Role::User);
}

#[test]
fn every_field_of_a_message_is_kept() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/golden/v1");
    let names = ["user", "assistant", "tool_result", "system", "generated", "plain"];
    let texts: Vec<String> = names
        .iter()
        .map(|name| std::fs::read_to_string(golden.join(format!("message.{name}.json"))).expect("a golden message"))
        .collect();
    let messages = texts.iter().map(|text| serde_json::from_str(text).expect("a message")).collect();
    client.append_all("a", messages);
    client.save("a", "all of it");
    client.restore("a", "latest");
    let shown: Vec<String> =
        client.messages("a").iter().map(|m| serde_json::to_string(m).expect("serialises")).collect();
    assert_eq!(shown, texts.iter().map(|text| text.trim_end()).collect::<Vec<_>>());
}

#[test]
fn one_bad_message_keeps_all_out() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    let good = json!({"role": "user", "content": "good"});
    for bad in [
        json!({"role": "robot", "content": "bad"}),
        json!({"role": "user", "content": 7}),
        json!({"role": "user", "content": "bad", "timestamp": "yesterday"}),
        json!({"role": "user", "content": "bad", "colour": "red"}),
        json!("bad"),
    ] {
        let params = json!({"agent": "a", "messages": [good, bad, good]});
        let answer = raw.call("context.append", params);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(raw.call("context.show", json!({"agent": "a"}))["result"]["messages"], json!([]));
}

#[test]
fn it_is_either_a_text_or_messages() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let neither = AppendParams { agent: Some("a".into()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Append>(&neither)), ErrorKind::InvalidParams);
    let both = AppendParams { text: Some("x".into()), messages: vec![message(json!({"content": "y"}))], ..neither };
    assert_eq!(expect_error_kind(client.call::<Append>(&both)), ErrorKind::InvalidParams);
    assert_eq!(client.message_texts("a"), Vec::<String>::new());
}

#[test]
fn the_command_line_takes_a_text_standard_input_or_lines_of_json() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    chorusctl(&home, ["context", "append", "as an argument"]).expect_success();
    chorusctl_with(&home, ["context", "append", "-"], b"on standard input\n").expect_success();
    chorusctl(&home, ["context", "append", "--role", "assistant", "an answer"]).expect_success();
    let lines = "{\"role\":\"user\",\"content\":\"line one\"}\n\n{\"role\":\"assistant\",\"content\":\"line two\"}\n";
    let answer = chorusctl_with(&home, ["--json", "context", "append", "--jsonl"], lines.as_bytes()).expect_json();
    assert_eq!(answer, json!({"appended": 2, "messages": 5, "secrets_found": 0}));
    let said = chorusctl_with(&home, ["context", "append", "--jsonl"], b"{\"content\":\"good\"}\n{\"content\":7}\n");
    assert!(said.expect_failure(2).contains('2'), "it names the line: {}", said.stderr);
    let texts = client.message_texts("a");
    assert_eq!(texts.len(), 5, "all or nothing");
    assert_eq!(texts[0], "as an argument");
    assert_eq!(texts[1].trim_end(), "on standard input");
    assert_eq!(client.messages("a")[2].role, Role::Assistant);
}

#[test]
fn the_same_key_adds_once_from_the_command_line_too() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let add = || chorusctl(&home, ["--json", "context", "append", "--key", "k", "once"]).expect_json();
    assert_eq!(add(), add());
    assert_eq!(daemon.client().message_texts("a"), ["once"]);
}

#[test]
fn messages_as_large_as_a_frame_allows_are_kept() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let text = "\u{e9}".repeat(7 * 1024 * 1024);
    client.append("a", &text);
    client.append("a", "small");
    assert!(client.message_texts("a") == [text, "small".to_owned()]);
}

#[test]
fn an_agent_that_is_not_there_is_not_found() {
    let home = home();
    let daemon = Daemon::start(&home);
    let params = AppendParams { agent: Some("nobody".into()), text: Some("x".into()), ..Default::default() };
    assert_eq!(expect_error_kind(daemon.client().call::<Append>(&params)), ErrorKind::AgentNotFound);
    let params = AppendParams { agent: None, ..params };
    assert_eq!(expect_error_kind(daemon.client().call::<Append>(&params)), ErrorKind::NoAgent);
}

#[test]
fn a_message_that_says_nothing_is_a_usage_error_and_adds_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    for args in
        [&["context", "append", ""][..], &["context", "append"], &["context", "append", "--role", "assistant", ""]]
    {
        chorusctl(&home, args).expect_failure_with_hint(2);
    }
    chorusctl_with(&home, ["context", "append", "--jsonl"], br#"{"role":"user","content":""}"#)
        .expect_failure_with_hint(2);
    chorusctl(&home, ["send", ""]).expect_failure_with_hint(2);
    for silent in [json!({"content": ""}), json!({"role": "system"}), json!({"role": "assistant", "content": ""})] {
        let messages = vec![message(json!({"content": "said"})), message(silent.clone())];
        let params = AppendParams { agent: Some("a".into()), messages, ..Default::default() };
        assert_eq!(expect_error_kind(client.call::<Append>(&params)), ErrorKind::InvalidParams, "{silent}");
    }
    let text = AppendParams { agent: Some("a".into()), text: Some(String::new()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Append>(&text)), ErrorKind::InvalidParams);
    assert!(client.message_texts("a").is_empty());
    // A call says something, and a tool may have nothing to say.
    let call = json!({"role": "assistant", "tool_calls": [{"id": "c", "name": "t", "params": {}}]});
    let result = json!({"role": "tool_result", "tool_call_id": "c", "content": ""});
    assert_eq!(client.append_all("a", vec![message(call), message(result)]), 2);
}
