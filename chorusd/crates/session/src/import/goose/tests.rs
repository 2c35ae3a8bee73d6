//! Tests of goose sessions in older and newer forms.

use chorus_proto::methods::import::ImportFormat::{Auto, Goose};

use super::super::test_support::{RecordingSink, import_as};

const HEAD: &str =
    r#"{"working_dir":"/w","description":"Look around","message_count":4,"created_at":"2026-03-01T09:00:00Z"}"#;

const MESSAGES: [&str; 4] = [
    r#"{"id":"m1","role":"user","created":1772355600,"content":[{"type":"text","text":"List them"}],"metadata":{"userVisible":true,"agentVisible":true}}"#,
    r#"{"role":"assistant","created":1772355601,"content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Sure."},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"ls","n":1.10}}}}]}"#,
    r#"{"role":"user","created":1772355602,"content":[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"a.py"}],"isError":false}}}]}"#,
    r#"{"role":"assistant","created":1772355603,"content":[{"type":"text","text":"a.py"}]}"#,
];

fn check(found: &RecordingSink) {
    assert_eq!((found.format, &*found.skipped), (Goose, &[][..]));
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["user: List them", "assistant: Sure.", "tool_result: a.py", "assistant: a.py"]);
    let [question, call, result, _] = &session.messages[..] else { panic!("four") };
    assert_eq!((question.id.as_str(), question.timestamp.as_second()), ("m1", 1_772_355_600));
    assert!(question.provider.is_none());
    assert_eq!(call.tool_calls[0].params.get(), r#"{"command":"ls","n":1.10}"#);
    assert!(call.provider.as_ref().unwrap().get().contains("signature"));
    assert_eq!((result.tool_call_id.as_deref(), result.name.as_deref()), (Some("c1"), Some("developer__shell")));
    assert_eq!(session.about.description.as_deref(), Some("Look around"));
}

#[test]
fn lines_and_the_object_of_an_export_say_the_same() {
    check(&import_as(Auto, format!("{HEAD}\n{}\n", MESSAGES.join("\n"))).unwrap());
    let head = &HEAD[..HEAD.len() - 1];
    let exported =
        format!("{head},\"conversation\":[{}],\"model_config\":{{\"model_name\":\"x\"}}}}", MESSAGES.join(","));
    let found = import_as(Auto, &exported).unwrap();
    check(&found);
    assert_eq!(found.sessions[0].about.model.as_deref(), Some("x"));
    check(&import_as(Auto, exported.replace("},{", "},\n  {").replace("true,", "true,\n ")).unwrap());
    check(&import_as(Auto, exported.replace("\"conversation\"", "\"messages\"")).unwrap());
}

#[test]
fn failures_and_old_envelopes() {
    let lines = [
        r#"{"role":"assistant","created":1,"content":[{"type":"toolRequest","id":"c","toolCall":{"Ok":{"name":"t"}}},{"type":"toolRequest","id":"d","toolCall":{"status":"error","error":"no such tool"}}]}"#,
        r#"{"role":"user","created":2,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"error","error":"it broke"}},{"type":"toolResponse","id":"d","toolResult":{"Ok":[{"type":"text","text":"x"},{"type":"image","data":"aGk=","mimeType":"image/png"}]}},{"type":"text","text":"and now?"}]}"#,
        r#"{"role":"king","created":3,"content":[]}"#,
        "broken",
    ];
    let found = import_as(Auto, lines.join("\n")).unwrap();
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["assistant: ", "tool_result: it broke", "tool_result: x", "user: and now?"]);
    assert_eq!(session.messages[0].tool_calls[0].params.get(), "{}");
    assert!(session.messages[0].provider.as_ref().unwrap().get().contains("no such tool"));
    assert!(session.messages[1].is_error && session.messages[2].attachments[0].name == "image-1.png");
    let lines: Vec<_> = found.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 4]);
}

#[test]
fn sessions_of_one_day_differ_between_machines_and_a_subagent_is_linked() {
    let session = |created: &str, more: &str| {
        let text = format!(
            r#"{{"id":"20261126_1","working_dir":"/w","created_at":"{created}"{more},"conversation":[{{"id":"m1","role":"assistant","created":1,"content":[{{"type":"text","text":"x"}}],"metadata":{{"usage":{{"inputTokens":10,"outputTokens":5,"cacheReadTokens":3}}}}}}]}}"#
        );
        import_as(Auto, text).unwrap().sessions.remove(0)
    };
    let one = session("2026-11-26 20:52:18", "");
    let usage = one.messages[0].usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(10), Some(5), Some(3)));
    assert_eq!(one.about.conversation, session("2026-11-26T20:52:18.5+00:00", "").about.conversation);
    assert_ne!(one.about.conversation, session("2026-11-26 20:52:19", "").about.conversation);
    let child = session(
        "2026-11-26 21:00:00",
        r#","parent_session_id":"20261126_0","parent_created_at":"2026-11-26 20:00:00""#,
    );
    let due = "20261126_0@1795723200/20261126_1@1795726800";
    assert!(child.about.side_chain && child.about.conversation.as_deref() == Some(due), "{:?}", child.about);
}

#[test]
fn the_totals_of_a_session_count_if_its_messages_have_no_counts() {
    let totals = r#""accumulated_input_tokens":260,"accumulated_output_tokens":40,"accumulated_cache_read_tokens":80}"#;
    let head = HEAD.replace('}', &format!(",{totals}"));
    let found = import_as(Goose, format!("{head}\n{}", MESSAGES.join("\n"))).unwrap();
    let [call] = &found.sessions[0].calls[..] else { panic!("{:?}", found.sessions[0].calls) };
    assert_eq!((call.input_tokens, call.cache_read_tokens, call.output_tokens), (260, 80, 40));
    let usage = r#""metadata":{"usage":{"inputTokens":120,"outputTokens":20}}}"#;
    let counted = MESSAGES[3].strip_suffix('}').map(|message| format!("{message},{usage}")).unwrap();
    let found = import_as(Goose, format!("{head}\n{}\n{counted}", MESSAGES[0])).unwrap();
    let counts: Vec<_> = found.sessions[0].calls.iter().map(|call| (call.input_tokens, call.output_tokens)).collect();
    assert_eq!(counts, [(120, 20)]);
}
