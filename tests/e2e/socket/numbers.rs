//! Numbers at and past the edges.

use chorus_tests::Daemon;
use serde_json::{Value, json};

use crate::home;

#[test]
fn numbers_out_of_range_are_refused() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    for number in ["1e400", "-1", "18446744073709551616", "1.5", "1e1000000000", "-9223372036854775809"] {
        for key in ["last", "offset", "limit"] {
            let answer = raw.exchange(format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"context.show","params":{{"agent":"a","{key}":{number}}}}}"#
            ));
            let code = answer["error"]["code"].as_i64().expect("an error");
            // The parser itself refuses what no f64 can hold.
            let expected = if number.contains('e') { -32700 } else { -32602 };
            assert_eq!(code, expected, "{key} {number}: {answer}");
        }
    }
    raw.check_hello();
}

#[test]
fn large_numbers_within_range_mean_what_they_say() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    raw.call("context.append", json!({"agent": "a", "text": "one"}));
    raw.call("context.append", json!({"agent": "a", "text": "two"}));
    raw.call("context.save", json!({"agent": "a"}));
    for number in ["9223372036854775807", "9223372036854775808", "18446744073709551615"] {
        for (method, params, expected) in [
            ("context.show", format!(r#""last":{number}"#), 2),
            ("context.show", format!(r#""limit":{number}"#), 2),
            ("context.show", format!(r#""offset":{number}"#), 0),
            ("session.get", format!(r#""session":"latest","limit":{number}"#), 2),
            ("session.get", format!(r#""session":"latest","offset":{number}"#), 0),
        ] {
            let answer = raw.exchange(format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"agent":"a",{params}}}}}"#
            ));
            let found = answer["result"]["messages"].as_array().map(Vec::len);
            assert_eq!(found, Some(expected), "{method} {params}: {answer}");
        }
        let page = raw.exchange(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"context.history","params":{{"agent":"a","page":{number}}}}}"#
        ));
        assert_eq!(page["result"]["sessions"], json!([]), "{page}");
    }
    raw.check_hello();
}

#[test]
fn an_id_comes_back_as_it_was_written() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    for id in ["9223372036854775808", "1e400", "-7", "1.0", "\"\"", "\"\\u00e9\"", "12345678901234567890123"] {
        raw.send_frame(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"hello"}}"#));
        let answer = String::from_utf8(raw.receive().expect("an answer")).expect("UTF-8");
        assert!(answer.contains(&format!(r#""id":{id}"#)), "{id}: {answer}");
    }
}

/// Tool arguments are kept digit for digit, whatever a float would make of them.
#[test]
fn numbers_in_tool_arguments_are_kept_digit_for_digit() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    let params = r#"{"a":1.10,"b":1e400,"c":12345678901234567890123,"d":-0,"a":2,"e":1E+2,"f":{ "g" : [] }}"#;
    let answer = raw.exchange(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"context.append","params":{{"agent":"a","messages":[{{"role":"assistant","content":"","tool_calls":[{{"id":"c","name":"t","params":{params}}}]}}]}}}}"#
    ));
    assert_eq!(answer["result"]["appended"], 1, "{answer}");
    let mut shown = || {
        raw.send_frame(r#"{"jsonrpc":"2.0","id":1,"method":"context.show","params":{"agent":"a"}}"#);
        String::from_utf8(raw.receive().expect("an answer")).expect("UTF-8")
    };
    assert!(shown().contains(params), "{}", shown());
    let mut other = daemon.raw_connection();
    other.call("context.save", json!({"agent": "a", "clear": true}));
    other.call("context.restore", json!({"agent": "a", "session": "latest"}));
    assert!(shown().contains(params), "after a restore: {}", shown());
}

#[test]
fn no_number_is_told_as_a_disk_that_fails() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut raw = daemon.raw_connection();
    raw.call("agent.init", json!({"name": "a"}));
    raw.call("context.append", json!({"agent": "a", "text": "one"}));
    raw.call("context.save", json!({"agent": "a"}));
    // Each integer that a request may have, as the published schema has them.
    let schema = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).expect("the schema")).expect("JSON");
    let of = |value: &Value| match value["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        Some(name) => schema["$defs"][name].clone(),
        None => value.clone(),
    };
    let fit = json!({
        "agent": "a", "name": "a", "session": "latest", "a": "latest", "b": "latest", "id": "latest", "text": "x",
        "data": "", "data_base64": "", "format": "markdown", "query": "x", "key": "model", "model": "x/y", "file": "x",
    });
    let mut asked = 0;
    for (method, about) in schema["methods"].as_object().expect("methods") {
        if method.starts_with("daemon.") {
            continue;
        }
        let params = of(&about["params"]);
        let required: Vec<&str> =
            params["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let is_integer = |value: &Value| value["type"] == "integer" || value["type"] == json!(["integer", "null"]);
        for (key, _) in params["properties"].as_object().into_iter().flatten().filter(|(_, value)| is_integer(value)) {
            for number in [u64::MAX, 1 << 63, (1 << 63) - 1, u64::MAX / 2 + 2, 0] {
                let mut given = json!({ key: number });
                for key in required.iter().chain(["agent"].iter()).filter(|wanted| *wanted != key) {
                    if params["properties"].get(key).is_some() {
                        given[*key] = fit.get(key).cloned().unwrap_or_else(|| json!(1));
                    }
                }
                let answer = raw.call(method, given.clone());
                if method == "events.subscribe" {
                    // From here on that connection tells events.
                    raw = daemon.raw_connection();
                }
                let kind = answer["error"]["data"]["kind"].as_str().unwrap_or_default();
                assert!(!["storage_failed", "internal"].contains(&kind), "{method} {given}: {answer}");
                asked += 1;
            }
        }
    }
    assert!(asked > 60, "the schema has integers: {asked}");
    for session in ["latest~18446744073709551615", "latest~9223372036854775808", "latest~9223372036854775807"] {
        let answer = raw.call("session.get", json!({"agent": "a", "session": session}));
        assert_eq!(answer["error"]["data"]["kind"], "session_not_found", "{answer}");
    }
    raw.check_hello();
    assert!(!daemon.read_log().contains("panicked"), "{}", daemon.read_log());
}
