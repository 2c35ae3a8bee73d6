//! Tests of the rules for trees and blocks, each with a few lines.

use chorus_proto::Role;
use chorus_proto::methods::import::ImportFormat::ClaudeCode;

use super::super::test_support::{ImportedSession, RecordingSink, import_as, now};

mod authorship;
mod calls;
mod queued_messages;
mod qwen;

/// A line whose message has `content`. `parent` is a uuid or empty.
fn line(kind: &str, uuid: &str, parent: &str, content: &str) -> String {
    with(kind, uuid, parent, content, "", "")
}

fn with(kind: &str, uuid: &str, parent: &str, content: &str, message: &str, outer: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("{parent:?}") };
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"isSidechain":false,"sessionId":"s",{outer}"message":{{"role":"{kind}",{message}"content":{content}}}}}"#
    )
}

/// A part of the reply `id`.
fn part(uuid: &str, parent: &str, id: &str, block: &str) -> String {
    with("assistant", uuid, parent, &format!("[{block}]"), &format!(r#""id":"{id}","#), "")
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"tool-{id}","input":{{"x":1.0}}}}"#)
}

fn answer(uuid: &str, parent: &str, id: &str) -> String {
    line("user", uuid, parent, &format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"out {id}"}}]"#))
}

fn side(line: &str, outer: &str) -> String {
    line.replace(r#""isSidechain":false,"#, &format!(r#""isSidechain":true,{outer}"#))
}

fn read(lines: &[String]) -> RecordingSink {
    import_as(ClaudeCode, lines.join("\n")).unwrap()
}

fn main_of(lines: &[String]) -> ImportedSession {
    let mut memory = read(lines);
    assert_eq!(memory.skipped, []);
    memory.sessions.remove(0)
}

#[test]
fn the_newest_leaf_wins_and_abandoned_branches_are_reported() {
    let memory = read(&[
        line("user", "a", "", r#""q""#),
        line("assistant", "b", "a", r#""first try""#),
        line("user", "c", "b", r#""no""#),
        line("assistant", "d", "a", r#""second try""#),
    ]);
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "assistant: second try"]);
    let lines: Vec<_> = memory.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 3]);
    assert!(memory.skipped[0].1.contains("abandoned"));
    assert_eq!(memory.sessions[0].messages[1].id, "d");
}

#[test]
fn a_compaction_is_crossed_by_its_logical_parent() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null,"logicalParentUuid":"a","content":"Conversation compacted"}"#;
    let memory = read(&[
        line("user", "a", "", r#""q""#),
        line("assistant", "b", "a", r#""left""#),
        boundary.into(),
        line("user", "d", "c", r#""on""#),
    ]);
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "system: Conversation compacted", "user: on"]);
    assert_eq!(memory.skipped.len(), 1);
}

#[test]
fn without_a_parent_a_line_continues_what_stood_before() {
    let found = main_of(&[
        line("user", "a", "", r#""1""#),
        line("assistant", "b", "", r#""2""#),
        line("user", "c", "not-in-the-file", r#""3""#),
        r#"{"type":"user","message":{"role":"user","content":"4"}}"#.into(),
    ]);
    assert_eq!(found.role_texts(), ["user: 1", "assistant: 2", "user: 3", "user: 4"]);
    assert_eq!((found.messages[3].id.as_str(), found.messages[3].timestamp), ("new-1", now()));
}

#[test]
fn lines_of_one_reply_become_one_message() {
    let found = main_of(&[
        line("user", "a", "", r#""q""#),
        part("b", "a", "m", r#"{"type":"thinking","thinking":"hm","signature":"s1"}"#),
        part("c", "b", "m", r#"{"type":"text","text":"one"}"#),
        with(
            "assistant",
            "d",
            "c",
            r#"[{"type":"text","text":"two"},{"type":"tool_use","id":"t","name":"ls","input":{"n":1.50}}]"#,
            r#""id":"m","model":"claude-x","usage":{"input_tokens":5,"output_tokens":7,"cache_read_input_tokens":3},"#,
            r#""timestamp":"2025-01-01T00:00:00Z","#,
        ),
        answer("e", "d", "t"),
    ]);
    assert_eq!(found.role_texts(), ["user: q", "assistant: one\n\ntwo", "tool_result: out t"]);
    let reply = &found.messages[1];
    assert_eq!(reply.id, "b");
    assert_eq!(
        reply.provider.as_ref().unwrap().get(),
        r#"{"anthropic":{"blocks":[{"type":"thinking","thinking":"hm","signature":"s1"}]}}"#
    );
    assert_eq!(reply.tool_calls[0].params.get(), r#"{"n":1.50}"#);
    let usage = reply.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(5), Some(7), Some(3)));
    assert_eq!(found.messages[2].name.as_deref(), Some("ls"));
    assert_eq!(found.about.model.as_deref(), Some("claude-x"));
    assert_eq!(found.about.started_at, "2025-01-01T00:00:00Z".parse().ok());
}

#[test]
fn parallel_calls_keep_all_their_results() {
    // Each result is the child of the line of its own call. The conversation continues from the last result, or from
    // the first.
    for on in ["r1", "r2"] {
        let found = main_of(&[
            line("user", "a", "", r#""q""#),
            part("b", "a", "m", &call("1")),
            part("c", "b", "m", &call("2")),
            answer("r1", "b", "1"),
            answer("r2", "c", "2"),
            part("d", on, "n", r#"{"type":"text","text":"done"}"#),
        ]);
        assert_eq!(
            found.role_texts(),
            ["user: q", "assistant: ", "tool_result: out 1", "tool_result: out 2", "assistant: done"],
            "{on}"
        );
        let calls: Vec<_> = found.messages[1].tool_calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(calls, ["1", "2"]);
    }
}

#[test]
fn a_result_between_the_lines_of_a_reply_comes_behind_it() {
    let found = main_of(&[
        line("user", "a", "", r#""q""#),
        part("b", "a", "m", &call("1")),
        answer("r1", "b", "1"),
        part("c", "r1", "m", &call("2")),
        answer("r2", "c", "2"),
    ]);
    assert_eq!(found.role_texts(), ["user: q", "assistant: ", "tool_result: out 1", "tool_result: out 2"]);
    assert_eq!(found.messages[1].tool_calls.len(), 2);
}

#[test]
fn a_late_result_is_not_the_leaf() {
    let found = main_of(&[
        line("user", "a", "", r#""q""#),
        part("b", "a", "m", &call("1")),
        part("c", "b", "m", &call("2")),
        answer("r2", "c", "2"),
        part("d", "r2", "n", r#"{"type":"text","text":"done"}"#),
        answer("r1", "b", "1"),
    ]);
    assert_eq!(
        found.role_texts(),
        ["user: q", "assistant: ", "tool_result: out 2", "tool_result: out 1", "assistant: done"]
    );
}

#[test]
fn a_retried_result_counts_once() {
    let memory = read(&[
        line("user", "a", "", r#""q""#),
        part("b", "a", "m", &call("1")),
        answer("r1", "b", "1"),
        part("x", "r1", "n", r#"{"type":"text","text":"old"}"#),
        answer("r2", "b", "1"),
        part("y", "r2", "o", r#"{"type":"text","text":"new"}"#),
    ]);
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "assistant: ", "tool_result: out 1", "assistant: new"]);
    assert_eq!(memory.sessions[0].messages[2].id, "r2");
    let lines: Vec<_> = memory.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 4]);
}

#[test]
fn ids_that_come_again_later_do_not_pull_turns_together() {
    let found = main_of(&[
        line("user", "a", "", r#""1""#),
        part("b", "a", "m", &call("t")),
        answer("c", "b", "t"),
        line("user", "d", "c", r#""2""#),
        part("e", "d", "m", &call("t")),
        answer("f", "e", "t"),
    ]);
    assert_eq!(
        found.role_texts(),
        ["user: 1", "assistant: ", "tool_result: out t", "user: 2", "assistant: ", "tool_result: out t"]
    );
}

#[test]
fn side_chains_are_sessions_of_their_own() {
    let memory = read(&[
        line("user", "a", "", r#""main""#),
        side(&line("user", "s1", "", r#""look  into\nthis""#), ""),
        side(&line("assistant", "s2", "s1", r#""looked""#), ""),
        side(&line("user", "t1", "", r#""another""#), ""),
        line("assistant", "b", "a", r#""end""#),
        side(&line("user", "u1", "a", r#""by name""#), r#""agentId":"x","#),
        side(&line("user", "u2", "", r#""goes on""#), r#""agentId":"x","#),
    ]);
    assert_eq!(memory.skipped, []);
    let talks: Vec<_> = memory.sessions.iter().map(ImportedSession::role_texts).collect();
    assert_eq!(
        talks,
        [
            vec!["user: main", "assistant: end"],
            vec!["user: look  into\nthis", "assistant: looked"],
            vec!["user: another"],
            vec!["user: by name", "user: goes on"],
        ]
    );
    let about = &memory.sessions[1].about;
    assert!(about.side_chain && !memory.sessions[0].about.side_chain);
    assert_eq!(
        (about.tags.as_slice(), about.description.as_deref()),
        (&["side-chain".into()][..], Some("look into this"))
    );
}

#[test]
fn of_one_uuid_the_first_readable_line_stands() {
    let memory = read(&[
        line("user", "a", "", r#""1""#),
        line("assistant", "b", "a", r#""2""#),
        line("assistant", "b", "a", r#""again""#),
        r#"{"type":"user","uuid":"c","parentUuid":"b","message":"broken"}"#.into(),
        line("user", "c", "b", r#""3""#),
    ]);
    assert_eq!(memory.sessions[0].role_texts(), ["user: 1", "assistant: 2", "user: 3"]);
    assert_eq!(memory.skipped, [(4, "its message is not an object".into()), (3, "the same uuid as line 2".into())]);
}

#[test]
fn a_summary_describes_the_conversation_it_was_made_of() {
    let summary = |text: &str, leaf: &str| format!(r#"{{"type":"summary","summary":"{text}","leafUuid":"{leaf}"}}"#);
    let talk = [line("user", "a", "", r#""q""#), side(&line("user", "s", "", r#""x""#), "")];
    let described = |lines: &[String]| read(&[lines, &talk].concat()).sessions[0].about.description.clone();
    assert_eq!(described(&[summary("Mine", "a"), summary("Other", "z")]).as_deref(), Some("Mine"));
    assert_eq!(described(&[summary("Other", "z")]).as_deref(), Some("Other"));
    assert_eq!(described(&[summary("One", "y"), summary("Two", "z")]), None);
    assert_eq!(described(&[summary("Side", "s")]), None);
    let named = r#"{"type":"custom-title","customTitle":"Named","sessionId":"s"}"#;
    assert_eq!(described(&[named.into(), summary("Mine", "a")]).as_deref(), Some("Named"));
}

#[test]
fn bookkeeping_is_silent_and_carries_the_tree_and_the_unknown_is_named() {
    let memory = read(&[
        r#"{"type":"file-history-snapshot","messageId":"x","snapshot":{}}"#.into(),
        line("user", "a", "", r#""q""#),
        r#"{"type":"progress","uuid":"p","parentUuid":"a","data":{}}"#.into(),
        r#"{"type":"novelty","uuid":"n","parentUuid":"p"}"#.into(),
        r#"{"type":"system","subtype":"turn_duration","uuid":"t","parentUuid":"n","content":"3s"}"#.into(),
        line("assistant", "b", "t", r#""r""#),
        "42".into(),
        r#"{"silly":"this"}"#.into(),
        "{\"type\":".into(),
        line("assistant", "c", "b", "[]"),
        line("assistant", "d", "c", "[7]"),
    ]);
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "assistant: r"]);
    let reasons: Vec<_> = memory.skipped.iter().map(|(line, reason)| format!("{line} {reason}")).collect();
    assert_eq!(
        reasons,
        [
            "7 not a JSON object",
            "8 not a line of a transcript: it has no type",
            "9 broken JSON: EOF while parsing a value",
            "10 its message is empty",
            "11 its content has no readable block",
            r#"4 unknown type of line "novelty": 1 line without a message"#
        ]
    );
}

#[test]
fn lines_of_a_session_on_another_device_are_silent() {
    let memory = read(&[
        r#"{"type":"bridge-session","sessionId":"s","bridgeSessionId":"cse_1","lastSequenceNum":0}"#.into(),
        line("user", "a", "", r#""q""#),
        r#"{"type":"bridge-session","sessionId":"s","bridgeSessionId":"cse_1","lastSequenceNum":7}"#.into(),
        line("assistant", "b", "a", r#""r""#),
    ]);
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "assistant: r"]);
    assert_eq!(memory.skipped, []);
}

#[test]
fn results_come_before_the_words_of_their_line() {
    let content = r#"[{"type":"text","text":"and now?"},
        {"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},
        {"type":"tool_result","tool_use_id":"2"},
        {"type":"image","source":{"type":"url","url":"https://x/y.png"}}]"#
        .replace('\n', "");
    let found = main_of(&[part("a", "", "m", &[call("1"), call("2")].join(",")), line("user", "b", "a", &content)]);
    assert_eq!(found.role_texts(), ["assistant: ", "tool_result: a\nb", "tool_result: ", "user: and now?"]);
    let ids: Vec<_> = found.messages.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "b-2", "b-3"]);
    assert!(found.messages[1].is_error && !found.messages[2].is_error);
    assert_eq!(found.messages[1].attachments[0].data.as_deref(), Some("aGk="));
    assert_eq!(found.messages[3].attachments[0].url.as_deref(), Some("https://x/y.png"));
    assert_eq!(found.messages[2].name.as_deref(), Some("tool-2"));
    assert_eq!(found.messages[3].source.as_ref().unwrap().format.as_deref(), Some("claude-code"));
}

#[test]
fn words_behind_the_leaf_by_the_system_belong_to_it() {
    let note = |uuid: &str, parent: &str| {
        format!(
            r#"{{"type":"system","uuid":"{uuid}","parentUuid":"{parent}","subtype":"local_command","content":"{uuid}"}}"#
        )
    };
    let memory = read(&[
        line("user", "a", "", r#""q""#),
        line("assistant", "b", "a", r#""r""#),
        note("n1", "b"),
        note("n2", "n1"),
        note("late", "a"),
    ]);
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "assistant: r", "system: n1", "system: n2"]);
    assert_eq!(memory.skipped.len(), 1);
}

#[test]
fn links_forward_and_in_circles_lose_nothing() {
    let forward = main_of(&[
        line("user", "a", "", r#""1""#),
        line("user", "c", "b", r#""3""#),
        line("assistant", "b", "a", r#""2""#),
    ]);
    assert_eq!(forward.role_texts(), ["user: 1", "assistant: 2", "user: 3"]);
    let circle = main_of(&[
        line("user", "a", "c", r#""1""#),
        line("assistant", "b", "a", r#""2""#),
        line("user", "c", "b", r#""3""#),
        line("user", "d", "d", r#""4""#),
    ]);
    assert_eq!(circle.role_texts(), ["user: 1", "assistant: 2", "user: 3", "user: 4"]);
    // The line before the cycle becomes the parent of its first line, and leads to the second cycle through the first.
    let one = [("a", "c"), ("b", "c"), ("c", "b")];
    let two = [("a", "g"), ("b", "c"), ("c", "b"), ("d", ""), ("e", ""), ("f", "g"), ("g", "f")];
    for links in [&one[..], &two] {
        let lines: Vec<_> =
            links.iter().map(|(uuid, parent)| line("user", uuid, parent, &format!("{uuid:?}"))).collect();
        let aside: Vec<_> = lines.iter().map(|line| side(line, r#""agentId":"x","#)).collect();
        for memory in [read(&lines), read(&aside)] {
            let said: usize = memory.sessions.iter().map(|found| found.messages.len()).sum();
            assert_eq!(said + memory.skipped.len(), links.len(), "{:?}", memory.skipped);
        }
    }
}

/// Each line is visited once. If every line started a walk of its own, these files would take minutes, and a file of a
/// few megabytes hours.
#[test]
fn files_that_lead_forward_or_in_circles_all_over_are_read_like_any_other() {
    const MANY: usize = 20_000;
    let next = |n: usize| if n + 1 == MANY { "a".to_owned() } else { (n + 1).to_string() };
    let note = |uuid: &str, parent: &str| format!(r#"{{"type":"progress","uuid":"{uuid}","parentUuid":"{parent}"}}"#);
    let aside = |uuid: &str, parent: &str| side(&line("user", uuid, parent, &format!("{uuid:?}")), r#""agentId":"x","#);

    let mut forward = vec![aside("a", "")];
    forward.extend((0..MANY).map(|n| aside(&n.to_string(), &next(n))));
    let backwards = std::iter::once("user: a".to_owned()).chain((0..MANY).rev().map(|n| format!("user: {n}")));
    assert!(backwards.eq(main_of(&forward).role_texts()));

    let mut notes = vec![line("user", "a", "", r#""q""#)];
    notes.extend((0..MANY).map(|n| note(&n.to_string(), &next(n))));
    notes.push(line("assistant", "b", "0", r#""r""#));
    assert_eq!(main_of(&notes).role_texts(), ["user: q", "assistant: r"]);

    let pairs = (0..MANY).map(|n| (format!("{n}a"), format!("{n}b")));
    let of_notes = pairs.clone().flat_map(|(a, b)| [note(&a, &b), note(&b, &a)]);
    assert_eq!(main_of(&of_notes.chain([notes[0].clone()]).collect::<Vec<_>>()).role_texts(), ["user: q"]);
    let of_talk: Vec<_> = pairs.flat_map(|(a, b)| [aside(&a, &b), aside(&b, &a)]).collect();
    let found = main_of(&of_talk).role_texts();
    let in_order = (0..MANY).flat_map(|n| ["a", "b"].map(|half| format!("user: {n}{half}")));
    assert!(in_order.eq(found));
}

#[test]
fn marks_and_line_ends_of_other_systems_and_bytes_that_are_no_text() {
    let mut file = format!("\u{feff}{}\r\n", line("user", "a", "", r#""q""#)).into_bytes();
    file.extend(b"{\"type\":\"user\",\"uuid\":\"\xff\"}\r\n");
    file.extend(line("assistant", "b", "a", r#""r""#).into_bytes());
    let memory = import_as(ClaudeCode, &file).unwrap();
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "assistant: r"]);
    assert_eq!(memory.skipped, [(2, "not valid UTF-8".into())]);
}

#[test]
fn thinking_alone_and_redacted_is_kept() {
    let found = main_of(&[
        line("user", "a", "", r#""q""#),
        part("b", "a", "m", r#"{"type":"redacted_thinking","data":"AAA="}"#),
    ]);
    assert_eq!(found.messages[1].role, Role::Assistant);
    assert!(found.messages[1].provider.as_ref().unwrap().get().contains(r#""data":"AAA=""#));
}

#[test]
fn lines_of_unknown_types_without_a_message_are_no_alarm_unless_they_are_the_majority() {
    let note = r#"{"type":"note-of-tomorrow","about":"x"}"#.to_owned();
    let said = [line("user", "a", "", r#""q""#), line("assistant", "b", "a", r#""r""#)];
    let memory = read(&[said[0].clone(), note.clone(), said[1].clone(), note.clone()]);
    assert_eq!((memory.skipped.len(), memory.left_out), (1, 1), "once for each type: {:?}", memory.skipped);
    assert!(memory.skipped[0].1.contains("2 lines"), "{:?}", memory.skipped);
    let memory = read(&[said[0].clone(), note.clone(), said[1].clone(), note.clone(), note]);
    assert_eq!((memory.skipped.len(), memory.left_out), (3, 0), "{:?}", memory.skipped);
    let with_message = r#"{"type":"turn-of-tomorrow","message":{}}"#.to_owned();
    let memory = read(&[said[0].clone(), with_message, said[1].clone()]);
    assert_eq!((memory.skipped.len(), memory.left_out), (1, 0));
    let known = ["api-request", "api-request-blob", "api-request-shape", "cost-state", "tools-used"]
        .map(|name| format!(r#"{{"type":"{name}","message":{{}}}}"#));
    assert_eq!(main_of(&[&said[..], &known].concat()).messages.len(), 2);
}
