//! docs/CONFIGURATION.md is what the tables of keys say, and its examples load.

use std::fmt::Write as _;
use std::fs;

use chorus_config::{KeyReference, agent_reference, config_reference};

use super::compare;

const PAGE: &str = "docs/CONFIGURATION.md";

const HEAD: &str = "\
# Configuration

Every key of `config.toml` and of an agent, with its default and its meaning. Generated: `cargo xtask bless`.

Chorus needs no configuration file. It reads the first of these:

1. the file that `$CHORUS_CONFIG` names,
2. `config.toml` in `$CHORUS_HOME`, if that is set,
3. `~/.config/chorus/config.toml`.

A value comes from the environment, `chorusctl settings set`, the file or the default, in this order; `chorusctl settings` shows each value
and its source. The file is read when the daemon starts: `chorusd --check-config` checks it, `chorusctl daemon restart` applies it (and keeps
the old daemon running if the file has an error). `chorusctl models add` adds a server of models to it. Durations are written like `90s`, `30m` or `1h30m`, sizes like `16MiB`.

```toml
default_model = \"anthropic/claude-sonnet-4-5\"
approval_timeout = \"5m\"

[defaults]
idle_timeout = \"1h\"
daily_cost_limit = 5.0

[providers.router]
kind = \"openai\"
base_url = \"https://openrouter.ai/api/v1\"
api_key_file = \"router.key\"

[aliases]
fast = \"router/meta-llama/llama-3.3-70b-instruct\"

[prices.\"router/meta-llama/llama-3.3-70b-instruct\"]
input = 0.12
output = 0.3

[permissions.careful]
allow = ['tool:(view|create_file|str_replace):.*', 'tool:bash:(ls|cargo (build|test))( .*)?']
ask = ['tool:git:push( .*)?']

[permission_grants]
admin = [\"open\", \"standard\", \"locked\", \"careful\"]
```
";

const AGENT: &str = "
## Keys of an agent

`chorusctl agent config NAME KEY VALUE` sets a key of one agent, and an empty value unsets it; `agent config NAME` lists them. They are kept in
`agent.json` in the agent's directory.
";

/// The text before the keys of a table.
const TABLES: [(&str, &str); 15] = [
    ("", "These keys come before the first table."),
    ("defaults", "For agents that do not set the key themselves (`chorusctl agent config`)."),
    ("discord", "See [DISCORD.md](DISCORD.md). Without a token, Discord is off."),
    ("discovery", "Model servers on this machine."),
    ("retention", "Saved conversations that nobody uses."),
    ("capture", "Which conversations of other coding agents are saved ([CAPTURE.md](CAPTURE.md))."),
    ("metrics", "Figures for Prometheus ([OPERATIONS.md](OPERATIONS.md#metrics))."),
    ("search", "What `chorusctl search` finds."),
    (
        "store",
        "The database that keeps everything. This table and the next two are only in a `chorusd` that was built with the feature `cluster` ([SCALING.md](SCALING.md)). \
         Set one of `url_file`, `url_env` and `credential`.",
    ),
    ("store.sessions", "Where several daemons have the messages of saved sessions."),
    ("cluster", "This daemon among those that share the database."),
    (
        "providers.NAME",
        "A server of models. Without any such table, `anthropic` is configured if `ANTHROPIC_API_KEY` is set or `default_model` names it. \
         Set at most one of `api_key_env`, `api_key_file` and `credential`; without one, the usual variable of a service \
         (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`) is sent to that service only.",
    ),
    (
        "mcp.NAME",
        "A server of the Model Context Protocol, see [TOOLS.md](TOOLS.md#tools-of-mcp-servers). Set either `command` or `url`. `env`, `network`, `read` and \
         `write` belong to `command`; the token and the headers belong to `url`. The name has lower-case letters, digits and `-`.",
    ),
    (
        "hosts.NAME",
        "A machine for `chorusctl --host NAME`, see [REMOTE.md](REMOTE.md). `chorusctl` reads this table of the machine that it runs on.",
    ),
    (
        "prices.\"PROVIDER/MODEL\"",
        "US dollars per million tokens. A price here replaces the one that the provider tells.",
    ),
];

const OTHER_TABLES: &str = "
## [aliases]

Short names of models: `NAME = \"provider/model\"`. A name must not contain a slash.

## [permissions.NAME]

A permission profile of your own. [PERMISSIONS.md](PERMISSIONS.md) describes its keys.

## [permission_grants]

Who may give which profiles to agents in Discord: `ROLE = [\"PROFILE\", …]`. The daemon's own user and root may give any profile.
";

#[test]
fn the_configuration_page_is_up_to_date() {
    let mut page = HEAD.to_owned();
    let keys = config_reference();
    for (table, about) in TABLES {
        let title = if table.is_empty() { "Top level".to_owned() } else { format!("[{table}]") };
        _ = write!(page, "\n## {title}\n\n{about}\n\n");
        describe(&mut page, keys.iter().filter(|key| key.table == table));
    }
    let missing = keys.iter().find(|key| !TABLES.iter().any(|(table, _)| *table == key.table));
    assert_eq!(missing, None, "a table without a section");
    page.push_str(OTHER_TABLES);
    page.push_str(AGENT);
    page.push('\n');
    page.push_str("| key | meaning |\n|---|---|\n");
    for key in agent_reference() {
        _ = writeln!(page, "| `{}` | {} |", key.name, cell(key.about));
    }
    compare(PAGE, &page);
}

#[test]
fn the_example_of_the_configuration_page_loads() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("config.toml");
    let example = HEAD.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    fs::write(&file, example).expect("writes the file");
    let config = chorus_config::load(&file, |_| None).unwrap_or_else(|e| panic!("{}", e.message));
    assert_eq!(config.aliases.len() + config.prices.len() + config.providers.len(), 3);
}

fn describe<'a>(page: &mut String, keys: impl Iterator<Item = &'a KeyReference>) {
    let keys: Vec<_> = keys.collect();
    let has_default = keys.iter().any(|key| key.default.is_some());
    page.push_str(if has_default {
        "| key | default | meaning |\n|---|---|---|\n"
    } else {
        "| key | meaning |\n|---|---|\n"
    });
    for key in &keys {
        let default = key.default.as_ref().map(|value| format!("`{}`", cell(value))).unwrap_or_default();
        let variable = key.variable().map(|name| format!(" [env: `{name}`]")).unwrap_or_default();
        let about = format!("{}{variable}", cell(key.about));
        _ = if has_default {
            writeln!(page, "| `{}` | {default} | {about} |", key.name)
        } else {
            writeln!(page, "| `{}` | {about} |", key.name)
        };
    }
}

/// Escapes what would end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
