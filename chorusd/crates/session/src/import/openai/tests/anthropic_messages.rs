//! Tests of messages in the form of Anthropic's API, and of the programs that store them.

use chorus_proto::Message;
use chorus_proto::methods::import::ImportFormat::{Auto, Openai};

use super::super::super::test_support::{ImportedSession, import_as};

/// The body of a request in the form of the reference of the Messages API.
const REQUEST: &str = r#"{"model":"claude-x","max_tokens":9,"messages":[
    {"role":"user","content":[{"type":"text","text":"Weather?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},
    {"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":"s"},{"type":"text","text":"I look."},
        {"type":"tool_use","id":"toolu_1","name":"weather","input":{"t":1.50}},{"type":"tool_use","id":"toolu_2","name":"time","input":{}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"15"},
        {"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"no clock"}]},{"type":"text","text":"And now?"}]},
    {"role":"assistant","content":"Fine."}],
    "system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]}"#;

const TALK: [&str; 7] = [
    "system: Be brief.",
    "user: Weather?",
    "assistant: I look.",
    "tool_result: 15",
    "tool_result: no clock",
    "user: And now?",
    "assistant: Fine.",
];

fn one(text: &str) -> ImportedSession {
    let mut found = import_as(Auto, text).unwrap();
    assert_eq!((found.format, &found.skipped, found.sessions.len()), (Openai, &vec![], 1));
    found.sessions.remove(0)
}

fn calls(message: &Message) -> Vec<(&str, &str, &str)> {
    message.tool_calls.iter().map(|call| (&*call.id, &*call.name, call.params.get())).collect()
}

#[test]
fn the_body_of_a_request_comes_whole_with_its_instructions_first() {
    let on_one_line = REQUEST.replace('\n', "");
    for text in [REQUEST, &on_one_line] {
        let ImportedSession { messages, about, .. } = one(text);
        let talk: Vec<_> = messages.iter().map(|said| format!("{}: {}", said.role.as_str(), said.content)).collect();
        assert_eq!(talk, TALK);
        assert_eq!(about.model.as_deref(), Some("claude-x"));
        assert_eq!(messages[1].attachments[0].data.as_deref(), Some("aGk="));
        assert_eq!(calls(&messages[2]), [("toolu_1", "weather", r#"{"t":1.50}"#), ("toolu_2", "time", "{}")]);
        assert!(messages[2].provider.as_ref().unwrap().get().contains(r#"{"anthropic":{"blocks":[{"type":"thinking""#));
        let results: Vec<_> = messages[3..5]
            .iter()
            .map(|said| (said.tool_call_id.as_deref(), said.name.as_deref(), said.is_error))
            .collect();
        assert_eq!(results, [(Some("toolu_1"), Some("weather"), false), (Some("toolu_2"), Some("time"), true)]);
        assert_eq!(messages[2].source.as_ref().unwrap().format.as_deref(), Some("anthropic"));
    }
}

#[test]
fn instructions_may_be_a_text_and_stand_in_each_line() {
    let line = r#"{"system":"Be brief.","messages":[{"role":"user","content":"a"}]}"#;
    let found = import_as(Auto, format!("{line}\n{line}\n")).unwrap();
    let talks: Vec<_> = found.sessions.iter().map(ImportedSession::role_texts).collect();
    assert_eq!(talks, [["system: Be brief.", "user: a"], ["system: Be brief.", "user: a"]]);
}

/// `api_conversation_history.json`: cline/cline stores `Anthropic.MessageParam[]`, RooCodeInc/Roo-Code adds `ts` in
/// milliseconds.
#[test]
fn the_history_of_cline_and_roo_is_such_a_list() {
    let found = one(
        r#"[{"role":"user","content":[{"type":"text","text":"<task>\nfix\n</task>"},{"type":"text","text":"<environment_details/>"}],"ts":1749895200000},
            {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"read_file","input":{"path":"a"}}],"ts":1749895201000},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"x"}]}],"ts":1749895202000}]"#,
    );
    assert_eq!(
        found.role_texts(),
        ["user: <task>\nfix\n</task>\n<environment_details/>", "assistant: ", "tool_result: x"]
    );
    assert_eq!(found.messages[2].timestamp.to_string(), "2025-06-14T10:00:02Z");
    assert_eq!(found.messages[2].name.as_deref(), Some("read_file"));
}

/// `~/.factory/sessions/*/ID.jsonl` of droid: `session_start`, then lines of type `message` that contain the message of
/// the API.
#[test]
fn sessions_of_droid_have_the_message_below_message() {
    let found = one(concat!(
        r#"{"type":"session_start","id":"7d444840-9dc0-41d1-b245-5ffdce74fad2","title":"A fix","owner":"o","version":2,"cwd":"/w"}"#,
        "\n",
        r#"{"type":"message","id":"m1","timestamp":"2025-06-14T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":"fix"}]}}"#,
        "\n",
        r#"{"type":"todo_state","id":"t","todos":{}}"#,
        "\n",
        r#"{"type":"message","id":"m2","timestamp":"2025-06-14T10:00:01Z","parentId":"m1","message":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"Read","input":{}}]}}"#,
        "\n",
        r#"{"type":"message","id":"m3","timestamp":"2025-06-14T10:00:02Z","parentId":"m2","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}}"#,
    ));
    assert_eq!(found.role_texts(), ["user: fix", "assistant: ", "tool_result: x"]);
    let ids: Vec<_> = found.messages.iter().map(|said| (&*said.id, said.timestamp.to_string())).collect();
    let second = |n: u8| format!("2025-06-14T10:00:0{n}Z");
    assert_eq!(ids, [("m1", second(0)), ("m2", second(1)), ("m3", second(2))]);
    assert_eq!(found.about.description.as_deref(), Some("A fix"));
    assert!(found.about.id.is_some());
}

/// Rows of NousResearch/hermes-agent: the first line of a transcript has the role `session_meta`, and an export of its
/// database has `tool_calls` as text, `tool_name`, and the system prompt in `system_prompt`.
#[test]
fn of_the_rows_of_hermes_none_is_lost() {
    let rows = [
        r#"{"role":"session_meta","tools":[{"type":"function"}],"model":"m","platform":"cli","timestamp":"2026-05-11T20:31:08.015498"}"#,
        r#"{"role":"user","content":"q","timestamp":"2026-05-11T20:31:09"}"#,
        r#"{"role":"assistant","content":null,"tool_calls":"[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]","reasoning":"hm"}"#,
        r#"{"role":"tool","content":"x","tool_call_id":"c","tool_name":"f"}"#,
    ];
    let found = one(&rows.join("\n"));
    assert_eq!(found.role_texts(), ["user: q", "assistant: ", "tool_result: x"]);
    let kept = found.messages[0].provider.as_ref().unwrap().get();
    assert!(kept.starts_with(r#"{"session":{"role":"session_meta","tools":[{"#), "{kept}");
    assert_eq!((found.about.model.as_deref(), calls(&found.messages[1])), (Some("m"), vec![("c", "f", "{}")]));
    assert_eq!(found.messages[2].name.as_deref(), Some("f"));
    assert_eq!(found.about.started_at.unwrap().to_string(), "2026-05-11T20:31:08.015498Z");

    let export = format!(
        r#"{{"id":"20260511_203108_ab","title":"A talk","model":"m","system_prompt":"Be kind.","started_at":1749895200.0,"messages":[{}]}}"#,
        rows[1..].join(",")
    );
    let found = one(&export);
    assert_eq!(found.role_texts(), ["system: Be kind.", "user: q", "assistant: ", "tool_result: x"]);
    assert_eq!(found.about.description.as_deref(), Some("A talk"));
    assert_eq!(found.about.started_at.unwrap().to_string(), "2025-06-14T10:00:00Z");
}

/// The longest line that is read has 64 MiB. The first line is longer, and the others are imported.
#[test]
fn a_first_line_that_is_too_long_does_not_take_the_others_with_it() {
    let long = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(64 << 20));
    let found = import_as(Auto, format!("{long}\n{{\"role\":\"user\",\"content\":\"short\"}}\n")).unwrap();
    assert_eq!(found.sessions[0].role_texts(), ["user: short"]);
    assert_eq!(found.skipped, [(1, "the line is longer than 64 MiB".into())]);
}
