//! A session file is made for `jq`, `less`, `grep` and `diff`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::{Message, NewMessage, Role, SummarySource, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use serde_json::{Value, json};

use crate::home;

/// The fields of SPEC 4, in the order of the file.
const FIELDS: [&str; 20] = [
    "schema",
    "id",
    "session_id",
    "agent_id",
    "agent_name",
    "description",
    "summary",
    "summary_source",
    "saved_at",
    "started_at",
    "trigger",
    "model",
    "message_count",
    "query_count",
    "token_estimate",
    "restoration_tokens",
    "parent_id",
    "tags",
    "working_set",
    "messages",
];

/// The name of the field a line begins with.
fn field(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix('"')?.split_once("\":").map(|(name, _)| name)
}

#[test]
fn one_field_a_line_and_one_message_a_line() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let call: NewMessage = serde_json::from_value(json!({
        "role": "assistant", "content": "two\nlines", "tool_calls": [{"id": "c", "name": "bash", "params": {"command": "ls"}}]
    }))
    .expect("a message");
    let result = json!({"role": "tool_result", "content": "ok", "tool_call_id": "c", "name": "bash"});
    let result: NewMessage = serde_json::from_value(result).expect("a message");
    client.append_all("a", vec![NewMessage::text(Role::User, "please \u{0} list"), call, result]);
    let session = client.save("a", "A listing");
    let path = home.sessions_dir("a").join(format!("{}.json", session.header.session_id));
    assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).expect("the file");
    assert!(!text.contains('\0'), "NUL is escaped");

    let lines: Vec<_> = text.lines().collect();
    let (first, last) = (lines.first().copied(), lines.last().copied());
    assert_eq!((first, last), (Some("{"), Some("}")), "{text}");
    let fields: Vec<_> = lines.iter().filter_map(|line| field(line)).filter(|name| FIELDS.contains(name)).collect();
    assert_eq!(fields, FIELDS, "{text}");
    let messages = lines.iter().filter(|line| line.trim_start().starts_with('{')).skip(1);
    let messages: Vec<Message> = messages
        .map(|line| serde_json::from_str(line.trim().trim_end_matches(',')).expect("one message on one line"))
        .collect();
    assert_eq!(messages.len(), 3);
    assert_eq!(
        lines.len(),
        FIELDS.len() + messages.len() + 3,
        "braces, fields, messages, and the closing bracket\n{text}"
    );

    let value: Value = serde_json::from_str(&text).expect("one JSON object");
    assert_eq!(value["schema"], 2);
    assert_eq!(value["message_count"], 3);
    assert_eq!(value["query_count"], 1);
    assert_eq!(value["trigger"], "manual_save");
    let characters = "please \u{0} list".chars().count() + "two\nlines".len() + r#"{"command":"ls"}"#.len() + 2;
    assert_eq!(value["token_estimate"], characters / 4);
}

#[test]
fn what_the_answer_says_is_what_the_file_says() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let given =
        json!({"id": "given-1", "role": "system", "content": "be brief", "timestamp": "2025-01-02T03:04:05.678Z"});
    let messages = vec![serde_json::from_value(given).expect("a message"), NewMessage::text(Role::User, "hello")];
    client.call::<Append>(&AppendParams { messages, ..Default::default() }).expect("appended");
    let session = client.save("a", "Given");
    assert_eq!(session.header.trigger, Trigger::ManualSave);
    assert_ne!(session.header.summary_source, SummarySource::Llm);
    assert_eq!(session.short_id, session.header.id.to_string()[..8]);
    assert!(session.available);
    let file: Value = serde_json::from_str(&fs::read_to_string(&session.file_path).expect("the file")).expect("JSON");
    let answer = serde_json::to_value(&session.header).expect("serialises");
    for (key, value) in answer.as_object().expect("an object") {
        assert_eq!(&file[key], value, "{key}");
    }
    assert_eq!(file["messages"][0]["id"], "given-1");
    assert_eq!(file["messages"][0]["timestamp"], "2025-01-02T03:04:05.678Z");
    let (again, messages) = client.get_session("a", &session.short_id);
    assert_eq!(again, session);
    assert_eq!(messages[0].id, "given-1");
}
