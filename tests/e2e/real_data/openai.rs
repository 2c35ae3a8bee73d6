//! tau-bench and SWE-agent: lists of OpenAI chat messages.

use std::fs;
use std::path::Path;

use chorus_proto::methods::import::ImportFormat;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::import::import_transcript;
use chorus_tests::{Daemon, real_data};
use serde_json::Value;

use super::reading::{Said, of_chorus};
use crate::home;

/// Reads a list of chat messages, as plainly as can be.
fn expected(path: &Path) -> Vec<Said> {
    let list: Vec<Value> = serde_json::from_slice(&fs::read(path).expect("the file")).expect("a list");
    let said = |entry: &Value| {
        let calls = entry["tool_calls"].as_array().cloned().unwrap_or_default();
        let role = entry["role"].as_str().expect("a role");
        Said {
            role: if role == "tool" { "tool_result" } else { role }.to_owned(),
            text: entry["content"].as_str().unwrap_or_default().to_owned(),
            calls: calls
                .iter()
                .map(|call| {
                    let text = |value: &Value| value.as_str().expect("text").to_owned();
                    let function = &call["function"];
                    let arguments = serde_json::from_str(function["arguments"].as_str().expect("text")).expect("JSON");
                    (text(&call["id"]), text(&function["name"]), arguments)
                })
                .collect(),
            answers: entry["tool_call_id"].as_str().map(Into::into),
        }
    };
    list.iter().map(said).collect()
}

#[test]
fn every_conversation_comes_in_survives_a_crash_and_comes_back() {
    let Some(folder) = real_data::data_dir() else { return };
    let paths = [
        real_data::files_with_extension(&folder.join("tau-bench"), "json"),
        real_data::files_with_extension(&folder.join("swe-agent"), "json"),
    ]
    .concat();
    assert!(paths.len() >= 119, "{} conversations", paths.len());
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut sessions = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(path).expect("the file");
        let result = import_transcript(&mut client, "a", ImportFormat::Auto, &text, 64 * 1024).expect("imported");
        assert_eq!((result.sessions.len(), result.skipped_total), (1, 0), "{}: {result:?}", path.display());
        sessions.push(result.sessions[0].header.id.to_string());
    }
    daemon.kill9();
    daemon = Daemon::start(&home);
    client = daemon.client();
    assert_eq!(client.history("a").len(), paths.len());
    for (path, id) in paths.iter().zip(&sessions) {
        let expected = expected(path);
        let (session, messages) = client.get_session("a", id);
        assert_eq!(session.header.message_count, expected.len() as u64);
        assert!(of_chorus(&messages) == expected, "{} differs in its session", path.display());
        let back = client.restore("a", id);
        assert_eq!((back.messages, back.warnings), (expected.len() as u64, Vec::new()));
        assert!(of_chorus(&client.messages("a")) == expected, "{} differs when it is live", path.display());
    }
    // The last one is live by reference to its session: it survives too, and can be saved again.
    let expected = expected(paths.last().expect("a path"));
    daemon.kill9();
    daemon = Daemon::start(&home);
    client = daemon.client();
    assert!(of_chorus(&client.messages("a")) == expected);
    client.append("a", "and on");
    let saved = client.save("a", "gone on");
    assert_eq!(saved.header.message_count, expected.len() as u64 + 1);
    assert_eq!(of_chorus(&client.get_session("a", "latest").1)[..expected.len()], expected);
}

/// The same conversations appended message by message, as a running agent would.
#[test]
fn conversations_that_are_appended_survive_a_crash() {
    let Some(folder) = real_data::data_dir() else { return };
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let paths = real_data::files_with_extension(&folder.join("swe-agent"), "json");
    let mut agents = Vec::new();
    for (n, path) in paths.iter().enumerate() {
        let agent = format!("agent-{n}");
        client.init(&agent);
        let expected = expected(path);
        for said in &expected {
            let calls: Vec<_> = said
                .calls
                .iter()
                .map(|(id, name, params)| serde_json::json!({"id": id, "name": name, "params": params}))
                .collect();
            let mut message = serde_json::json!({"role": said.role, "content": said.text, "tool_calls": calls});
            if let Some(id) = &said.answers {
                message["tool_call_id"] = id.clone().into();
            }
            client.append_all(&agent, vec![serde_json::from_value(message).expect("a message")]);
        }
        agents.push((agent, expected));
    }
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for (agent, expected) in &agents {
        assert!(of_chorus(&client.messages(agent)) == *expected, "{agent} differs");
    }
}
