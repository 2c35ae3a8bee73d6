//! Tests of sessions of pi and OpenClaw.

use chorus_proto::methods::import::ImportFormat::{Auto, Pi};

use super::super::test_support::{RecordingSink, import_as};

const HEADER: &str = r#"{"type":"session","version":3,"id":"01a219ab-90e2-72f2-9b05-93944b7d8c10","timestamp":"2026-03-01T09:00:00Z","cwd":"/srv/shop"}"#;

fn message(id: &str, parent: Option<&str>, message: &str) -> String {
    let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("\"{parent}\""));
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-03-01T09:00:01Z","message":{{{message}}}}}"#
    )
}

fn said(role: &str, text: &str) -> String {
    format!(r#""role":"{role}","content":[{{"type":"text","text":"{text}"}}]"#)
}

fn read(lines: &[String]) -> RecordingSink {
    let found = import_as(Auto, lines.join("\n")).unwrap();
    assert_eq!((found.format, found.sessions.len()), (Pi, 1));
    found
}

#[test]
fn a_session_comes_whole() {
    let call = r#""role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"text","text":"Sure."},{"type":"toolCall","id":"c1","name":"ls","arguments":{"n":1.10}}],"provider":"p","model":"m","usage":{"input":10,"output":5,"cacheRead":3,"cacheWrite":4,"cost":{"total":0.5}}"#;
    let result = r#""role":"toolResult","toolCallId":"c1","toolName":"ls","content":[{"type":"text","text":"a.py"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"isError":true"#;
    let found = read(&[
        HEADER.into(),
        r#"{"type":"model_change","id":"a","parentId":null,"timestamp":"2026-03-01T09:00:00Z","provider":"p","modelId":"first"}"#.into(),
        message("s", Some("a"), r#""role":"system","content":"","sections":{}"#),
        message("b", Some("s"), &said("user", "List them")),
        message("c", Some("b"), call),
        message("d", Some("c"), result),
        r#"{"type":"compaction","id":"e","parentId":"d","timestamp":"2026-03-01T09:00:04Z","summary":"All was listed.","firstKeptEntryId":"d"}"#.into(),
        r#"{"type":"session_info","id":"f","parentId":"e","timestamp":"2026-03-01T09:00:05Z","name":"The files"}"#.into(),
        r#"{"type":"surprise","id":"g","parentId":"f"}"#.into(),
        message("h", Some("g"), r#""role":"user","content":"Thanks""#),
    ]);
    let session = &found.sessions[0];
    let due = ["user: List them", "assistant: Sure.", "tool_result: a.py", "system: All was listed.", "user: Thanks"];
    assert_eq!(session.role_texts(), due);
    assert_eq!(found.skipped.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [9]);
    let [_, reply, result, ..] = &session.messages[..] else { panic!("five") };
    assert_eq!((reply.id.as_str(), reply.tool_calls[0].params.get()), ("c", r#"{"n":1.10}"#));
    assert!(reply.provider.as_ref().unwrap().get().contains("thinkingSignature"));
    let usage = reply.usage.clone().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(17), Some(5), Some(3)));
    assert_eq!((result.id.as_str(), result.name.as_deref(), result.is_error), ("d", Some("ls"), true));
    assert_eq!(result.attachments[0].name, "image-1.png");
    let about = &session.about;
    assert_eq!((about.program.as_deref(), about.project.as_deref()), (Some("pi"), Some("/srv/shop")));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("The files"), Some("p/m")));
}

#[test]
fn the_last_entry_ends_the_conversation() {
    let mut lines = vec![
        HEADER.to_owned(),
        message("a", None, &said("user", "one")),
        message("b", Some("a"), &said("assistant", "1")),
        message("c", Some("b"), &said("user", "two")),
        message("d", Some("b"), &said("user", "instead")),
    ];
    let found = read(&lines);
    assert_eq!(found.sessions[0].role_texts(), ["user: one", "assistant: 1", "user: instead"]);
    assert_eq!(found.skipped, [(4, "on a branch that was abandoned".to_owned())]);
    lines.push(r#"{"type":"leaf","id":"e","parentId":"d","targetId":"c"}"#.into());
    assert_eq!(read(&lines).sessions[0].role_texts(), ["user: one", "assistant: 1", "user: two"]);
    // A parent that is missing, and one that leads round in a circle.
    lines.push(message("f", Some("lost"), &said("user", "three")));
    lines.push(message("g", Some("g"), &said("user", "four")));
    let texts = read(&lines).sessions[0].role_texts();
    assert_eq!(texts, ["user: one", "assistant: 1", "user: instead", "user: three", "user: four"]);
}

#[test]
fn first_versions_and_openclaw() {
    let old = [
        HEADER.replace(r#""version":3,"#, "").replace("}", r#","provider":"p","modelId":"m"}"#),
        message("x", None, &said("user", "one")).replace(r#""id":"x","parentId":null,"#, ""),
        message("x", None, &said("assistant", "1")).replace(r#""id":"x","parentId":null,"#, ""),
    ];
    assert_eq!(read(&old).sessions[0].role_texts(), ["user: one", "assistant: 1"]);
    let custom = r#"{"type":"custom","customType":"openclaw.cache-ttl","data":{},"id":"b","parentId":"a"}"#;
    let found = read(&[HEADER.replace(":3", ":5"), message("a", None, &said("user", "one")), custom.into()]);
    assert_eq!(found.sessions[0].about.program.as_deref(), Some("openclaw"));
    assert!(found.skipped[0].1.contains("version 5"), "{:?}", found.skipped);
}

#[test]
fn a_copy_names_the_session_that_it_is_from() {
    let parent = "01a219ab-90e2-72f2-9b05-000000000001";
    let header = HEADER.replace("}", &format!(r#","parentSession":"/h/2026-03-01T09-00-00-000Z_{parent}.jsonl"}}"#));
    let found = read(&[header, message("a", None, &said("user", "one"))]);
    assert_eq!(found.sessions[0].about.parent_id.unwrap().to_string(), parent);
}
