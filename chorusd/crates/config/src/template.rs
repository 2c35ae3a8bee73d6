//! A file with every key as a comment, generated from the reference.

use std::fmt::Write as _;

use super::{KeyReference, config_reference};

/// Longest line of a comment.
const WIDTH: usize = 100;

/// Keeps words on one line.
const NO_BREAK_SPACE: char = '\u{a0}';

/// A table of config.toml, in the order in which the tables are documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableReference {
    /// Its header without brackets; empty for the top level.
    pub name: &'static str,
    /// Its meaning, in Markdown.
    pub about: &'static str,
    /// An entry, for a table without fixed keys.
    example: Option<&'static str>,
}

const fn table(name: &'static str, about: &'static str) -> TableReference {
    TableReference { name, about, example: None }
}

const fn open_table(name: &'static str, about: &'static str, example: &'static str) -> TableReference {
    TableReference { name, about, example: Some(example) }
}

const TABLES: &[TableReference] = &[
    table("", "These keys come before the first table."),
    table("defaults", "For agents that do not set the key themselves (`chorusctl agent config`)."),
    table("discord", "See [DISCORD.md](DISCORD.md). Without a token, Discord is off."),
    table("discovery", "Model servers on this machine."),
    table("retention", "Saved conversations that nobody uses."),
    table("capture", "Which conversations of other coding agents are saved ([CAPTURE.md](CAPTURE.md))."),
    table("metrics", "Figures for Prometheus ([OPERATIONS.md](OPERATIONS.md#metrics))."),
    table(
        "traces",
        "Spans for a collector of OpenTelemetry ([OPERATIONS.md](OPERATIONS.md#traces)). Only a `chorusd` that was built with the feature `otlp` sends them. \
         Set at most one of `headers_env`, `headers_file` and `credential`.",
    ),
    table("search", "What `chorusctl search` finds."),
    table(
        "store",
        "The database that keeps everything. This table and the next two are only in a `chorusd` that was built with the feature `cluster` ([SCALING.md](SCALING.md)). \
         Set one of `url_file`, `url_env` and `credential`.",
    ),
    table("store.sessions", "Where several daemons have the messages of saved sessions."),
    table("cluster", "This daemon among those that share the database."),
    table(
        "providers.NAME",
        "A server of models. Without any such table, `anthropic` is configured if `ANTHROPIC_API_KEY` is set or `default_model` names it. \
         Set at most one of `api_key_env`, `api_key_file` and `credential`; without one, the usual variable of a service \
         (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`) is sent to that service only.",
    ),
    table(
        "mcp.NAME",
        "A server of the Model Context Protocol, see [TOOLS.md](TOOLS.md#tools-of-mcp-servers). Set either `command` or `url`. `env`, `network`, `read` and \
         `write` belong to `command`; the token and the headers belong to `url`. The name has lower-case letters, digits and `-`.",
    ),
    table(
        "hosts.NAME",
        "A machine for `chorusctl --host NAME`, see [REMOTE.md](REMOTE.md). `chorusctl` reads this table of the machine that it runs on.",
    ),
    table(
        "prices.\"PROVIDER/MODEL\"",
        "US dollars per million tokens. A price here replaces the one that the provider tells.",
    ),
    open_table(
        "aliases",
        "Short names of models: `NAME = \"provider/model\"`. A name must not contain a slash.",
        "fast = \"provider/model\"",
    ),
    open_table(
        "permissions.NAME",
        "A permission profile of your own. [PERMISSIONS.md](PERMISSIONS.md) describes its keys.",
        "allow = ['tool:(view|create_file):.*']",
    ),
    open_table(
        "permission_grants",
        "Who may give which profiles to agents in Discord: `ROLE = [\"PROFILE\", …]`. The daemon's own user and root may give any profile.",
        "admin = [\"open\", \"standard\", \"locked\"]",
    ),
];

/// Lists the tables of config.toml.
#[must_use]
pub fn table_references() -> &'static [TableReference] {
    TABLES
}

/// Returns a file with every key and its default as a comment.
#[must_use]
pub fn config_template() -> String {
    let mut text = String::new();
    add_comment(
        &mut text,
        "The configuration of Chorus. Every line is a comment with the default: remove the # of a key, and of the header of its table, to \
         change it. Durations are written like 90s, 30m or 1h30m, sizes like 16MiB. After a change: chorusctl config reload",
    );
    let keys = config_reference();
    for table in TABLES {
        let mut is_first = table.name.is_empty();
        let keys: Vec<_> = keys.iter().filter(|key| key.table == table.name).collect();
        if keys.is_empty() && table.example.is_none() {
            continue;
        }
        text.push('\n');
        if !table.name.is_empty() {
            add_comment(&mut text, table.about);
            _ = writeln!(text, "#[{}]", table.name);
        }
        for key in keys {
            if !std::mem::take(&mut is_first) {
                text.push('\n');
            }
            add_key(&mut text, key);
        }
        if let Some(example) = table.example {
            _ = writeln!(text, "#{example}");
        }
    }
    text
}

fn add_key(text: &mut String, key: &KeyReference) {
    let variable = key.variable().map(|name| format!(" [env:{NO_BREAK_SPACE}{name}]")).unwrap_or_default();
    add_comment(text, &format!("{}{variable}", key.about));
    let value = key.default.as_deref().map_or_else(String::new, |value| format!(" {value}"));
    _ = writeln!(text, "#{} ={value}", key.name);
}

/// Writes a text in Markdown as a comment.
fn add_comment(text: &mut String, markdown: &str) {
    let mut line = String::new();
    for word in plain_text(markdown).split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH - 2 {
            _ = writeln!(text, "# {}", line.replace(NO_BREAK_SPACE, " "));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    _ = writeln!(text, "# {}", line.replace(NO_BREAK_SPACE, " "));
}

/// Removes the marks of code, and the targets of links.
fn plain_text(markdown: &str) -> String {
    let mut plain = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once("](") {
        let (_, after) = after.split_once(')').unwrap_or(("", after));
        let at = before.rfind('[').unwrap_or(0);
        plain.push_str(&before[..at]);
        plain.push_str(before[at..].trim_start_matches('['));
        rest = after;
    }
    plain.push_str(rest);
    plain.replace('`', "")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Config, check_text};

    #[test]
    fn the_file_has_every_key_and_changes_nothing() {
        let text = config_template();
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')), "{text}");
        for key in config_reference() {
            assert!(text.contains(&format!("\n#{} =", key.name)), "{}", key.name);
        }
        assert!(
            text.lines()
                .all(|line| !line.starts_with("# ") || line.chars().count() <= WIDTH || !line[2..].contains(' '))
        );
    }

    #[test]
    fn the_defaults_in_it_are_those_of_the_program() {
        let fixed = |table: &str| !table.contains("NAME") && !table.contains('"');
        let mut lines = String::new();
        let mut is_fixed = true;
        for line in config_template().lines().filter_map(|line| line.strip_prefix('#')) {
            if let Some(header) = line.strip_prefix('[') {
                is_fixed = fixed(header) && !header.starts_with("aliases") && !header.starts_with("permission");
            }
            if is_fixed && !line.starts_with(' ') && !line.ends_with('=') {
                lines += &format!("{line}\n");
            }
        }
        let config =
            check_text(&lines, Path::new("config.toml"), &|_| None).unwrap_or_else(|problem| panic!("{problem:?}"));
        assert!(config.origins.len() > 20, "{lines}");
        let shown = |config: &Config| config.to_entries();
        assert_eq!(shown(&config), shown(&Config::default()));
    }

    #[test]
    fn links_and_code_are_plain() {
        assert_eq!(plain_text("See [A](A.md#x), `b` ([C](C.md))."), "See A, b (C).");
        assert_eq!(plain_text("`[\"a\", 1]` is a list"), "[\"a\", 1] is a list");
    }
}
