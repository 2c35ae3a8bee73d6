//! Envelopes and parameters that are wrong, and those that only look it.

use std::collections::BTreeSet;

use chorus_proto::PROTOCOL;
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use serde_json::{Value, json};

use crate::home;

#[test]
fn an_unknown_method_is_named_as_such() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    for method in ["context.appendd", "", "rpc.discover", "Hello", "context.append\u{0}"] {
        let answer = raw.call(method, json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    raw.check_hello();
}

#[test]
fn a_newer_protocol_is_refused_with_both_numbers_and_others_are_served() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    let ask = |protocol: u32| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"hello","protocol":{protocol}}}"#);
    for newer in [PROTOCOL + 1, u32::MAX] {
        let answer = raw.exchange(ask(newer));
        assert_eq!(answer["error"]["data"]["kind"], "unsupported", "{answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(&newer.to_string()) && message.contains(&PROTOCOL.to_string()), "{message}");
    }
    for served in [PROTOCOL, PROTOCOL - 1] {
        assert_eq!(raw.exchange(ask(served))["result"]["protocol"], PROTOCOL);
    }
}

#[test]
fn envelopes_that_are_no_requests_are_refused() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    let bad = [
        "null",
        "[]",
        "7",
        r#""hello""#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"hello"}]"#,
        "{}",
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"hello"}"#,
        r#"{"id":1,"method":"hello"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"hello","method":"status"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"hello","protocol":-1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"hello","protocol":"1"}"#,
    ];
    for body in bad {
        let answer = raw.exchange(body);
        let code = answer["error"]["code"].as_i64().expect("an error");
        assert_eq!(code, -32600, "{body}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
        assert!(answer.get("id").is_some(), "an answer has an id, null where none can be told: {answer}");
    }
    raw.check_hello();
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    for (method, params, word) in [
        ("agent.init", json!({}), "name"),
        ("agent.init", json!({"name": 7}), ""),
        ("agent.init", json!({"name": "a", "colour": "red"}), "colour"),
        ("agent.init", json!(["a"]), ""),
        ("context.append", json!({"text": "a", "role": "robot"}), "robot"),
        ("context.append", json!({"messages": [{"content": "a", "contents": "b"}]}), "contents"),
        ("context.show", json!({"last": -1}), ""),
        ("context.show", json!({"last": 1.5}), ""),
        ("session.get", json!({}), "session"),
    ] {
        let answer = raw.call(method, params.clone());
        assert_eq!(answer["error"]["code"], -32602, "{method} {params}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(word), "{message}");
    }
    let duplicate = raw.exchange(r#"{"jsonrpc":"2.0","id":1,"method":"agent.init","params":{"name":"a","name":"b"}}"#);
    assert!(duplicate["error"].is_object(), "two values for one key: {duplicate}");
    assert_eq!(raw.call("agent.list", json!({}))["result"]["agents"], json!([]), "nothing was made");
}

#[test]
fn requests_overlap_and_each_answer_carries_its_id() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    let ids: Vec<Value> = (0..100).map(|n| if n % 2 == 0 { json!(n) } else { json!(format!("id-{n}")) }).collect();
    for id in &ids {
        raw.send_frame(json!({"jsonrpc": "2.0", "id": id, "method": "hello"}).to_string());
    }
    let answered: BTreeSet<String> = ids.iter().map(|_| raw.receive_json()["id"].to_string()).collect();
    assert_eq!(answered, ids.iter().map(Value::to_string).collect());
}

#[test]
fn requests_that_come_together_are_answered_whole_and_once_each() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    raw.call("agent.init", json!({"name": "long"}));
    let text = "as long as a socket's buffer ".repeat(8_000);
    raw.call("context.append", json!({"agent": "long", "text": text}));
    let request = |id: u32| match id % 3 {
        0 => {
            json!({"jsonrpc": "2.0", "id": id, "method": "context.append", "params": {"agent": "a", "text": id.to_string()}})
        }
        1 => json!({"jsonrpc": "2.0", "id": id, "method": "context.show", "params": {"agent": "long"}}),
        _ => json!({"jsonrpc": "2.0", "id": id, "method": "hello"}),
    };
    let bytes: Vec<u8> = (0..300)
        .map(|id| request(id).to_string().into_bytes())
        .flat_map(|body| [u32::try_from(body.len()).expect("a length").to_be_bytes().to_vec(), body].concat())
        .collect();
    raw.send_bytes(&bytes);
    let mut left: BTreeSet<u64> = (0..300).collect();
    while !left.is_empty() {
        let answer = raw.receive_json();
        let id = answer["id"].as_u64().expect("a number");
        assert!(left.remove(&id), "{id} was answered twice");
        match id % 3 {
            0 => assert_eq!(answer["result"]["appended"], 1, "{answer}"),
            1 => assert_eq!(answer["result"]["messages"][0]["content"], text.as_str()),
            _ => assert!(answer["result"].is_object(), "{answer}"),
        }
    }
    assert_eq!(daemon.client().message_texts("a").len(), 100);
}

#[test]
fn null_is_an_id_and_an_error_has_the_id_of_what_is_no_request() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    let answer = raw.exchange(r#"{"jsonrpc":"2.0","id":null,"method":"hello"}"#);
    assert!(answer["result"].is_object() && answer.get("id") == Some(&Value::Null), "{answer}");
    for (body, id) in [
        (r#"{"id":7,"method":"hello"}"#, json!(7)),
        (r#"{"jsonrpc":"1.0","id":"a","method":"hello"}"#, json!("a")),
        (r#"{"jsonrpc":"2.0","id":8}"#, json!(8)),
        (r#"{"jsonrpc":"2.0","id":9,"method":"hello","extra":1}"#, json!(9)),
        (r#"{"id":null,"method":"hello"}"#, Value::Null),
        (r#"{"id":[1],"method":"hello"}"#, Value::Null),
        (r#"{"method":"hello"}"#, Value::Null),
    ] {
        let answer = raw.exchange(body);
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &id), "{body}: {answer}");
    }
    raw.check_hello();
}

#[test]
fn an_id_that_is_used_twice_is_answered_twice() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.send_frame(r#"{"jsonrpc":"2.0","id":7,"method":"hello"}"#);
    raw.send_frame(r#"{"jsonrpc":"2.0","id":7,"method":"nonsense"}"#);
    let answers = [raw.receive_json(), raw.receive_json()];
    assert!(answers.iter().all(|answer| answer["id"] == 7));
    assert!(answers.iter().any(|answer| answer["result"].is_object()), "{answers:?}");
    assert!(answers.iter().any(|answer| answer["error"]["code"] == -32601), "{answers:?}");
}

#[test]
fn a_notification_is_carried_out_and_not_answered() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    raw.send_frame(r#"{"jsonrpc":"2.0","method":"context.append","params":{"agent":"a","text":"by notification"}}"#);
    raw.send_frame(r#"{"jsonrpc":"2.0","method":"nonsense"}"#);
    let shown = raw.call("context.show", json!({"agent": "a"}));
    assert_eq!(shown["id"], 1, "the first answer is the one to the request: {shown}");
    chorus_tests::wait_until("the notification to be carried out", chorus_tests::DEADLINE, || {
        let shown = raw.call("context.show", json!({"agent": "a"}));
        (shown["result"]["messages"][0]["content"] == "by notification").then_some(())
    });
}
