//! What conversations of other programs used is counted beside our own, each call once.

use std::fs;
use std::path::PathBuf;

use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::ModelServer;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use rusqlite::Connection;
use serde_json::{Value, json};

use chorus_tests::client_ext::ClientExt as _;

use super::{summarised, summary};
use crate::home;

pub(super) const PRICES: &str =
    "[prices.\"anthropic/claude-opus-4-5\"]\ninput = 5\noutput = 25\ncache_read = 0.5\ncache_write = 6.25\n";

/// What a reply of [`Talk`] costs at those prices, with 40 tokens out.
const COST: f64 = (100.0 * 5.0 + 2000.0 * 0.5 + 300.0 * 6.25 + 40.0 * 25.0) / 1e6;

/// A transcript of Claude Code.
#[derive(Clone)]
pub(super) struct Talk {
    id: &'static str,
    project: &'static str,
    lines: Vec<Value>,
}

impl Talk {
    pub(super) fn new(id: &'static str, project: &'static str) -> Self {
        Self { id, project, lines: Vec::new() }
    }

    fn line(&mut self, kind: &str, name: &str, mut message: Value) {
        let parent = self.lines.last().map(|line| line["uuid"].clone());
        message["role"] = kind.into();
        self.lines.push(json!({
            "type": kind, "uuid": name, "parentUuid": parent, "isSidechain": false, "sessionId": self.id,
            "timestamp": format!("2026-01-0{}T10:00:00Z", 1 + self.lines.len() / 4), "version": "2.1.332",
            "cwd": self.project, "gitBranch": "main", "message": message,
        }));
    }

    /// A question, and a reply in two lines that repeat the usage.
    pub(super) fn turn(mut self, name: &str) -> Self {
        self.line("user", &format!("{name}-q"), json!({"content": format!("question {name}")}));
        for (part, output, stop) in [("a", 1, Value::Null), ("b", 40, json!("end_turn"))] {
            let message = json!({
                "id": format!("msg_{name}"), "model": "claude-opus-4-5-20251101", "stop_reason": stop,
                "content": [{"type": "text", "text": format!("part {part} of {name}")}],
                "usage": {
                    "input_tokens": 100, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 2000,
                    "output_tokens": output,
                },
            });
            self.line("assistant", &format!("{name}-{part}"), message);
        }
        self
    }

    fn write(&self, home: &Home) -> PathBuf {
        let dir = home.user_home.join(".claude/projects").join(self.project.replace('/', "-"));
        fs::create_dir_all(&dir).expect("created");
        let path = dir.join(format!("{}.jsonl", self.id));
        let lines: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, lines).expect("written");
        path
    }

    pub(super) fn import(&self, home: &Home) {
        let path = self.write(home);
        chorusctl(home, ["import", path.to_str().expect("a path")]).expect_success();
    }
}

pub(super) const FIRST: &str = "11111111-0000-4000-8000-000000000000";
pub(super) const SECOND: &str = "22222222-0000-4000-8000-000000000000";

/// A Codex rollout with these running totals of input, cached input and output.
fn codex(home: &Home, id: &str, project: &str, totals: &[(u64, u64, u64)]) -> PathBuf {
    let line =
        |kind: &str, payload: Value| json!({"timestamp": "2026-01-05T10:00:00Z", "type": kind, "payload": payload});
    let mut lines = vec![
        line("session_meta", json!({"id": id, "timestamp": "2026-01-05T10:00:00Z", "cwd": project})),
        line("turn_context", json!({"cwd": project, "model": "gpt-5-codex", "turn_id": format!("turn-{id}")})),
    ];
    for (n, (input, cached, output)) in totals.iter().enumerate() {
        let said = |role: &str, text: String| {
            let kind = if role == "user" { "input_text" } else { "output_text" };
            line("response_item", json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
        };
        lines.extend([said("user", format!("question {n}")), said("assistant", format!("answer {n}"))]);
        let total = json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output});
        let count = line("event_msg", json!({"type": "token_count", "info": {"total_token_usage": total}}));
        // It is written twice.
        lines.extend([count.clone(), count]);
    }
    let path = home.temp_dir().join(format!("rollout-{id}.jsonl"));
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("written");
    path
}

/// The groups of `usage --by BY`, as `[GROUP, SOURCE, calls, input, output]`, and the total.
fn by(home: &Home, by: &str) -> (Vec<Value>, Value) {
    let found = chorusctl(home, ["--json", "usage", "--by", by]).expect_json();
    let groups = found["groups"].as_array().cloned().unwrap_or_default();
    let short = |group: &Value| {
        json!([group[by], group["source"], group["calls"], group["input_tokens"], group["output_tokens"]])
    };
    (groups.iter().map(short).collect(), found["total"].clone())
}

/// The number of calls, of all sources.
fn calls(home: &Home) -> u64 {
    by(home, "source").1["calls"].as_u64().expect("a count")
}

fn near(found: &Value, due: f64) {
    assert!(found.as_f64().is_some_and(|found| (found - due).abs() < 1e-9), "{found} and not {due}");
}

#[test]
fn each_call_counts_once_however_often_its_conversation_is_imported() {
    let home = home();
    let _daemon = Daemon::start_with(&home, PRICES);
    assert_eq!(by(&home, "source").0, Vec::<Value>::new());
    let talk = Talk::new(FIRST, "/home/mara/shop").turn("one").turn("two");
    talk.import(&home);
    let (groups, total) = by(&home, "source");
    assert_eq!(groups, [json!(["claude-code", "claude-code", 2, 4800, 80])]);
    near(&total["cost_usd"], 2.0 * COST);
    assert_eq!((&total["cache_read_tokens"], &total["unpriced_calls"]), (&json!(4000), &json!(0)));
    talk.import(&home);
    assert_eq!(calls(&home), 2);
    talk.clone().turn("three").import(&home);
    assert_eq!(by(&home, "source").0, [json!(["claude-code", "claude-code", 3, 7200, 120])]);
    // An older copy changes nothing.
    talk.import(&home);
    assert_eq!(calls(&home), 3);
}

#[test]
fn a_fork_and_a_revision_count_only_what_is_theirs() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let talk = Talk::new(FIRST, "/home/mara/shop").turn("one").turn("two");
    talk.import(&home);
    let mut fork = Talk { id: SECOND, ..talk.clone() };
    fork.lines.iter_mut().for_each(|line| line["sessionId"] = SECOND.into());
    fork.clone().turn("fork").import(&home);
    assert_eq!(calls(&home), 3);
    // The first one continues, and the fork, each with its own.
    talk.clone().turn("three").import(&home);
    fork.turn("fork").turn("fork-2").import(&home);
    assert_eq!(calls(&home), 5);
    // After a rewind the second question is another one; the first call is that of the former revision.
    let mut rewound = talk;
    rewound.lines.truncate(3);
    rewound.turn("again").import(&home);
    let history = chorusctl(&home, ["--json", "history"]).expect_json();
    assert_eq!(history["sessions"].as_array().map(Vec::len), Some(3), "a revision: {history}");
    assert_eq!(calls(&home), 6);
}

#[test]
fn it_is_divided_by_project_model_and_day() {
    let home = home();
    let _daemon = Daemon::start_with(&home, PRICES);
    Talk::new(FIRST, "/home/mara/shop").turn("one").turn("two").import(&home);
    Talk::new(SECOND, "/home/mara/blog").turn("three").import(&home);
    let rollout =
        codex(&home, "33333333-0000-4000-8000-000000000000", "/home/mara/shop", &[(154, 64, 50), (455, 128, 100)]);
    chorusctl(&home, ["import", rollout.to_str().expect("a path")]).expect_success();
    assert_eq!(
        by(&home, "project").0,
        [
            json!(["/home/mara/shop", "claude-code", 2, 4800, 80]),
            json!(["/home/mara/blog", "claude-code", 1, 2400, 40]),
            json!(["/home/mara/shop", "codex", 2, 455, 100]),
        ]
    );
    assert_eq!(
        by(&home, "model").0,
        [
            json!(["claude-opus-4-5-20251101", "claude-code", 3, 7200, 120]),
            json!(["gpt-5-codex", "codex", 2, 455, 100]),
        ]
    );
    let (days, total) = by(&home, "day");
    assert_eq!(
        days,
        [
            json!(["2026-01-05", "codex", 2, 455, 100]),
            json!(["2026-01-02", "claude-code", 1, 2400, 40]),
            json!(["2026-01-01", "claude-code", 2, 4800, 80]),
        ]
    );
    assert_eq!((&total["calls"], &total["unpriced_calls"]), (&json!(5), &json!(2)));
    let text = chorusctl(&home, ["usage", "--by", "project"]);
    assert!(text.stderr.contains("2 calls without a known price"), "{}", text.stderr);
    for key in ["input", "output", "cache_read"] {
        let command = format!("\n  chorusctl config set 'prices.\"openai/gpt-5-codex\".{key}' PRICE\n");
        assert!(text.stderr.contains(&command), "{}", text.stderr);
    }
    let text = text.expect_success();
    assert!(text.lines().next().is_some_and(|line| line.starts_with("PROJECT") && line.contains("SOURCE")), "{text}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("total") && line.contains("7655")), "{text}");
    let lines = chorusctl(&home, ["--format", "jsonl", "usage", "--by", "model"]).expect_success();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let since = chorusctl(&home, ["--json", "usage", "--by", "source", "--since", "2026-01-03"]).expect_json();
    assert_eq!(since["total"]["calls"], 2);
    let of_agent = chorusctl(&home, ["--json", "usage", "claude-code", "--by", "source"]).expect_json();
    assert_eq!(of_agent["total"]["calls"], 3);
}

/// The commands that the hints name, entered as they are with a number, are all that is needed.
#[test]
fn the_prices_that_hints_name_are_those_that_count() {
    let home = home();
    let _daemon = Daemon::start(&home);
    Talk::new(FIRST, "/home/mara/shop").turn("one").import(&home);
    let said = chorusctl(&home, ["usage", "--by", "source"]).stderr;
    let keys: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  chorusctl config set '")?.strip_suffix("' PRICE"))
        .collect();
    assert_eq!(keys.len(), 3, "{said}");
    for (key, price) in keys.iter().zip(["5", "25"]) {
        chorusctl(&home, ["config", "set", key, price]).expect_success();
    }
    // Without a price of its own, input from the cache costs ten times as much as it should.
    let said = chorusctl(&home, ["usage", "--by", "source"]).stderr;
    assert!(said.contains("the price of anthropic/claude-opus-4-5 has no cache_read"), "{said}");
    assert!(said.contains(&format!("chorusctl config set '{}' PRICE", keys[2])) && !said.contains("unknown"), "{said}");
    chorusctl(&home, ["config", "set", keys[2], "0.5"]).expect_success();
    let said = chorusctl(&home, ["usage", "--by", "source"]).stderr;
    assert!(!said.contains("cache_read") && !said.contains("without a known price"), "{said}");
    let cost = by(&home, "source").1["cost_usd"].clone();
    // What is written to the cache costs as much as other input.
    near(&cost, (400.0 * 5.0 + 2000.0 * 0.5 + 40.0 * 25.0) / 1e6);
    // The last price that is removed leaves nothing that counts as free.
    for key in keys {
        chorusctl(&home, ["config", "unset", key]).expect_success();
    }
    assert_eq!(by(&home, "source").1["unpriced_calls"], 1);
}

#[test]
fn a_purged_conversation_leaves_no_usage_and_one_in_the_trash_gets_it_back() {
    let home = home();
    let daemon = Daemon::start(&home);
    let talks = [Talk::new(FIRST, "/home/mara/shop").turn("one"), Talk::new(SECOND, "/home/mara/blog").turn("two")];
    talks.iter().for_each(|talk| talk.import(&home));
    let sessions = chorusctl(&home, ["--json", "history"]).expect_json();
    let ids: Vec<&str> =
        sessions["sessions"].as_array().expect("sessions").iter().filter_map(|one| one["id"].as_str()).collect();
    let [purged, deleted] = ids[..] else { panic!("{sessions}") };
    assert_eq!(calls(&home), 2);
    chorusctl(&home, ["session", "purge", purged, "--yes"]).expect_success();
    assert_eq!(calls(&home), 1);
    chorusctl(&home, ["session", "delete", deleted]).expect_success();
    assert_eq!(calls(&home), 0);
    let trash = chorusctl(&home, ["--json", "trash", "list"]).expect_json();
    let entry = trash["entries"][0]["id"].as_str().expect("an entry");
    chorusctl(&home, ["trash", "restore", entry]).expect_success();
    assert_eq!(calls(&home), 1);
    chorusctl(&home, ["session", "delete", deleted]).expect_success();
    chorusctl(&home, ["trash", "empty", "--yes"]).expect_success();
    daemon.terminate();
    let catalog = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    let rows = "SELECT (SELECT count(*) FROM imported_usage) + (SELECT count(*) FROM imported_calls)";
    assert_eq!(catalog.query_row(rows, [], |row| row.get::<_, u64>(0)).expect("a count"), 0);
}

#[test]
fn our_own_agents_are_a_source_and_their_usage_alone_stays_as_it_was() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    server.anthropic().set_fallback(summary());
    client.init("api");
    assert!(summarised(&mut client, "api"));
    assert!(!chorusctl(&home, ["usage"]).stderr.contains("--by source"));
    Talk::new(FIRST, "/home/mara/shop").turn("one").import(&home);
    let own = chorusctl(&home, ["usage"]);
    assert!(own.stderr.contains("(1 call) are not included"), "{}", own.stderr);
    assert!(own.stderr.contains("chorusctl usage --by source"), "{}", own.stderr);
    let since = chorusctl(&home, ["usage", "--since", "20000d"]).stderr;
    assert!(since.contains("chorusctl usage --since 20000d --by source"), "{since}");
    let own = chorusctl(&home, ["--json", "usage"]).expect_json();
    assert_eq!((&own["total"]["calls"], &own["has_imported"]), (&json!(1), &json!(true)));
    let (groups, total) = by(&home, "source");
    assert_eq!(groups, [json!(["claude-code", "claude-code", 1, 2400, 40]), json!(["chorus", "chorus", 1, 1000, 20])]);
    assert_eq!(total["calls"], 2);
}

#[test]
fn a_captured_conversation_counts_while_it_goes_on() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let talk = Talk::new(FIRST, "/home/mara/shop").turn("one");
    talk.write(&home);
    chorusctl(&home, ["capture", "on", "claude-code"]).expect_success();
    wait_until("the first call", DEADLINE, || (calls(&home) == 1).then_some(()));
    talk.turn("two").write(&home);
    wait_until("the second call", DEADLINE, || (calls(&home) == 2).then_some(()));
}

#[test]
fn what_an_earlier_version_imported_gets_its_usage_with_the_next_import() {
    let home = home();
    let daemon = Daemon::start(&home);
    let talk = Talk::new(FIRST, "/home/mara/shop").turn("one");
    talk.import(&home);
    daemon.terminate();
    let catalog = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    catalog.execute_batch("DELETE FROM imported_usage; DELETE FROM imported_calls").expect("deleted");
    drop(catalog);
    let _daemon = Daemon::start(&home);
    assert_eq!(calls(&home), 0);
    talk.import(&home);
    assert_eq!(calls(&home), 1);
}

#[test]
fn what_a_program_recorded_as_cost_counts_if_no_price_is_known() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let reply = json!({
        "role": "assistant", "content": [{"type": "text", "text": "hello"}], "provider": "fake", "model": "fake-1",
        "usage": {"input": 80, "output": 20, "cacheRead": 40, "cacheWrite": 0, "cost": {"total": 0.25}}, "stopReason": "stop",
    });
    let entry = |id: &str, parent: Option<&str>, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T10:00:00Z", "message": message});
    let lines = [
        json!({"type": "session", "version": 3, "id": FIRST, "timestamp": "2026-01-01T10:00:00Z", "cwd": "/home/mara/shop"}),
        entry("a", None, json!({"role": "user", "content": "hi"})),
        entry("b", Some("a"), reply),
    ];
    let path = home.temp_dir().join("2026-01-01_x.jsonl");
    fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).expect("written");
    chorusctl(&home, ["import", path.to_str().expect("a path")]).expect_success();
    let (groups, total) = by(&home, "model");
    assert_eq!(groups, [json!(["fake/fake-1", "pi", 1, 120, 20])]);
    near(&total["cost_usd"], 0.25);
    assert_eq!(total["unpriced_calls"], 0);
}
