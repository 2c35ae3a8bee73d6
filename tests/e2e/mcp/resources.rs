//! Saved conversations as resources.

use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::daemon::Daemon;
use serde_json::json;

use super::McpClient;
use crate::home;

#[test]
fn sessions_of_all_agents_are_listed_in_pages() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("docs");
    client.init("api");
    for number in 0..30 {
        for agent in ["docs", "api"] {
            client.append(agent, &format!("topic {number}"));
            client.save(agent, &format!("{agent} {number}"));
        }
    }
    let mut mcp = McpClient::start(&home, &["mcp"]);
    let first = mcp.request("resources/list", json!({})).expect("resources");
    let resources = first["resources"].as_array().expect("resources");
    assert_eq!((resources.len(), &first["nextCursor"]), (50, &json!("2")));
    let newest = &resources[0];
    assert!(newest["uri"].as_str().is_some_and(|uri| uri.starts_with("chorus://session/")), "{newest}");
    assert_eq!((&newest["title"], &newest["mimeType"]), (&json!("api 29"), &json!("text/markdown")));
    let second = mcp.request("resources/list", json!({"cursor": "2"})).expect("resources");
    assert_eq!((second["resources"].as_array().map(Vec::len), &second["nextCursor"]), (Some(10), &json!(null)));
    for cursor in ["0", "x", "-1"] {
        assert_eq!(mcp.request("resources/list", json!({"cursor": cursor})).expect_err("no page")["code"], -32602);
    }
    let mut one = McpClient::start(&home, &["--agent", "docs", "mcp"]);
    let listed = one.request("resources/list", json!({})).expect("resources");
    assert_eq!(listed["resources"].as_array().map(Vec::len), Some(30));
    let templates = mcp.request("resources/templates/list", json!({})).expect("templates");
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "chorus://session/{id}");
}

#[test]
fn a_resource_is_markdown_in_parts() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("docs");
    let lines: String = (0..40_000).map(|number| format!("line {number} é\n")).collect();
    client.append_all(
        "docs",
        vec![NewMessage::text(Role::User, "Which port?"), NewMessage::text(Role::Assistant, lines)],
    );
    let session = client.save("docs", "ports").header;
    let mut mcp = McpClient::start(&home, &["mcp"]);
    let mut uri = format!("chorus://session/{}", session.id);
    let (mut text, mut parts) = (String::new(), 0);
    loop {
        let read = mcp.request("resources/read", json!({"uri": uri})).expect("the resource");
        let contents = &read["contents"][0];
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!("text/markdown")));
        let part = contents["text"].as_str().expect("text");
        assert!(part.len() < 300_000, "{}", part.len());
        parts += 1;
        let Some((before, next)) = part.split_once("\n\n[continues at ") else {
            text.push_str(part);
            break;
        };
        text.push_str(before);
        text.push('\n');
        uri = next.trim_end().trim_end_matches(']').to_owned();
    }
    assert!(parts > 1 && text.contains("Which port?"), "{parts}");
    for number in [9_000, 17_000, 39_999] {
        assert_eq!(text.matches(&format!("line {number} é")).count(), 1, "{number}");
    }
    for (uri, code) in [
        ("chorus://session/1f3a9c02-0000-4000-8000-000000000000", -32002),
        ("file:///etc/passwd", -32002),
        ("chorus://session/latest", -32002),
        (&*format!("chorus://session/{}?offset=99999999", session.id), -32602),
    ] {
        let refused = mcp.request("resources/read", json!({"uri": uri})).expect_err("no resource");
        assert_eq!(refused["code"], code, "{uri}: {refused}");
    }
}
