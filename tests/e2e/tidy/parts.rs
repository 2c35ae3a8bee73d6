//! Which part may use which: the table of the house, read off the paths in the code.

use super::source::{Source, sources};

/// What the files below a path must never name.
struct Rule {
    path: &'static str,
    never: &'static [&'static str],
}

/// A front door translates; ops act; the store keeps; the core of an agent is pure.
const RULES: &[Rule] = &[
    Rule { path: "proto/src/", never: &["chorusd", "chorusctl", "rusqlite", "clap"] },
    Rule { path: "chorusctl/src/", never: &["chorusd", "tokio", "tokio_util", "rusqlite"] },
    Rule { path: "chorusd/src/agent/event.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/effect.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/state.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/turn.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/tool_budget.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/tool_calls.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/tool_pairing.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/turn_resumption.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/interruption.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/turn_queue.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/context_ops.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/context.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/context_edits.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/exclusive_results.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/model_reply.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/usage_sum.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/window/", never: IMPURE },
    Rule { path: "chorusd/src/agent/compaction/", never: IMPURE },
    Rule { path: "chorusd/src/agent/continuation.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/resent_message.rs", never: IMPURE },
    Rule { path: "chorusd/src/agent/extraction_result.rs", never: IMPURE },
    Rule { path: "chorusd/src/permissions/", never: IMPURE },
    Rule { path: "chorusd/src/redact/", never: IMPURE },
    Rule { path: "chorusd/src/session/", never: FORMAT },
    Rule { path: "chorusd/src/agent_archive/", never: BELOW },
    Rule { path: "chorusd/src/backup/", never: BELOW },
    Rule { path: "chorusd/src/llm/", never: MODELS },
    Rule { path: "chorusd/src/sandbox/", never: APART },
    Rule { path: "chorusd/src/tools/", never: BELOW },
    Rule { path: "chorusd/src/tasks/", never: BELOW },
    Rule { path: "chorusd/src/approvals/", never: BELOW },
    Rule { path: "chorusd/src/store/", never: BELOW },
    Rule { path: "chorusd/src/ops/", never: &["crate::server", "crate::discord", "rusqlite"] },
    Rule { path: "chorusd/src/server/", never: DOOR },
    Rule { path: "chorusd/src/discord/", never: DOOR },
    Rule { path: "chorusd/src/summary/", never: &["crate::agent", "crate::server", "crate::discord", "rusqlite"] },
];

const IMPURE: &[&str] = &[
    "tokio",
    "tokio_util",
    "rusqlite",
    "crate::store",
    "crate::ops",
    "crate::server",
    "crate::discord",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::time",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Uuid::now_v7",
    "Uuid::new_v4",
];
const FORMAT: &[&str] =
    &["tokio", "tokio_util", "rusqlite", "interprocess", "std::net", "crate::store", "crate::server"];
const MODELS: &[&str] = &["crate::agent", "crate::server", "crate::discord", "crate::ops", "crate::store", "rusqlite"];
const BELOW: &[&str] = &["crate::agent", "crate::server", "crate::discord", "crate::ops"];
const APART: &[&str] =
    &["crate::agent", "crate::server", "crate::discord", "crate::ops", "crate::store", "crate::tools", "rusqlite"];
const DOOR: &[&str] = &["crate::store", "crate::llm", "crate::tools", "rusqlite"];

/// The one folder that may name the database.
const DATABASE: &str = "chorusd/src/store/";

fn broken(rule: &Rule, source: &Source) -> Vec<String> {
    let uses = source.uses();
    let code = source.code();
    // `Timestamp::now` is no path that begins with a crate: it is looked for as text.
    let named = |what: &&&str| uses.contains(**what) || (what.ends_with("::now") && code.contains(**what));
    rule.never.iter().filter(named).map(|what| format!("{} names {what}", source.path)).collect()
}

#[test]
fn each_part_uses_only_what_it_may() {
    let all = ["proto/src", "chorusd/src", "chorusctl/src"].map(sources);
    let mut found = Vec::new();
    for source in all.iter().flatten() {
        let tests = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
        for rule in RULES.iter().filter(|rule| !tests && source.path.starts_with(rule.path)) {
            found.extend(broken(rule, source));
        }
        if !source.path.starts_with(DATABASE) && source.uses().contains("rusqlite") {
            found.push(format!("{} names rusqlite outside the store", source.path));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_rule_is_about_files_that_exist() {
    let all = ["proto/src", "chorusd/src", "chorusctl/src"].map(sources);
    for rule in RULES {
        assert!(all.iter().flatten().any(|source| source.path.starts_with(rule.path)), "no file below {}", rule.path);
    }
}

#[test]
fn a_rule_that_is_broken_is_seen() {
    let text = "use crate::store::Catalog;\nfn f() -> Timestamp { Timestamp::now() }".to_owned();
    let source = Source { path: "chorusd/src/agent/state.rs".into(), text };
    let rule = RULES.iter().find(|rule| source.path.starts_with(rule.path)).expect("a rule");
    assert_eq!(broken(rule, &source).len(), 2);
}
