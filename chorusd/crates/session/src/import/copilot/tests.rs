//! Tests of sessions of GitHub Copilot CLI.

use chorus_proto::SourceKind;
use chorus_proto::methods::import::ImportFormat::{Auto, Copilot};

use super::super::test_support::{RecordingSink, import_as};

const ID: &str = "849c1e64-c6c8-4620-b215-b6bc257e4bc8";

/// Builds events with ids that count up, each after the one before.
fn events(of: &[(&str, String)]) -> Vec<String> {
    let lines = of.iter().enumerate().map(|(at, (kind, data))| {
        let agent = if data.contains("of-agent") { r#","agentId":"agent-1""# } else { "" };
        format!(
            r#"{{"type":"{kind}","data":{data},"id":"e{at}","timestamp":"2026-03-01T09:00:0{at}Z","parentId":null{agent}}}"#,
            at = at % 10
        )
    });
    lines.collect()
}

fn start(version: u64) -> (&'static str, String) {
    let data = format!(
        r#"{{"sessionId":"{ID}","version":{version},"startTime":"2026-03-01T09:00:00Z","selectedModel":"first","context":{{"cwd":"/srv/shop","branch":"main"}}}}"#
    );
    ("session.start", data)
}

fn read(lines: &[String]) -> RecordingSink {
    let found = import_as(Auto, lines.join("\n")).unwrap();
    assert_eq!(found.format, Copilot);
    found
}

#[test]
fn a_session_comes_whole() {
    let asset = r#"{"assetId":"sha256:1","type":"image","mimeType":"image/png","byteLength":2,"data":"aGk="}"#;
    let picture = r#"{"type":"image","assetId":"sha256:1","mimeType":"image/png"}"#;
    let mut lines = events(&[
        start(1),
        ("session.binary_asset", asset.into()),
        ("user.message", r#"{"content":"List them","transformedContent":"<current_datetime>","attachments":[{"type":"file","path":"/p.png","displayName":"p.png","assetId":"sha256:1","mimeType":"image/png"}]}"#.into()),
        ("session.usage_record", r#"{"usage":{"inputTokens":10,"outputTokens":5,"cacheReadTokens":3,"apiCallId":"api-1"}}"#.into()),
        ("assistant.message", r#"{"messageId":"m","model":"m","content":"Sure.","toolRequests":[{"toolCallId":"c1","name":"ls","arguments":{"n":1.10}},{"toolCallId":"c2","name":"sh","arguments":{}}],"reasoningText":"hm","apiCallId":"api-1"}"#.into()),
        ("tool.execution_complete", format!(r#"{{"toolCallId":"c1","success":true,"result":{{"content":"a.py","binaryResultsForLlm":[{picture}]}}}}"#)),
        ("tool.execution_complete", r#"{"toolCallId":"c2","success":false,"error":{"message":"denied"}}"#.into()),
        ("session.compaction_complete", r#"{"success":true,"summaryContent":"All was listed."}"#.into()),
        ("model.messages_snapshot", r#"{"messages":[{"role":"user","content":"List them"}]}"#.into()),
        ("telepathy.received", "{}".into()),
    ]);
    lines.push("\0\0\0".into());
    let found = read(&lines);
    let session = &found.sessions[0];
    let due =
        ["user: List them", "assistant: Sure.", "tool_result: a.py", "tool_result: denied", "system: All was listed."];
    assert_eq!(session.role_texts(), due);
    assert_eq!(found.skipped.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [10]);
    let [question, reply, listed, denied, _] = &session.messages[..] else { panic!("five") };
    let file = &question.attachments[0];
    assert_eq!((file.name.as_str(), file.data.as_deref(), question.id.as_str()), ("p.png", Some("aGk="), "e2"));
    assert_eq!(reply.tool_calls[0].params.get(), r#"{"n":1.10}"#);
    let usage = reply.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(10), Some(5), Some(3)));
    assert!(reply.provider.as_ref().unwrap().get().contains("reasoningText"));
    assert_eq!((listed.name.as_deref(), listed.attachments[0].size), (Some("ls"), Some(2)));
    assert!(denied.is_error && !listed.is_error);
    let about = &session.about;
    assert_eq!((about.conversation.as_deref(), about.model.as_deref()), (Some(ID), Some("m")));
    assert_eq!((about.project.as_deref(), about.branch.as_deref()), (Some("/srv/shop"), Some("main")));
}

#[test]
fn a_subagent_gets_a_session_of_its_own() {
    let found = read(&events(&[
        start(1),
        ("user.message", r#"{"content":"Ask one"}"#.into()),
        ("user.message", r#"{"content":"Count  them","source":"agent-x","note":"of-agent"}"#.into()),
        ("assistant.message", r#"{"content":"3","note":"of-agent"}"#.into()),
        ("assistant.message", r#"{"content":"Three.","outputTokens":4}"#.into()),
    ]));
    let [main, agent] = &found.sessions[..] else { panic!("two") };
    assert_eq!(main.role_texts(), ["user: Ask one", "assistant: Three."]);
    assert_eq!(main.messages[1].usage.as_ref().unwrap().output_tokens, Some(4));
    assert_eq!(agent.role_texts(), ["user: Count  them", "assistant: 3"]);
    assert_eq!(agent.messages[0].source.as_ref().unwrap().kind, SourceKind::Agent);
    assert!(agent.about.side_chain && agent.about.parent_id == main.about.id);
    assert_eq!(agent.about.conversation.as_deref(), Some(&*format!("{ID}/agent-1")));
    assert_eq!(agent.about.description.as_deref(), Some("Count them"));
}

#[test]
fn a_fork_names_its_parent_and_another_version_says_so() {
    let parent = "943a6a42-3bf9-48fa-9c24-3409164c9314";
    let message =
        format!(r#"{{"infoType":"fork","message":"Forked from \"A (b)\" ({parent}) as \"A (fork)\" ({ID})."}}"#);
    let found = read(&events(&[
        start(2),
        ("session.info", message),
        ("session.info", format!(r#"{{"infoType":"fork","message":"Forked this session into \"A\" ({ID})."}}"#)),
        ("user.message", r#"{"content":"Hello"}"#.into()),
    ]));
    assert_eq!(found.sessions[0].about.parent_id.unwrap().to_string(), parent);
    assert!(found.skipped[0].1.contains("version 2"), "{:?}", found.skipped);
}

fn counts(found: &RecordingSink) -> Vec<(Option<&str>, u64, u64, u64)> {
    let calls = found.sessions[0].calls.iter();
    calls.map(|call| (call.model.as_deref(), call.input_tokens, call.output_tokens, call.calls)).collect()
}

#[test]
fn records_of_calls_count_and_otherwise_the_totals_of_each_run() {
    let asked = ("user.message", r#"{"content":"hi"}"#.to_owned());
    let replied =
        ("assistant.message", r#"{"messageId":"m","model":"first","content":"Sure.","outputTokens":9}"#.to_owned());
    let record = |n: u64| {
        (
            "session.usage_record",
            format!(
                r#"{{"usage":{{"model":"first","inputTokens":{n},"outputTokens":5,"accounting":{{"sourceSessionId":"{ID}","sequence":{n}}}}}}}"#
            ),
        )
    };
    let shutdown = |n: u64| {
        (
            "session.shutdown",
            format!(
                r#"{{"shutdownType":"routine","modelMetrics":{{"first":{{"requests":{{"count":2,"cost":1}},"usage":{{"inputTokens":{n},"outputTokens":7}}}}}}}}"#
            ),
        )
    };
    let with_records = read(&events(&[
        start(1),
        asked.clone(),
        record(100),
        replied.clone(),
        record(100),
        record(200),
        shutdown(300),
    ]));
    // The sink counts a key once.
    assert_eq!(counts(&with_records), [(Some("first"), 100, 5, 1), (Some("first"), 200, 5, 1)]);
    let with_totals = read(&events(&[start(1), asked.clone(), replied.clone(), shutdown(260), shutdown(340)]));
    assert_eq!(counts(&with_totals), [(Some("first"), 260, 7, 2), (Some("first"), 340, 7, 2)]);
    let with_neither = read(&events(&[start(1), asked, replied]));
    assert_eq!(counts(&with_neither), [(Some("first"), 0, 9, 1)]);
}
