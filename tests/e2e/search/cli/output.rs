//! Output on a pipe: the hits, the commands for the first, and notices.

use chorus_tests::ctl::{chorusctl, run_command};
use serde_json::json;

use super::{finds, hit, result};
use crate::home;

const HINT: &str = "hint: show the first result: `chorusctl show 9f1c27d4 --around 16`; continue from there: \
                    `chorusctl restore 9f1c27d4 --at 16`, or in a branch: `chorusctl session branch 9f1c27d4 --at 16`\n";

#[test]
fn each_hit_is_a_place_and_a_text() {
    let home = home();
    let conversation = json!({"id": "0197a8c2-2e00-7b10-8d44-5a6b7c8d9e0f", "name": "review"});
    let long = format!("{}Redis{}", "before ".repeat(40), " after".repeat(40));
    let calls = finds(
        &home,
        result(vec![
            hit(json!({})),
            hit(json!({"agent_name": "claude-code", "imported": true, "role": "assistant", "snippet": long})),
            hit(json!({"session": null, "title": null, "conversation": conversation, "role": "tool_result"})),
            hit(json!({"message": null, "role": null, "speaker": null, "title": null})),
        ]),
    );
    let output = chorusctl(&home, ["search", "why", "did we drop", "redis"]);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines[0], "9f1c27d4  Why the import drops rows · message 16 · mara · 2026-03-02 15:10");
    assert_eq!(lines[1], "    … we drop Redis, because the pool runs dry twice a day …");
    assert!(lines[2].contains(" · message 16 · claude-code · assistant · "), "{lines:?}");
    assert_eq!(lines[3].trim(), long.trim(), "a pipe cuts nothing");
    assert_eq!(lines[4], "@review  live conversation · message 16 · tool result · 2026-03-02 15:10");
    assert_eq!(lines[6], "9f1c27d4  2026-03-02_rows · 2026-03-02 15:10");
    assert_eq!((lines.len(), output.status, &*output.stderr), (8, 0, HINT));
    assert_eq!(calls.of("search"), [json!({"own": true, "query": "why did we drop redis"})]);
    let quiet = chorusctl(&home, ["search", "redis", "--quiet"]);
    assert_eq!((quiet.stdout, &*quiet.stderr), (output.stdout, ""));
}

#[test]
fn every_option_reaches_the_daemon() {
    let home = home();
    let calls = finds(&home, result(vec![]));
    let run = |line: &str| chorusctl(&home, line.split(' ')).expect_success();
    run(
        "--agent api -C review search redis -n 5 --since 7d --until 2026-03-03 --tag import --role tool_result --tool bash \
         --source claude-code --model a/b --explain",
    );
    run("search redis --all-agents");
    run("search redis --project ledger");
    assert_eq!(
        calls.of("search"),
        [
            json!({"agent": "api", "conversation": "review", "query": "redis", "limit": 5, "since": "7d",
                "until": "2026-03-03", "tag": "import", "role": "tool_result", "tool": "bash", "source": "claude-code",
                "model": "a/b", "explain": true}),
            json!({"all_agents": true, "own": true, "query": "redis"}),
            json!({"all_agents": true, "own": true, "query": "redis", "project": "ledger"}),
        ]
    );
}

#[test]
fn the_commands_of_the_hint_name_what_must_be_named() {
    let home = home();
    finds(&home, result(vec![hit(json!({}))]));
    let hint = |args: &[&str]| {
        let stderr = chorusctl(&home, [args, &["search", "redis"]].concat()).stderr;
        let commands: Vec<String> = stderr.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(commands.len(), 3, "{stderr}");
        // A command that it proposes is one.
        for command in &commands {
            let words = command.split(' ').map(Into::into);
            assert!(chorusctl::cli::parse(words).is_ok(), "{command}");
        }
        commands[1].clone()
    };
    assert_eq!(hint(&[]), "chorusctl restore 9f1c27d4 --at 16");
    assert_eq!(hint(&["--agent", "api"]), "chorusctl --agent api restore 9f1c27d4 --at 16");
    assert_eq!(hint(&["-C", "docs"]), "chorusctl -C docs restore 9f1c27d4 --at 16");
    assert_eq!(hint(&["--agent", "api", "-C", "docs"]), "chorusctl --agent api -C docs restore 9f1c27d4 --at 16");
    // The daemon searched all agents.
    for (changes, due) in [
        (json!({}), "`chorusctl --agent api restore 9f1c27d4 --at 16`"),
        (json!({"imported": true}), "`chorusctl restore 9f1c27d4 --at 16`"),
    ] {
        let home = crate::home();
        let mut found = result(vec![hit(changes)]);
        found.as_object_mut().expect("an object").remove("agent_name");
        finds(&home, found);
        let stderr = chorusctl(&home, ["search", "redis", "--all-agents"]).stderr;
        assert!(stderr.contains(due), "{stderr}");
    }
}

#[test]
fn a_live_hit_is_shown_where_it_is() {
    let home = home();
    finds(&home, result(vec![hit(json!({"session": null}))]));
    let output = chorusctl(&home, ["search", "redis"]);
    assert_eq!(output.stderr, "hint: show the first result: `chorusctl show @main --around 16`\n");
}

#[test]
fn json_is_the_result_and_jsonl_a_hit_per_line() {
    let home = home();
    let hits = vec![hit(json!({})), hit(json!({"message": 3}))];
    finds(&home, result(hits.clone()));
    let json = chorusctl(&home, ["search", "redis", "--json"]);
    assert_eq!(json.stderr, "");
    assert_eq!(json.expect_json(), result(hits.clone()));
    let lines = chorusctl(&home, ["search", "redis", "--format", "jsonl"]);
    assert_eq!(lines.stderr, "");
    let lines: Vec<serde_json::Value> =
        lines.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines, hits);
}

#[test]
fn an_incomplete_index_and_warnings_are_reported() {
    let home = home();
    let mut found = result(vec![hit(json!({}))]);
    found["index"] = json!({"complete": false, "indexed": 964, "total": 1205, "messages": 70});
    found["warnings"] = json!(["\"the\" is in nearly every message and was ignored"]);
    finds(&home, found);
    let due = "warning: \"the\" is in nearly every message and was ignored\n80 % indexed; results may be missing (wait for them with --wait)\n";
    assert_eq!(chorusctl(&home, ["search", "redis"]).stderr, format!("{due}{HINT}"));
    assert_eq!(chorusctl(&home, ["search", "redis", "--format", "jsonl"]).stderr, due);
    assert_eq!(chorusctl(&home, ["search", "redis", "--json"]).stderr, "", "the result has it");
}

#[test]
fn no_match_is_no_failure_and_says_what_to_try() {
    let home = home();
    finds(&home, result(vec![]));
    let none = |args: &[&str]| {
        let output = chorusctl(&home, [&["search", "redis"], args].concat());
        assert_eq!((output.status, &*output.stdout), (0, ""));
        output.stderr
    };
    assert_eq!(none(&[]), "no matches: try fewer words, or --all-agents\n");
    assert_eq!(none(&["--tag", "x"]), "no matches: try fewer words, fewer filters, or --all-agents\n");
    assert_eq!(none(&["--all-agents"]), "no matches: try fewer words\n");
    assert_eq!(none(&["--format", "jsonl"]), "");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = home();
    let many: Vec<_> = (1..=100).map(|number| hit(json!({"message": number, "snippet": "x".repeat(3000)}))).collect();
    finds(&home, result(many));
    let mut shell = home.command("bash");
    shell.args(["-c", &format!("set -o pipefail; {} search redis | head -1", home.bins.chorusctl)]);
    let output = run_command(shell, b"");
    assert_eq!((output.status, output.stdout.lines().count(), &*output.stderr), (0, 1, ""));
}

#[test]
fn scores_are_explained_on_request() {
    let home = home();
    let parts = json!([{"name": "words", "value": 10.25}, {"name": "time", "value": 2.25}]);
    finds(&home, result(vec![hit(json!({"parts": parts}))]));
    let text = chorusctl(&home, ["search", "redis", "--explain"]).expect_success();
    assert_eq!(text.lines().nth(2), Some("    score 12.50 = words 10.25 + time 2.25"));
}

#[test]
fn other_matches_next_to_a_hit_are_counted() {
    let home = home();
    let _calls = finds(&home, result(vec![hit(json!({"nearby": 2})), hit(json!({"message": 40}))]));
    let found = chorusctl(&home, ["search", "redis"]).expect_success();
    assert!(found.contains(" · message 16 (and 2 near it) · ") && found.contains(" · message 40 · "), "{found}");
    let table = chorusctl(&home, ["search", "redis", "--columns", "message"]).expect_success();
    assert!(table.contains("16 (+2)\n"), "{table}");
}
