//! The usage of model calls.

use super::{line, read, side, with};
use crate::import::ImportedCall;

/// A line of the reply `id`, with its usage.
fn reply(uuid: &str, parent: &str, id: &str, output: u64, stop: &str) -> String {
    let message = format!(
        r#""id":"{id}","model":"claude-opus-4-5-20251101","stop_reason":{stop},"usage":{{"input_tokens":10,"cache_creation_input_tokens":300,"cache_read_input_tokens":2000,"output_tokens":{output}}},"#
    );
    with("assistant", uuid, parent, &format!(r#"[{{"type":"text","text":"{uuid}"}}]"#), &message, "")
}

fn counts(calls: &[ImportedCall]) -> Vec<(u64, u64, u64, u64, bool)> {
    let of = |call: &ImportedCall| {
        (call.input_tokens, call.cache_read_tokens, call.cache_write_tokens, call.output_tokens, call.is_lower_bound)
    };
    calls.iter().map(of).collect()
}

#[test]
fn the_lines_of_a_reply_are_one_call_with_the_largest_count() {
    let memory = read(&[
        line("user", "a", "", r#""q""#),
        reply("b", "a", "m1", 1, "null"),
        reply("c", "b", "m1", 42, r#""tool_use""#),
        line("user", "d", "c", r#""go on""#),
        reply("e", "d", "m2", 1, "null"),
        reply("f", "e", "m2", 1, "null"),
    ]);
    let calls = &memory.sessions[0].calls;
    assert_eq!(counts(calls), [(2310, 2000, 300, 42, false), (2310, 2000, 300, 1, true)]);
    assert_eq!(calls[0].model.as_deref(), Some("claude-opus-4-5-20251101"));
}

#[test]
fn calls_on_an_abandoned_branch_count_and_those_of_a_side_chain_are_its_own() {
    let memory = read(&[
        line("user", "a", "", r#""q""#),
        reply("b", "a", "m1", 5, r#""end_turn""#),
        side(&line("user", "x", "", r#""task""#), ""),
        side(&reply("y", "x", "m3", 7, r#""end_turn""#), ""),
        reply("c", "a", "m2", 6, r#""end_turn""#),
    ]);
    let outputs = |at: usize| memory.sessions[at].calls.iter().map(|call| call.output_tokens).collect::<Vec<_>>();
    assert_eq!(memory.sessions[0].role_texts(), ["user: q", "assistant: c"]);
    assert_eq!((outputs(0), outputs(1)), (vec![5, 6], vec![7]));
}

#[test]
fn a_copy_in_another_file_has_the_same_keys() {
    let keys = |lines: &[String]| read(lines).sessions[0].calls.iter().map(|call| call.key).collect::<Vec<_>>();
    let lines = [line("user", "a", "", r#""q""#), reply("b", "a", "m1", 5, r#""end_turn""#)];
    // A resumed conversation has another id and other times.
    let copy = lines
        .clone()
        .map(|line| line.replace(r#""sessionId":"s""#, r#""sessionId":"t","timestamp":"2026-01-02T03:04:05Z""#));
    assert_eq!(keys(&lines), keys(&copy));
    assert_eq!(keys(&lines).len(), 1);
}

#[test]
fn lines_that_the_program_filled_in_are_no_calls() {
    let filler = with(
        "assistant",
        "b",
        "a",
        r#"[{"type":"text","text":"API Error"}]"#,
        r#""id":"x","model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0},"#,
        "",
    );
    assert_eq!(read(&[line("user", "a", "", r#""q""#), filler]).sessions[0].calls, []);
}
