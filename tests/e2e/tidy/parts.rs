//! Which part may use which: the table of the house, read off the paths in the code.

use super::source::{Source, sources};

/// What the files below a path must never name.
struct Rule {
    path: &'static str,
    never: &'static [&'static str],
}

/// A front door translates; ops act; the store keeps; the core of an agent is pure.
const RULES: [Rule; 36] = [
    Rule { path: "proto/src/", never: &["chorusd", "chorusctl", "rusqlite", "clap"] },
    Rule { path: "chorusctl/src/", never: &["chorusd", "tokio", "tokio_util", "rusqlite"] },
    Rule { path: "chorusd/src/agent/event", never: IMPURE },
    Rule { path: "chorusd/src/agent/effect", never: IMPURE },
    Rule { path: "chorusd/src/agent/state", never: IMPURE },
    Rule { path: "chorusd/src/agent/turn", never: IMPURE },
    Rule { path: "chorusd/src/agent/allowance", never: IMPURE },
    Rule { path: "chorusd/src/agent/tool_calls", never: IMPURE },
    Rule { path: "chorusd/src/agent/pairs", never: IMPURE },
    Rule { path: "chorusd/src/agent/again", never: IMPURE },
    Rule { path: "chorusd/src/agent/cut_off", never: IMPURE },
    Rule { path: "chorusd/src/agent/queue", never: IMPURE },
    Rule { path: "chorusd/src/agent/exclusive", never: IMPURE },
    Rule { path: "chorusd/src/agent/context", never: IMPURE },
    Rule { path: "chorusd/src/agent/window", never: IMPURE },
    Rule { path: "chorusd/src/agent/compaction", never: IMPURE },
    Rule { path: "chorusd/src/agent/links", never: IMPURE },
    Rule { path: "chorusd/src/agent/sent_again", never: IMPURE },
    Rule { path: "chorusd/src/agent/noted", never: IMPURE },
    Rule { path: "chorusd/src/permissions/", never: IMPURE },
    Rule { path: "chorusd/src/redact/", never: IMPURE },
    Rule { path: "chorusd/src/session/", never: FORMAT },
    Rule { path: "chorusd/src/archive/", never: BELOW },
    Rule { path: "chorusd/src/backup/", never: BELOW },
    Rule { path: "chorusd/src/llm/", never: MODELS },
    Rule { path: "chorusd/src/sandbox/", never: APART },
    Rule { path: "chorusd/src/tools/", never: BELOW },
    Rule { path: "chorusd/src/tasks/", never: BELOW },
    Rule { path: "chorusd/src/approvals/", never: BELOW },
    Rule { path: "chorusd/src/store/", never: BELOW },
    Rule { path: "chorusd/src/search/", never: BELOW },
    Rule { path: "chorusd/src/ops/", never: &["crate::server", "crate::discord", "crate::mcp", "rusqlite"] },
    Rule { path: "chorusd/src/server/", never: DOOR },
    Rule { path: "chorusd/src/discord/", never: DOOR },
    Rule { path: "chorusd/src/mcp/", never: DOOR },
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
const MODELS: &[&str] =
    &["crate::agent", "crate::server", "crate::discord", "crate::mcp", "crate::ops", "crate::store", "rusqlite"];
const BELOW: &[&str] = &["crate::agent", "crate::server", "crate::discord", "crate::mcp", "crate::ops"];
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
fn a_rule_that_is_broken_is_seen() {
    let text = "use crate::store::Catalog;\nfn f() -> Timestamp { Timestamp::now() }".to_owned();
    let source = Source { path: "chorusd/src/agent/state.rs".into(), text };
    let rule = RULES.iter().find(|rule| source.path.starts_with(rule.path)).expect("a rule");
    assert_eq!(broken(rule, &source).len(), 2);
}
