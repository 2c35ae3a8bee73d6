//! Which part may use which: the table of the house, read off the paths in the code.

use super::source::{Source, root, sources};

/// What the files below a path must never name.
struct Rule {
    path: &'static str,
    never: &'static [&'static str],
}

/// What the manifests of the crates do not enforce: which part of the standard library, and which module of the same
/// crate, a part may use.
const RULES: &[Rule] = &[
    Rule { path: "proto/src/", never: &["chorusd", "chorusctl", "rusqlite", "clap"] },
    Rule { path: "chorusctl/src/", never: &["chorusd", "tokio", "tokio_util", "rusqlite"] },
    Rule { path: "chorusd/crates/agent-core/src/", never: IMPURE },
    Rule { path: "chorusd/crates/permissions/src/", never: IMPURE },
    Rule { path: "chorusd/crates/redact/src/", never: IMPURE },
    Rule { path: "chorusd/crates/session/src/", never: &["std::net", "std::process"] },
    Rule { path: "chorusd/crates/engine/src/agent_archive/", never: BELOW },
    Rule { path: "chorusd/crates/engine/src/backup/", never: BELOW },
    Rule { path: "chorusd/crates/engine/src/tools/", never: BELOW },
    Rule { path: "chorusd/crates/engine/src/tasks/", never: BELOW },
    Rule { path: "chorusd/crates/engine/src/approvals/", never: BELOW },
    Rule { path: "chorusd/crates/engine/src/agent/", never: &["crate::ops"] },
    Rule { path: "chorusd/src/server/", never: &["chorus_store", "chorus_llm", "chorus_engine::tools"] },
    Rule {
        path: "chorusd/crates/discord/src/",
        never: &["chorus_engine::tools", ".catalog.discord", ".registry.services"],
    },
];

const IMPURE: &[&str] = &[
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
    "chorus_base::private_fs",
    "chorus_base::parallel",
    "chorus_base::new_id",
];
const BELOW: &[&str] = &["crate::agent", "crate::ops"];

/// The crates below chorusd, each with those of the workspace that it may depend on.
const CRATES: &[(&str, &[&str])] = &[
    ("base", &["proto"]),
    ("clock", &["base"]),
    ("permissions", &["base", "proto"]),
    ("redact", &["base", "proto"]),
    ("runtime", &["base"]),
    ("sandbox", &["base", "redact", "runtime"]),
    ("embeddings", &["base"]),
    ("mcp", &["base", "proto"]),
    ("mcp-client", &["base", "config", "redact", "runtime", "sandbox", "tls"]),
    ("schedule", &[]),
    ("search", &["base", "embeddings", "proto"]),
    ("session", &["base", "proto", "tool-files"]),
    ("config", &["base", "permissions", "proto"]),
    ("llm", &["base", "clock", "config", "proto", "redact", "runtime", "session", "tls"]),
    ("journal", &["base", "proto", "session"]),
    ("catalog", &["base", "journal", "proto", "redact", "session"]),
    ("session-objects", &["base", "clock", "proto", "runtime", "session", "tls"]),
    ("shared-files", &["base", "catalog", "clock", "runtime", "store"]),
    (
        "shared-sessions",
        &["base", "catalog", "clock", "journal", "proto", "runtime", "session", "session-objects", "store"],
    ),
    ("store", &["base", "catalog", "journal", "proto", "redact", "runtime", "session"]),
    (
        "store-copy",
        &["base", "catalog", "journal", "proto", "runtime", "session", "session-objects", "store", "store-postgres"],
    ),
    ("store-postgres", &["base", "catalog", "journal", "proto", "redact", "runtime", "session", "tls"]),
    ("agent-core", &["base", "permissions", "proto", "session"]),
    (
        "engine",
        &[
            "agent-core",
            "base",
            "catalog",
            "clock",
            "config",
            "embeddings",
            "journal",
            "llm",
            "mcp-client",
            "permissions",
            "proto",
            "redact",
            "runtime",
            "sandbox",
            "schedule",
            "search",
            "session",
            "store",
            "tool-databases",
            "tool-files",
        ],
    ),
    ("daemon-client", &["proto"]),
    ("discord", &["agent-core", "base", "config", "engine", "permissions", "proto", "redact", "runtime", "tls"]),
    ("ownership-model", &[]),
    ("peers", &["base", "proto", "runtime"]),
    ("pictures", &[]),
    ("remote", &["proto"]),
    ("terminal-text", &["proto"]),
    ("tls", &[]),
    ("tool-databases", &[]),
    ("metrics", &["base", "catalog", "config", "engine", "proto", "runtime", "store"]),
    ("tool-files", &[]),
    ("traces", &["base", "config", "engine", "proto", "redact", "runtime", "session", "tls"]),
    ("top", &["base", "proto", "remote", "runtime", "terminal-text"]),
    ("web", &["base", "daemon-client", "proto", "runtime", "session", "terminal-text"]),
];

/// Libraries that only these crates below chorusd may use.
const OWNERS: &[(&str, &[&str])] = &[
    // What `embeddings` keeps can be made again, and belongs to none of the databases of the store.
    // `tool-databases` only reads the databases of other programs.
    // `store-copy` reads and writes whole tables of both databases, which no trait of the catalog has.
    ("rusqlite", &["store", "embeddings", "tool-databases", "store-copy"]),
    ("bincode", &["journal"]),
    ("tokio-postgres", &["store-postgres", "store-copy"]),
    ("deadpool-postgres", &["store-postgres"]),
    ("tokio-rustls", &["peers", "store-postgres"]),
    ("rustls-webpki", &["peers"]),
    ("object_store", &["session-objects"]),
    ("serenity", &["discord"]),
    ("twilight-gateway", &["discord"]),
    ("tree-sitter", &["permissions"]),
    ("landlock", &["sandbox"]),
    ("seccompiler", &["sandbox"]),
    ("rmcp", &["mcp", "mcp-client"]),
    ("rten", &["embeddings"]),
    ("tantivy", &["search"]),
    ("prometheus-client", &["metrics"]),
    ("opentelemetry-proto", &["traces"]),
    ("prost", &["traces"]),
    ("crossterm", &["top"]),
    ("ratatui-core", &["top"]),
    ("ratatui-crossterm", &["top"]),
    ("axum", &["web"]),
    ("maud", &["web"]),
];

/// Crates without an async runtime.
const SYNCHRONOUS: [&str; 6] = ["base", "permissions", "redact", "session", "config", "agent-core"];

/// The dependencies of a crate below chorusd, except those of its tests.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = root().join("chorusd/crates").join(name).join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    let parts = text.split("\n[").filter(|part| {
        let head = part.split(']').next().unwrap_or_default();
        head.ends_with("dependencies") && !head.contains("dev-")
    });
    let lines = parts.flat_map(str::lines).skip(1);
    let names = lines.filter_map(|line| line.split_once(" = ").map(|(name, _)| name.trim_end_matches(".workspace")));
    names.map(str::to_owned).collect()
}

#[test]
fn each_crate_depends_only_on_those_below_it() {
    let folder = root().join("chorusd/crates");
    let mut there: Vec<_> = std::fs::read_dir(folder).expect("the crates").flatten().collect();
    there.sort_by_key(std::fs::DirEntry::file_name);
    let mut found = Vec::new();
    for name in there.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == name) else {
            found.push(format!("{name} is not in the table"));
            continue;
        };
        for dependency in dependencies(&name) {
            let refused = match dependency.strip_prefix("chorus-") {
                Some(other) => !allowed.contains(&other),
                None => {
                    let owned =
                        OWNERS.iter().any(|(library, owners)| *library == dependency && !owners.contains(&&*name));
                    owned || (dependency.starts_with("tokio") && SYNCHRONOUS.contains(&&*name))
                }
            };
            if refused {
                found.push(format!("{name} depends on {dependency}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(dependencies("store").contains(&"rusqlite".to_owned()), "the manifests are read");
}

fn broken(rule: &Rule, source: &Source) -> Vec<String> {
    let uses = source.uses();
    let code = source.code();
    // `Timestamp::now` is no path that begins with a crate, and `.catalog` is a field: they are looked for as text.
    let is_text = |what: &str| what.ends_with("::now") || what.starts_with('.');
    let named = |what: &&&str| uses.contains(**what) || (is_text(what) && code.contains(**what));
    rule.never.iter().filter(named).map(|what| format!("{} names {what}", source.path)).collect()
}

#[test]
fn each_part_uses_only_what_it_may() {
    let all = ["proto/src", "chorusd", "chorusctl/src"].map(sources);
    let mut found = Vec::new();
    for source in all.iter().flatten() {
        let tests = source.path.ends_with("tests.rs") || source.path.contains("/tests/");
        for rule in RULES.iter().filter(|rule| !tests && source.path.starts_with(rule.path)) {
            found.extend(broken(rule, source));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_rule_is_about_files_that_exist() {
    let all = ["proto/src", "chorusd", "chorusctl/src"].map(sources);
    for rule in RULES {
        assert!(all.iter().flatten().any(|source| source.path.starts_with(rule.path)), "no file below {}", rule.path);
    }
    let base = all.iter().flatten().find(|source| source.path == "chorusd/crates/base/src/lib.rs").expect("base");
    for name in RULES.iter().flat_map(|rule| rule.never).filter_map(|name| name.strip_prefix("chorus_base::")) {
        assert!(base.text.contains(name), "chorus_base has no {name}");
    }
}

#[test]
fn a_rule_that_is_broken_is_seen() {
    let text = "use std::fs::File;\nfn f() -> Timestamp { Timestamp::now() }".to_owned();
    let source = Source { path: "chorusd/crates/agent-core/src/state.rs".into(), text };
    let rule = RULES.iter().find(|rule| source.path.starts_with(rule.path)).expect("a rule");
    assert_eq!(broken(rule, &source).len(), 2);
}
