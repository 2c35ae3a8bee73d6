//! Tests of Codex rollouts.

use chorus_proto::Role;
use chorus_proto::SourceKind::{Agent, Import};
use chorus_proto::methods::import::ImportFormat::{Auto, Codex};

use super::super::test_support::import_as;

/// A short rollout as the program writes it: parallel tool calls, thinking, events that repeat the messages.
const ROLLOUT: &str = r##"{"timestamp":"2025-11-02T10:00:00.000Z","type":"session_meta","payload":{"id":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2025-11-02T09:59:59.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.55.0","instructions":null,"source":"cli","git":{"branch":"main"}}}
{"timestamp":"2025-11-02T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"}]}}
{"timestamp":"2025-11-02T10:00:02.000Z","type":"turn_context","payload":{"cwd":"/w","approval_policy":"on-request","model":"gpt-5-codex","summary":"auto"}}
{"timestamp":"2025-11-02T10:00:02.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Look"},{"type":"input_image","image_url":"data:image/png;base64,aGk="}]}}
{"timestamp":"2025-11-02T10:00:02.000Z","type":"event_msg","payload":{"type":"user_message","message":"Look","kind":"plain"}}
{"timestamp":"2025-11-02T10:00:03.000Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"**Looking**"}],"content":null,"encrypted_content":"gAAA=="}}
{"timestamp":"2025-11-02T10:00:04.000Z","type":"response_item","payload":{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"I look."}]}}
{"timestamp":"2025-11-02T10:00:04.000Z","type":"event_msg","payload":{"type":"agent_message","message":"I look."}}
{"timestamp":"2025-11-02T10:00:05.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"],\"n\":1.10}","call_id":"call_1"}}
{"timestamp":"2025-11-02T10:00:05.000Z","type":"response_item","payload":{"type":"custom_tool_call","status":"completed","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch\n"}}
{"timestamp":"2025-11-02T10:00:06.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"{\"output\":\"a.py\\n\",\"metadata\":{\"exit_code\":0}}"}}
{"timestamp":"2025-11-02T10:00:06.000Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"call_2","output":{"content":"no such file","success":false}}}
{"timestamp":"2025-11-02T10:00:07.000Z","type":"response_item","payload":{"type":"local_shell_call","call_id":"call_3","status":"completed","action":{"type":"exec","command":["pwd"]}}}
{"timestamp":"2025-11-02T10:00:07.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_3","output":"/w"}}
{"timestamp":"2025-11-02T10:00:08.000Z","type":"compacted","payload":{"message":"They looked."}}
{"timestamp":"2025-11-02T10:00:09.000Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]}}
{"timestamp":"2025-11-02T10:00:10.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done"},{"type":"output_text","text":"so."}]}}
{"timestamp":"2025-11-02T10:00:11.000Z","type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}}}
{"timestamp":"2025-11-02T10:00:11.000Z","type":"response_item","payload":{"type":"ghost_snapshot","ghost_commit":{}}}
"##;

#[test]
fn a_rollout_comes_whole() {
    let memory = import_as(Auto, ROLLOUT).unwrap();
    assert_eq!((memory.format, &memory.skipped, memory.sessions.len()), (Codex, &vec![], 1));
    let session = &memory.sessions[0];
    assert_eq!(
        session.role_texts(),
        [
            "user: <environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
            "user: Look",
            "assistant: I look.",
            "tool_result: {\"output\":\"a.py\\n\",\"metadata\":{\"exit_code\":0}}",
            "tool_result: no such file",
            "assistant: ",
            "tool_result: /w",
            "system: They looked.",
            "system: Be brief.",
            "assistant: Done\nso.",
        ]
    );
    let [_, user, said, first, second, shell, ..] = &session.messages[..] else { panic!("too few") };
    assert_eq!(user.attachments[0].data.as_deref(), Some("aGk="));
    assert_eq!((&*said.id, said.timestamp.to_string().as_str()), ("msg_1", "2025-11-02T10:00:04Z"));
    let calls: Vec<_> = said.tool_calls.iter().map(|call| (&*call.id, &*call.name, call.params.get())).collect();
    assert_eq!(
        calls,
        [("call_1", "shell", r#"{"command":["ls"],"n":1.10}"#), ("call_2", "apply_patch", r#""*** Begin Patch\n""#)]
    );
    assert!(said.provider.as_ref().unwrap().get().contains(r#"{"codex":{"reasoning":[{"type":"reasoning""#));
    assert_eq!((first.tool_call_id.as_deref(), first.name.as_deref()), (Some("call_1"), Some("shell")));
    assert_eq!((second.name.as_deref(), second.is_error), (Some("apply_patch"), true));
    assert_eq!((&*shell.tool_calls[0].name, &*shell.tool_calls[0].id), ("local_shell", "call_3"));
    let last = session.messages.last().unwrap().provider.as_ref().unwrap().get();
    assert!(last.contains(r#""web_search_call":[{"type":"web_search_call""#), "{last}");
    let about = &session.about;
    assert_eq!(about.model.as_deref(), Some("gpt-5-codex"));
    assert_eq!(about.id.unwrap().to_string(), "7d444840-9dc0-41d1-b245-5ffdce74fad2");
    assert_eq!(about.started_at.unwrap().to_string(), "2025-11-02T09:59:59Z");
}

#[test]
fn an_older_one_without_wrappers_is_read() {
    let text = r#"{"id":"7d444840-9dc0-41d1-b245-5ffdce74fad2","timestamp":"2025-08-01T10:00:00.000Z","instructions":null,"git":null}
{"record_type":"state"}
{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"hi"}]}
{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null}
{"type":"function_call","id":"fc_1","name":"shell","arguments":"oops","call_id":"call_1"}
{"type":"function_call_output","call_id":"call_1","output":"out"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"bye"}]}
"#;
    let memory = import_as(Auto, text).unwrap();
    assert_eq!((memory.format, &memory.skipped), (Codex, &vec![]));
    let session = &memory.sessions[0];
    assert_eq!(session.role_texts(), ["user: hi", "assistant: ", "tool_result: out", "assistant: bye"]);
    assert_eq!(session.messages[1].tool_calls[0].params.get(), "\"oops\"");
    assert_eq!(session.messages[3].timestamp.to_string(), "2025-08-01T10:00:00Z");
    assert!(session.about.id.is_some());
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_comes_in() {
    let text = r#"{"timestamp":"2025-11-02T10:00:00Z","type":"response_item","payload":{"type":"message","role":"king","content":[]}}
{"timestamp":"2025-11-02T10:00:00Z","type":"response_item"}
{"timestamp":"2025-11-02T10:00:00Z","type":"response_item","payload":{"type":"function_call","call_id":"c"}}
{"timestamp":"2025-11-02T10:00:01Z","type":"response_item","payload":{"type":"reasoning","summary":[]}}
{"timestamp":"2025-11-02T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":"plain"}}
{"timestamp":"2025-11-02T10:00:02Z","type":"resp"#;
    let memory = import_as(Codex, text).unwrap();
    let lines: Vec<_> = memory.skipped.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 2, 3, 6], "{:?}", memory.skipped);
    let session = &memory.sessions[0];
    assert_eq!(session.role_texts(), ["assistant: ", "user: plain"], "thinking that nothing follows is kept");
    assert_eq!(session.messages[0].role, Role::Assistant);
}

/// A line with a token event in the form of codex-rs/protocol `TokenUsageInfo`: the totals and the counts of the last
/// call.
fn tokens(total: [u64; 3], last: Option<[u64; 3]>) -> String {
    let usage = |[input, cached, output]: [u64; 3]| {
        format!(
            r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output},"reasoning_output_tokens":1,"total_tokens":9}}"#
        )
    };
    let last = last.map(|last| format!(r#","last_token_usage":{}"#, usage(last))).unwrap_or_default();
    format!(
        r#"{{"timestamp":"2025-11-02T10:00:00Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{}{last},"model_context_window":272000}},"rate_limits":null}}}}"#,
        usage(total)
    )
}

fn item(payload: &str) -> String {
    format!(r#"{{"timestamp":"2025-11-02T10:00:00Z","type":"response_item","payload":{payload}}}"#)
}

fn said(role: &str, text: &str) -> String {
    item(&format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"output_text","text":"{text}"}}]}}"#))
}

fn called(id: &str) -> [String; 2] {
    [
        item(&format!(r#"{{"type":"function_call","name":"shell","arguments":"{{}}","call_id":"{id}"}}"#)),
        item(&format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"out"}}"#)),
    ]
}

/// Input, cached input and output tokens of each message.
fn costs(lines: &[String]) -> Vec<Option<[u64; 3]>> {
    let memory = import_as(Codex, lines.join("\n")).unwrap();
    assert_eq!(memory.skipped, []);
    let cost = |message: &chorus_proto::Message| {
        let usage = message.usage.as_ref()?;
        Some([usage.input_tokens?, usage.cache_read_tokens?, usage.output_tokens?])
    };
    memory.sessions[0].messages.iter().map(cost).collect()
}

#[test]
fn a_reply_has_the_tokens_of_its_call() {
    let [call, output] = called("1");
    let (first, second) = (tokens([10, 4, 2], Some([10, 4, 2])), tokens([30, 12, 5], Some([20, 8, 3])));
    let none =
        r#"{"timestamp":"2025-11-02T10:00:00Z","type":"event_msg","payload":{"type":"token_count","info":null}}"#;
    let due = [None, Some([10, 4, 2]), None, Some([20, 8, 3])];
    let (user, done) = (said("user", "q"), said("assistant", "done"));
    // After the call, after its results, and before the reply; repeated; and as the total alone.
    let list = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(costs(&list(&[&user, none, &call, &first, &first, &output, &done, &second])), due);
    assert_eq!(costs(&list(&[&user, &call, &output, &first, &done, &second, &second])), due);
    assert_eq!(costs(&list(&[&user, &first, &call, &output, &second, &done])), due);
    let sums = [user, call, tokens([10, 4, 2], None), output, done, tokens([30, 12, 5], None)];
    assert_eq!(costs(&sums), due);
}

#[test]
fn a_reply_without_tokens_waits_for_them_only_so_long() {
    let [call, output] = called("1");
    let mut lines = vec![said("user", "q"), call];
    lines.extend(std::iter::repeat_n(output, 300));
    lines.push(said("user", "and"));
    let found = costs(&lines);
    assert_eq!((found.len(), found.iter().flatten().count()), (303, 0));
}

#[test]
fn what_the_program_says_for_the_user_is_marked() {
    let lines = [
        said("user", "<environment_context>x</environment_context>"),
        said("user", "# AGENTS.md instructions for /w"),
        said("user", "<turn_aborted>"),
        said("user", "what is <environment_context>?"),
    ];
    let memory = import_as(Codex, lines.join("\n")).unwrap();
    let kinds: Vec<_> =
        memory.sessions[0].messages.iter().map(|message| message.source.as_ref().unwrap().kind).collect();
    assert_eq!(kinds, [Agent, Agent, Agent, Import]);
}

/// A `token_count` event with a total and, if it is not empty, the last call.
fn token_count(total: (u64, u64, u64), last: Option<(u64, u64, u64)>) -> String {
    let counts = |(input, cached, output): (u64, u64, u64)| {
        format!(r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output}}}"#)
    };
    let last = last.map_or_else(String::new, |last| format!(r#","last_token_usage":{}"#, counts(last)));
    format!(
        r#"{{"timestamp":"2025-11-02T10:00:00Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{}{last}}}}}}}"#,
        counts(total)
    )
}

fn outputs(lines: &[String]) -> Vec<(u64, u64, u64)> {
    let start = r#"{"timestamp":"2025-11-02T10:00:00Z","type":"session_meta","payload":{"id":"7d444840-9dc0-41d1-b245-5ffdce74fad2"}}
{"timestamp":"2025-11-02T10:00:00Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}"#;
    let memory = import_as(Codex, format!("{start}\n{}", lines.join("\n"))).unwrap();
    let calls = memory.sessions[0].calls.iter();
    calls.map(|call| (call.input_tokens, call.cache_read_tokens, call.output_tokens)).collect()
}

#[test]
fn totals_count_by_their_differences() {
    let events = [
        r#"{"timestamp":"2025-11-02T10:00:00Z","type":"event_msg","payload":{"type":"token_count","info":null}}"#
            .into(),
        token_count((154, 64, 50), Some((154, 64, 50))),
        // It is written twice.
        token_count((154, 64, 50), Some((154, 64, 50))),
        token_count((455, 128, 100), Some((301, 64, 50))),
        // An event between was lost.
        token_count((1455, 228, 200), Some((500, 50, 50))),
        // A compaction estimates the new context, without a call.
        token_count((1455, 228, 200), Some((0, 0, 0))),
    ];
    assert_eq!(outputs(&events), [(154, 64, 50), (301, 64, 50), (1000, 100, 100)]);
    let without_last = [token_count((100, 0, 10), None), token_count((250, 50, 25), None)];
    assert_eq!(outputs(&without_last), [(100, 0, 10), (150, 50, 15)]);
}

#[test]
fn totals_that_start_again_count_whole() {
    let falls = [token_count((455, 128, 100), Some((455, 128, 100))), token_count((352, 64, 50), Some((352, 64, 50)))];
    assert_eq!(outputs(&falls), [(455, 128, 100), (352, 64, 50)]);
    let rises =
        [token_count((455, 128, 100), Some((455, 128, 100))), token_count((900, 200, 150), Some((900, 200, 150)))];
    assert_eq!(outputs(&rises), [(455, 128, 100), (900, 200, 150)]);
    // A fork starts with the total of its parent.
    assert_eq!(outputs(&[token_count((9000, 800, 700), Some((300, 20, 10)))]), [(300, 20, 10)]);
}

#[test]
fn a_fork_that_copies_its_parent_has_the_keys_of_the_parent() {
    let turn = r#"{"timestamp":"2025-11-02T10:00:00Z","type":"turn_context","payload":{"turn_id":"t1","model":"gpt-5-codex"}}"#;
    let start = |id: &str| {
        format!(
            r#"{{"timestamp":"2025-11-02T10:00:00Z","type":"session_meta","payload":{{"id":"{id}","timestamp":"2025-11-02T10:00:00Z"}}}}"#
        )
    };
    let said = r#"{"timestamp":"2025-11-02T10:00:00Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}"#;
    let keys = |lines: &[&str]| {
        let memory = import_as(Codex, lines.join("\n")).unwrap();
        memory.sessions[0].calls.iter().map(|call| call.key).collect::<Vec<_>>()
    };
    let (parent, fork) = (start("7d444840-9dc0-41d1-b245-5ffdce74fad2"), start("8d444840-9dc0-41d1-b245-5ffdce74fad2"));
    let (first, next) = (token_count((154, 64, 50), None), token_count((455, 128, 100), None));
    let later = next.replace("2025-11-02T10:00:00Z", "2025-11-09T10:00:00Z");
    for turn in [turn, ""] {
        let of_parent = keys(&[&parent, turn, said, &first, &next]);
        let of_fork = keys(&[&fork, &parent, turn, said, &first, &later]);
        assert_eq!((of_parent.len(), &of_fork), (2, &of_parent));
        assert_ne!(keys(&[&fork, said, &first])[0], of_parent[0], "another conversation");
    }
}
