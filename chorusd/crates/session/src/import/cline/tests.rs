//! Tests of tasks of Cline, Roo Code and Kilo Code.

use chorus_proto::SourceKind;
use chorus_proto::methods::import::ImportFormat::{Auto, Cline};

use super::super::test_support::{RecordingSink, import_as};

/// Builds the document of a task.
fn document(about: &str, ui_messages: &str, transcript: &str) -> String {
    format!(r#"{{"cline":{about},"ui_messages":{ui_messages},"transcript":{transcript}}}"#)
}

const ABOUT: &str = r#"{"task":"1763727100000","extension":"saoudrizwan.claude-dev","task_metadata":{"model_usage":[{"ts":1,"model_id":"old"},{"ts":2,"model_id":"m"}]}}"#;

const UI: &str = r#"[{"ts":1763727100001,"type":"say","say":"text","text":"Fix it","conversationHistoryIndex":-1},
{"ts":1763727100100,"type":"say","say":"api_req_started","text":"{\"request\":\"x\",\"tokensIn\":2,\"tokensOut\":8,\"cacheWrites\":5,\"cacheReads\":3,\"cost\":0.5}","conversationHistoryIndex":-1},
{"ts":1763727103000,"type":"say","say":"text","text":"I'll read it.","conversationHistoryIndex":0},
{"ts":1763727103100,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a.py\"}","conversationHistoryIndex":0},
{"ts":1763727104000,"type":"ask","ask":"command","text":"ls","conversationHistoryIndex":0},
{"ts":1763727104100,"type":"say","say":"command_output","text":"a.py","conversationHistoryIndex":0},
{"ts":1763727104200,"type":"say","say":"text","text":"half","partial":true},
{"ts":1763727105000,"type":"say","say":"user_feedback","text":"Go on","conversationHistoryIndex":1},
{"ts":1763727106000,"type":"say","say":"completion_result","text":"Done.","conversationHistoryIndex":2},
{"ts":1763727107000,"type":"ask","ask":"completion_result","text":""}]"#;

const TRANSCRIPT: &str = r#"[{"role":"user","content":[{"type":"text","text":"<task>\nFix it\n</task>"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"<environment_details>\n# Current Working Directory (/srv/shop) Files\na.py\n</environment_details>"}]},
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I'll read it."},{"type":"tool_use","id":"t1","name":"read_file","input":{"n":1.10}}]},
{"role":"user","content":[{"type":"text","text":"<feedback>\nGo on\n</feedback>"},{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"print(1)"}]}]},
{"role":"assistant","content":[{"type":"text","text":"Done."}]},
{"role":"user","content":[{"type":"text","text":"[read_file for 'b.py'] Result:"},{"type":"text","text":"print(2)"}]},
{"role":"assistant","content":[]}, 12]"#;

fn read(text: &str) -> RecordingSink {
    let found = import_as(Auto, text).unwrap();
    assert_eq!(found.format, Cline);
    found
}

#[test]
fn a_task_of_cline_comes_whole() {
    let found = read(&document(ABOUT, UI, TRANSCRIPT));
    let session = &found.sessions[0];
    let due = [
        "user: Fix it",
        "assistant: I'll read it.",
        "tool_result: print(1)",
        "user: Go on",
        "assistant: Done.",
        "user: [read_file for 'b.py'] Result:\n\nprint(2)",
    ];
    assert_eq!(session.role_texts(), due);
    let [question, reply, result, _, _, by_program] = &session.messages[..] else { panic!("six") };
    assert_eq!(
        (question.attachments[0].name.as_str(), question.timestamp.as_millisecond()),
        ("image-1.png", 1_763_727_100_100)
    );
    assert_eq!(
        (reply.tool_calls[0].params.get(), reply.timestamp.as_millisecond()),
        (r#"{"n":1.10}"#, 1_763_727_104_100)
    );
    let usage = reply.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(10), Some(8), Some(3)));
    assert_eq!(usage.cost_usd, Some(0.5));
    assert!(reply.provider.as_ref().unwrap().get().contains("hm"));
    assert_eq!((result.name.as_deref(), result.is_error), (Some("read_file"), false));
    assert_eq!(by_program.source.as_ref().unwrap().kind, SourceKind::Agent);
    let about = &session.about;
    assert_eq!((about.program.as_deref(), about.conversation.as_deref()), (Some("cline"), Some("1763727100000")));
    assert_eq!((about.project.as_deref(), about.model.as_deref()), (Some("/srv/shop"), Some("m")));
    assert_eq!(found.skipped.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), [7]);
}

#[test]
fn a_task_of_roo_code_has_parts_of_the_ai_sdk() {
    let about = r#"{"task":"019a0000-0000-7000-8000-000000000002","extension":"rooveterinaryinc.roo-cline","history_item":{"id":"x","number":2,"workspace":"/srv/shop","parentTaskId":"019a0000-0000-7000-8000-000000000001","modelId":"m"}}"#;
    let ui = r#"[{"ts":1763727100100,"type":"say","say":"api_req_started","text":"{\"tokensIn\":2,\"tokensOut\":8}"},{"ts":1763727105000,"type":"say","say":"api_req_started","text":"{\"tokensIn\":3,\"tokensOut\":9}"}]"#;
    let transcript = r#"{"version":2,"messages":[
{"role":"user","content":[{"type":"text","text":"<task>\nFix it\n</task>"},{"type":"file","mediaType":"image/png","data":"aGk="}],"ts":1763727100001},
{"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"I'll read it."},{"type":"tool-call","toolCallId":"c1","toolName":"read_file","input":{"path":"a.py"}},{"type":"tool-call","toolCallId":"c2","toolName":"ls","input":{}}],"ts":1763727103000},
{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"read_file","output":{"type":"text","value":"print(1)"}},{"type":"tool-result","toolCallId":"c2","toolName":"ls","output":{"type":"error-text","value":"denied"}}],"ts":1763727103200},
{"type":"reasoning","encrypted_content":"x"},
{"role":"user","isTruncationMarker":true,"content":"cut","ts":1763727104000},
{"role":"user","isSummary":true,"content":[{"type":"text","text":"It was read."}],"ts":1763727104001},
{"role":"assistant","content":"Done.","ts":1763727106000}]}"#;
    let found = read(&document(about, ui, transcript));
    let session = &found.sessions[0];
    let due = [
        "user: Fix it",
        "assistant: I'll read it.",
        "tool_result: print(1)",
        "tool_result: denied",
        "system: It was read.",
        "assistant: Done.",
    ];
    assert_eq!(session.role_texts(), due);
    let [question, reply, _, denied, _, end] = &session.messages[..] else { panic!("six") };
    assert_eq!((question.attachments.len(), question.timestamp.as_millisecond()), (1, 1_763_727_100_001));
    assert_eq!(reply.usage.as_ref().unwrap().output_tokens, Some(8));
    assert_eq!(end.usage.as_ref().unwrap().output_tokens, Some(9));
    assert!(denied.is_error && reply.provider.as_ref().unwrap().get().contains("hm"));
    let about = &session.about;
    assert_eq!((about.program.as_deref(), about.project.as_deref()), (Some("roo"), Some("/srv/shop")));
    assert_eq!(about.parent_id.unwrap().to_string(), "019a0000-0000-7000-8000-000000000001");
    assert!(
        about.side_chain && about.conversation.as_deref().unwrap().starts_with("019a0000-0000-7000-8000-000000000001/")
    );
    assert!(found.skipped.is_empty(), "{:?}", found.skipped);
}

#[test]
fn a_session_of_the_command_line_is_one_file() {
    let text = r#"{"version":1,"agent":"subagent","sessionId":"1_a__agent_2","origin":{"source":"cli","parentThreadId":"1_a"},"messages":[
{"id":"u","role":"user","content":[{"type":"text","text":"<user_input mode=\"act\">Count</user_input>"}],"ts":1795728353033},
{"id":"a","role":"assistant","content":[{"type":"text","text":"Three."}],"ts":1795728353436,"modelInfo":{"id":"m","provider":"p"},"metrics":{"inputTokens":120,"outputTokens":20,"cacheReadTokens":40}}],"system_prompt":"You are"}"#;
    let found = read(text);
    let session = &found.sessions[0];
    assert_eq!(session.role_texts(), ["user: Count", "assistant: Three."]);
    let usage = session.messages[1].usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.cache_read_tokens), (Some(120), Some(40)));
    assert_eq!(
        (session.about.conversation.as_deref(), session.about.model.as_deref()),
        (Some("1_a/1_a__agent_2"), Some("m"))
    );
    let meta = r#"{"session":{"session_id":"1_a","cwd":"/srv/shop","started_at":"2026-11-26T21:25:52.732Z","metadata":{"title":"A count","git":{"branch":"main"}}}}"#;
    let main = text.replace(
        r#""sessionId":"1_a__agent_2","origin":{"source":"cli","parentThreadId":"1_a"}"#,
        r#""sessionId":"1_a""#,
    );
    let found = read(&document(meta, "null", &main));
    let about = &found.sessions[0].about;
    assert_eq!((about.project.as_deref(), about.branch.as_deref()), (Some("/srv/shop"), Some("main")));
    assert_eq!((about.description.as_deref(), about.conversation.as_deref()), (Some("A count"), Some("1_a")));
    assert_eq!(about.id, session.about.parent_id);
}

#[test]
fn what_the_person_saw_stands_for_a_missing_transcript() {
    for text in [UI.to_owned(), document(ABOUT, UI, "null"), document(ABOUT, UI, "[]")] {
        let found = read(&text);
        let session = &found.sessions[0];
        let due = [
            "user: Fix it",
            "assistant: I'll read it.",
            "assistant: ",
            "assistant: ",
            "user: a.py",
            "user: Go on",
            "assistant: Done.",
        ];
        assert_eq!(session.role_texts(), due);
        let calls: Vec<_> = session.messages.iter().flat_map(|message| &message.tool_calls).collect();
        assert_eq!((calls[0].name.as_str(), calls[1].params.get()), ("readFile", r#"{"command":"ls"}"#));
    }
}

#[test]
fn a_cut_document_keeps_what_it_has() {
    let text = document(ABOUT, UI, TRANSCRIPT);
    let found = read(&text[..text.find("<feedback>").unwrap()]);
    assert_eq!(found.sessions[0].role_texts().len(), 2);
    assert_eq!(found.skipped[0].1, "unexpected end of file");
}
