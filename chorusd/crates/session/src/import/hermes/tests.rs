//! Tests of exported sessions.

use chorus_proto::SourceKind;
use chorus_proto::methods::import::ImportFormat::{Auto, Hermes};

use super::super::test_support::import_as;

fn session(id: &str, more: &str, messages: &[&str]) -> String {
    format!(
        r#"{{"id":"{id}","source":"cli","model":"m","started_at":1772355600.5,"cwd":"/srv/shop","title":"The files"{more},"messages":[{}]}}"#,
        messages.join(",\n")
    )
}

const QUESTION: &str =
    r#"{"id":1,"role":"user","content":"List them","timestamp":1772355601.5,"active":0,"compacted":1}"#;
const CALL: &str = r#"{"id":2,"role":"assistant","content":"Sure.","tool_calls":"[{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"terminal\",\"arguments\":\"{\\\"n\\\":1.10}\"}}]","reasoning":"hm","timestamp":1772355602}"#;
const RESULT: &str = r#"{"id":3,"role":"tool","content":"{\"output\":\"a.py\",\"exit_code\":3,\"error\":null}","tool_call_id":"c1","tool_name":"terminal","timestamp":1772355603}"#;

#[test]
fn a_session_comes_whole() {
    let picture = r#"{"id":4,"role":"user","content":"\u0000json:[{\"type\":\"text\",\"text\":\"See\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,aGk=\"}}]","timestamp":1772355604}"#;
    let notice = r#"{"id":5,"role":"user","content":"[ASYNC DELEGATION BATCH COMPLETE]","timestamp":1772355605}"#;
    let found =
        import_as(Auto, session("s", "", &[QUESTION, CALL, RESULT, picture, notice, r#"{"role":"king"}"#])).unwrap();
    assert_eq!((found.format, found.skipped.len()), (Hermes, 1));
    let session = &found.sessions[0];
    assert_eq!(session.role_texts()[..2], ["user: List them", "assistant: Sure."]);
    let [question, call, result, picture, notice] = &session.messages[..] else { panic!("five") };
    assert_eq!((question.id.as_str(), question.timestamp.to_string()), ("s-1", "2026-03-01T09:00:01.5Z".into()));
    assert_eq!(call.tool_calls[0].params.get(), r#"{"n":1.10}"#);
    assert!(call.provider.as_ref().unwrap().get().contains("hm"));
    assert_eq!((result.tool_call_id.as_deref(), result.name.as_deref()), (Some("c1"), Some("terminal")));
    assert!(result.is_error && result.content.contains("a.py"));
    assert_eq!((picture.content.as_str(), picture.attachments[0].name.as_str()), ("See", "image-1.png"));
    assert_eq!(notice.source.as_ref().unwrap().kind, SourceKind::Agent);
    let about = &session.about;
    assert_eq!((about.conversation.as_deref(), about.project.as_deref()), (Some("s"), Some("/srv/shop")));
    assert_eq!((about.description.as_deref(), about.model.as_deref()), (Some("The files"), Some("m")));
}

#[test]
fn a_compaction_loses_nothing_and_repeats_nothing() {
    let yes = |id: u32, at: u64| format!(r#"{{"id":{id},"role":"user","content":"yes","timestamp":{at}}}"#);
    let summary = r#"{"id":6,"role":"assistant","content":"[CONTEXT COMPACTION — REFERENCE ONLY] All fine.","timestamp":1772355700}"#;
    let rows = [
        QUESTION.to_owned(),
        CALL.into(),
        RESULT.into(),
        yes(4, 1_772_355_604),
        QUESTION.replace("\"id\":1", "\"id\":5"),
        summary.into(),
        yes(7, 1_772_355_700),
        yes(8, 1_772_355_800),
    ];
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    let found = import_as(Auto, session("s", "", &rows)).unwrap();
    let texts = found.sessions[0].role_texts();
    assert_eq!(texts.len(), 6, "{texts:?}");
    assert!(
        texts[3] == "user: yes" && texts[4].starts_with("system: [CONTEXT") && texts[5] == "user: yes",
        "{texts:?}"
    );
}

#[test]
fn several_sessions_and_subagents() {
    let child = session("b", r#","parent_session_id":"a""#, &[QUESTION]).replace("cli", "subagent");
    let branch = session("c", r#","parent_session_id":"a""#, &[QUESTION]);
    let text = format!("{}\n{child}\n{branch}\n", session("a", "", &[QUESTION, CALL]));
    let found = import_as(Auto, &text).unwrap();
    let abouts: Vec<_> = found.sessions.iter().map(|session| &session.about).collect();
    let [a, b, c] = abouts[..] else { panic!("three") };
    assert!(b.side_chain && b.conversation.as_deref() == Some("a/b") && b.parent_id == a.id);
    assert!(!c.side_chain && c.conversation.as_deref() == Some("c") && c.parent_id == a.id);
    let cut = import_as(Auto, &text[..text.len() - 20]).unwrap();
    assert_eq!(cut.skipped.len(), 1);
}

#[test]
fn the_totals_of_a_session_are_its_calls() {
    let text = r#"{"id":"20260101_1","source":"cli","model":"m","started_at":1767225600.0,"ended_at":1767229200.0,"input_tokens":180,"output_tokens":40,"cache_read_tokens":80,"cache_write_tokens":5,"api_call_count":2,"estimated_cost_usd":0.5,"actual_cost_usd":null,"messages":[{"id":1,"role":"user","content":"hi","timestamp":1767225600.0},{"id":2,"role":"assistant","content":"hello","timestamp":1767225601.0}]}"#;
    let found = import_as(Hermes, text).unwrap();
    let [call] = &found.sessions[0].calls[..] else { panic!("{:?}", found.sessions[0].calls) };
    assert_eq!((call.input_tokens, call.cache_read_tokens, call.cache_write_tokens), (265, 80, 5));
    assert_eq!((call.output_tokens, call.calls, call.cost_usd), (40, 2, Some(0.5)));
    assert_eq!(call.at.to_string(), "2026-01-01T01:00:00Z");
}
