//! Tests of chats: JSONL with its changes to earlier lines, and JSON of older versions.

use chorus_proto::Role;
use chorus_proto::methods::import::ImportFormat::{Auto, Gemini};

use super::super::test_support::{ImportedSession, RecordingSink, import_as};

const ID: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

/// The SHA-256 of `/srv/shop`.
const SHOP_HASH: &str = "e7c7ea0ba435fd310e06a812a878b49ac2e1ffa26f10919d35caaaa22b239a7e";

fn header(more: &str) -> String {
    format!(r#"{{"sessionId":"{ID}","projectHash":"{SHOP_HASH}","startTime":"2026-03-01T09:00:00Z"{more}}}"#)
}

fn user(id: &str, text: &str) -> String {
    format!(r#"{{"id":"{id}","timestamp":"2026-03-01T09:00:01Z","type":"user","content":[{{"text":"{text}"}}]}}"#)
}

fn reply(id: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-03-01T09:00:02Z","type":"gemini","content":"{text}","model":"gemini-x","tokens":{{"input":10,"output":5,"cached":3,"thoughts":2,"tool":0,"total":17}}{more}}}"#
    )
}

const CALLS: &str = r#","toolCalls":[{"id":"c1","name":"ls","args":{"n":1.10},"result":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"a.py"}}}],"status":"success","timestamp":"2026-03-01T09:00:03Z"},{"id":"c2","name":"rm","args":{},"result":[{"functionResponse":{"id":"c2","name":"rm","response":{"error":"denied"}}}],"status":"error"}]"#;

const RESULTS_AGAIN: &str = r#"{"id":"r1","timestamp":"2026-03-01T09:00:03Z","type":"user","content":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"a.py"}}}]}"#;

fn read(lines: &[String]) -> RecordingSink {
    let found = import_as(Auto, lines.join("\n")).unwrap();
    assert_eq!((found.format, found.sessions.len()), (Gemini, 1));
    found
}

fn only(found: RecordingSink) -> ImportedSession {
    assert_eq!(found.skipped, []);
    found.sessions.into_iter().next().unwrap()
}

#[test]
fn a_reply_holds_its_calls_and_their_results_follow() {
    let context = r#"{"$set":{"messages":[{"id":"x","type":"user","content":[{"text":"<session_context>\nThis is\n- **Workspace Directories:**\n  - /srv/shop\n- **Directory"}]}]}}"#;
    let thoughts = r#","thoughts":[{"subject":"s","description":"d"}]"#;
    let session = only(read(&[
        header(r#","kind":"main""#),
        context.into(),
        user("u1", "List them"),
        r#"{"$set":{"lastUpdated":"2026-03-01T09:00:02Z"}}"#.into(),
        reply("g1", "Sure.", thoughts),
        reply("g1", "Sure.", &format!("{thoughts}{CALLS}")),
        RESULTS_AGAIN.into(),
        r#"{"id":"i","type":"info","content":"saved"}"#.into(),
        reply("g2", "One file.", ""),
        r#"{"$set":{"summary":"The files","memoryScratchpad":{}}}"#.into(),
    ]));
    let due =
        ["user: List them", "assistant: Sure.", "tool_result: a.py", "tool_result: denied", "assistant: One file."];
    assert_eq!(session.role_texts(), due);
    let [_, call, listed, denied, last] = &session.messages[..] else { panic!("five") };
    assert_eq!((call.tool_calls.len(), call.tool_calls[0].params.get()), (2, r#"{"n":1.10}"#));
    assert!(call.provider.as_ref().unwrap().get().contains("subject") && last.provider.is_none());
    let usage = call.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(10), Some(7), Some(3)));
    assert_eq!(
        (listed.name.as_deref(), listed.tool_call_id.as_deref(), listed.is_error),
        (Some("ls"), Some("c1"), false)
    );
    assert!(denied.is_error && call.id == "g1" && listed.timestamp.to_string() == "2026-03-01T09:00:03Z");
    let about = session.about;
    assert_eq!((about.conversation.as_deref(), about.project.as_deref()), (Some(ID), Some("/srv/shop")));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("The files"), Some("gemini-x")));
    assert_eq!(about.started_at.unwrap().to_string(), "2026-03-01T09:00:00Z");
    assert_eq!(about.id.unwrap().to_string(), ID);
}

#[test]
fn messages_that_were_taken_back_are_reported() {
    let resumed = format!(r#"{{"$set":{{"messages":[{},{}]}}}}"#, user("u1", "one"), reply("g1", "1", ""));
    let lines = [
        header(""),
        user("u1", "one"),
        reply("g1", "1", ""),
        user("u2", "two"),
        reply("g2", "2", ""),
        r#"{"$rewindTo":"u2"}"#.into(),
        resumed,
        user("u3", "three"),
    ];
    let found = read(&lines);
    assert_eq!(found.sessions[0].role_texts(), ["user: one", "assistant: 1", "user: three"]);
    let skipped: Vec<_> = found.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(skipped, [4, 5]);
}

#[test]
fn a_compaction_loses_nothing_and_repeats_nothing() {
    let list = [
        user("n1", "<state_snapshot>All was fine.</state_snapshot>"),
        r#"{"id":"n2","type":"gemini","content":[{"text":"Got it. Thanks for the additional context!"}]}"#.into(),
        user("n3", "two"),
        r#"{"id":"n4","type":"gemini","content":[{"text":"2"},{"functionCall":{"id":"c1","name":"ls","args":{"n":1.10}}},{"functionCall":{"id":"c2","name":"rm","args":{}}}]}"#.into(),
        RESULTS_AGAIN.replace("\"r1\"", "\"n5\""),
    ];
    let set = format!(r#"{{"$set":{{"messages":[{}]}}}}"#, list.join(","));
    let mut lines =
        vec![header(""), user("u1", "one"), reply("g1", "1", ""), user("u2", "two"), reply("g2", "2", CALLS)];
    lines.extend([set.clone(), user("u3", "three"), set, reply("g3", "3", "")]);
    let session = only(read(&lines));
    let due = [
        "user: one",
        "assistant: 1",
        "user: two",
        "assistant: 2",
        "tool_result: a.py",
        "tool_result: denied",
        "system: All was fine.",
        "user: three",
        "assistant: 3",
    ];
    assert_eq!(session.role_texts(), due);
}

#[test]
fn the_text_of_a_file_that_was_named_is_an_attachment() {
    let line = r#"{"id":"u1","type":"user","timestamp":"2026-03-01T09:00:01Z","content":[{"text":"Look at @a.py"},{"text":"\n--- Content from referenced files ---"},{"text":"Content from @a.py:\n"},{"text":"x = 1"},{"text":"\n--- End of content ---"},{"inlineData":{"data":"aGk=","mimeType":"image/png"}}],"displayContent":[{"text":"Look at @a.py"}]}"#;
    let session = only(read(&[header(""), line.into(), reply("g1", "ok", "")]));
    assert_eq!(session.messages[0].content, "Look at @a.py");
    let names: Vec<_> = session.messages[0].attachments.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["image-1.png", "referenced-files.txt"]);
}

#[test]
fn chats_of_older_versions_are_one_object() {
    let text = format!(
        r#"{},"messages":[{},{},{{"type":"king","content":"x"}},{{"id":"e","type":"error","content":"no net"}}]}}"#,
        header("").trim_end_matches('}'),
        user("u1", "List them").replace(r#"[{"text":"List them"}]"#, r#""List them""#),
        reply("g1", "Sure.", CALLS),
    );
    for text in [text.clone(), text.replace("},{\"id\"", "},\n  {\"id\"").replacen(',', ",\n", 1)] {
        let found = import_as(Auto, text).unwrap();
        assert_eq!(found.format, Gemini);
        let texts = found.sessions[0].role_texts();
        assert_eq!(texts, ["user: List them", "assistant: Sure.", "tool_result: a.py", "tool_result: denied"]);
        assert_eq!(found.skipped.len(), 1, "{:?}", found.skipped);
    }
    let cut = format!(r#"{},"messages":[{},"#, header("").trim_end_matches('}'), user("u1", "Hello"));
    let found = import_as(Auto, cut).unwrap();
    assert_eq!((found.sessions[0].messages.len(), found.skipped.len()), (1, 1));
}

#[test]
fn a_subagent_is_a_side_chain_and_a_stray_file_nothing() {
    let session = only(read(&[
        header(r#","kind":"subagent","directories":["/srv/shop"]"#),
        user("u1", "Count  them"),
        reply("g1", "3", ""),
    ]));
    assert!(session.about.side_chain && session.messages[0].role == Role::User);
    assert_eq!(session.about.description.as_deref(), Some("Count them"));
    assert_eq!(session.about.project.as_deref(), Some("/srv/shop"));
    let stray = [
        header(""),
        r#"{"$set":{"messages":[{"id":"x","type":"user","content":[{"text":"<session_context>"}]}]}}"#.into(),
    ];
    assert!(import_as(Auto, stray.join("\n")).is_err());
}

#[test]
fn unknown_lines_are_reported() {
    let lines = [
        header(""),
        user("u1", "one"),
        r#"{"$merge":{}}"#.into(),
        "broken".into(),
        r#"{"id":"x","type":"king"}"#.into(),
    ];
    let found = read(&lines);
    let skipped: Vec<_> = found.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!((found.sessions[0].messages.len(), skipped), (1, vec![3, 4, 5]));
}
