//! Tests of VS Code's chat sessions.

use chorus_proto::methods::import::ImportFormat::{Auto, VscodeChat};

use super::super::test_support::{RecordingSink, import_as};

const ID: &str = "3b7e1f1b-0000-4000-8000-000000000001";

const RESULT: &str = r#"{"metadata":{"toolCallRounds":[{"id":"r1","response":"Reading.","toolCalls":[{"id":"c1","name":"read_file","arguments":"{\"n\":1.10}"}],"thinking":{"text":"hm"}},{"id":"r2","response":"Fixed.","toolCalls":[]}],"toolCallResults":{"c1":{"content":[{"value":"const a"},{"value":"const b"}]}},"promptTokens":1200,"outputTokens":40,"resolvedModel":"m"}}"#;

const SHOWN: &str = r#"[{"kind":"thinking","value":"hm"},{"value":"Reading "},{"kind":"inlineReference","inlineReference":{"path":"/srv/a.ts"}},{"value":"."},{"kind":"toolInvocationSerialized","toolCallId":"c1","toolId":"run","toolSpecificData":{"kind":"terminal","commandLine":{"original":"ls"}}},{"kind":"undoStop"},{"value":"Fixed."}]"#;

fn request(id: u64, rest: &str) -> String {
    format!(
        r#"{{"requestId":"request_{id}","timestamp":176372710{id}000,"message":{{"text":"Fix {id}","parts":[]}},"modelId":"copilot/old","responseId":"response_{id}"{rest}}}"#
    )
}

fn session(requests: &str) -> String {
    format!(
        r#"{{"version":3,"sessionId":"{ID}","creationDate":1763727090000,"responderUsername":"GitHub Copilot","requests":[{requests}],"customTitle":"The retry"}}"#
    )
}

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.format, VscodeChat);
    found
}

#[test]
fn a_session_comes_with_its_calls_and_files() {
    let rest = format!(
        r#","variableData":{{"variables":[{{"kind":"file","name":"a.ts","value":{{"fsPath":"/srv/a.ts"}}}},{{"kind":"image","name":"b.png","mimeType":"image/png"}}]}},"response":{SHOWN},"result":{RESULT},"completionTokens":60,"modelState":{{"value":1,"completedAt":1763727109000}}"#
    );
    let found = read(&session(&request(1, &rest)));
    let session = &found.sessions[0];
    let due = ["user: Fix 1", "assistant: Reading.", "tool_result: const a\nconst b", "assistant: Fixed."];
    assert_eq!(session.role_texts(), due);
    let [question, reply, result, _] = &session.messages[..] else { panic!("four") };
    let files: Vec<_> = question.attachments.iter().map(|file| (file.name.as_str(), file.path.as_deref())).collect();
    assert_eq!(files, [("a.ts", Some("/srv/a.ts")), ("b.png", None)]);
    assert_eq!((question.id.as_str(), question.timestamp.as_millisecond()), ("request_1", 1_763_727_101_000));
    assert_eq!((reply.id.as_str(), reply.timestamp.as_millisecond()), ("response_1", 1_763_727_109_000));
    assert_eq!(reply.tool_calls[0].params.get(), r#"{"n":1.10}"#);
    let usage = reply.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(1200), Some(60)));
    assert!(reply.provider.as_ref().unwrap().get().contains("hm"));
    assert_eq!((result.name.as_deref(), result.tool_call_id.as_deref()), (Some("read_file"), Some("c1")));
    let about = &session.about;
    assert_eq!((about.conversation.as_deref(), about.id.unwrap().to_string().as_str()), (Some(ID), ID));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("The retry"), Some("m")));
}

#[test]
fn what_was_shown_stands_for_missing_rounds() {
    let found = read(&session(&format!("{},{{}}", request(1, &format!(r#","response":{SHOWN}"#)))));
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["user: Fix 1", "assistant: Reading /srv/a.ts.\n\nFixed."]);
    let call = &session.messages[1].tool_calls[0];
    assert_eq!((call.name.as_str(), call.params.get()), ("run", r#"{"command":"ls"}"#));
    assert_eq!(session.about.model.as_deref(), Some("old"));
    assert_eq!(found.skipped, [(1, "request 2: no message".to_owned())]);
}

#[test]
fn a_log_of_changes_is_the_same_session() {
    let lines = [
        format!(r#"{{"kind":0,"v":{}}}"#, session("")),
        format!(r#"{{"kind":2,"k":["requests"],"v":[{}]}}"#, request(1, r#","response":[]"#)),
        r#"{"kind":2,"k":["requests",0,"response"],"v":[{"value":"Fi"}]}"#.into(),
        r#"{"kind":2,"k":["requests",0,"response"],"v":[{"value":"Fixed."}],"i":0}"#.into(),
        r#"{"kind":1,"k":["requests",0,"completionTokens"],"v":60}"#.into(),
        r#"{"kind":1,"k":["inputState","text"],"v":"x"}"#.into(),
        r#"{"kind":3,"k":["inputState"]}"#.into(),
        r#"{"kind":1,"k":["requests",9999999],"v":1}"#.into(),
    ];
    let log = read(&lines.join("\n"));
    let whole = read(&session(&request(1, r#","response":[{"value":"Fixed."}],"completionTokens":60"#)));
    assert_eq!((&log.sessions[0].json, &log.sessions[0].about), (&whole.sessions[0].json, &whole.sessions[0].about));
    assert_eq!(log.skipped, [(8, "an index beyond the end of its list".to_owned())]);
    // A log that has lost its first line.
    let rest = import_as(VscodeChat, lines[1..5].join("\n")).unwrap();
    assert_eq!(rest.sessions[0].role_texts(), ["user: Fix 1", "assistant: Fixed."]);
    assert_eq!(rest.sessions[0].about.conversation.as_deref(), Some("request_1"));
}
