//! Text at the edges of what JSON and Unicode allow: refused, or kept exactly.

use chorus_tests::Daemon;
use serde_json::{Value, json};

use crate::home;

/// Sends a message whose content is the JSON string `literal`, and gives the answer.
fn append(raw: &mut chorus_tests::RawConnection, literal: &str) -> Value {
    raw.exchange(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"context.append","params":{{"agent":"a","text":{literal}}}}}"#
    ))
}

#[test]
fn lone_surrogates_are_refused() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    for literal in [r#""\ud800""#, r#""\udc00\ud800""#, r#""a\ud83d""#, r#""\ud800\u0041""#] {
        let answer = append(&mut raw, literal);
        let code = answer["error"]["code"].as_i64().expect("an error");
        assert_eq!(code, -32700, "{literal}: {answer}");
    }
    assert_eq!(raw.call("context.show", json!({"agent": "a"}))["result"]["messages"], json!([]));
}

#[test]
fn strange_text_is_kept_exactly_through_a_save_and_a_restore() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    let texts = [
        "NUL \u{0} inside".to_owned(),
        "\u{1f3b6} pair \u{10ffff} last \u{feff} mark".to_owned(),
        "\u{202e}right to left\u{202c} \u{2028} \u{2029} \u{85}".to_owned(),
        "\r\n\t\u{7f}\u{1b}[31mred\u{1b}[0m".to_owned(),
        "\\ \" / </script> \\u0041".to_owned(),
        "e\u{301} and \u{e9}, not made the same".to_owned(),
        " ".repeat(100_000),
    ];
    for text in &texts {
        let answer = append(&mut raw, &json!(text).to_string());
        assert_eq!(answer["result"]["appended"], 1, "{answer}");
    }
    let contents = |shown: &Value| -> Vec<String> {
        let messages = shown["result"]["messages"].as_array().expect("messages");
        messages.iter().map(|message| message["content"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(contents(&raw.call("context.show", json!({"agent": "a"}))), texts);
    assert_eq!(raw.call("context.save", json!({"agent": "a", "clear": true}))["result"]["cleared"], true);
    raw.call("context.restore", json!({"agent": "a", "session": "latest"}));
    assert_eq!(contents(&raw.call("context.show", json!({"agent": "a"}))), texts);
}

/// Deeper than most parsers go: whichever the daemon does, it does whole.
#[test]
fn deep_nesting_is_refused_or_kept() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for place in [
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"hello","params":{}}}"#, deep(200)),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"agent.init","params":{{"name":{}}}}}"#, deep(200)),
        deep(200),
        deep(1_000_000),
    ] {
        assert!(raw.exchange(place)["error"].is_object());
    }
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"context.append","params":{{"agent":"a","messages":[{{"role":"assistant","content":"x","tool_calls":[{{"id":"c","name":"t","params":{}}}]}}]}}}}"#,
        deep(200)
    );
    if raw.exchange(call)["result"]["appended"] == 1 {
        raw.send_frame(r#"{"jsonrpc":"2.0","id":1,"method":"context.save","params":{"agent":"a","clear":true}}"#);
        let saved = String::from_utf8(raw.receive().expect("an answer")).expect("UTF-8");
        assert!(saved.contains(r#""cleared":true"#), "{saved}");
        raw.send_frame(
            r#"{"jsonrpc":"2.0","id":1,"method":"context.restore","params":{"agent":"a","session":"latest"}}"#,
        );
        raw.receive().expect("an answer");
        raw.send_frame(r#"{"jsonrpc":"2.0","id":1,"method":"context.show","params":{"agent":"a"}}"#);
        let shown = String::from_utf8(raw.receive().expect("an answer")).expect("UTF-8");
        assert!(shown.contains(&deep(200)), "what was taken came back changed: {shown}");
    }
    daemon.assert_alive();
}
