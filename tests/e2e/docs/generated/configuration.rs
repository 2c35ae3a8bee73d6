//! docs/CONFIGURATION.md is what the tables of keys say, and its examples load.

use std::fmt::Write as _;
use std::fs;

use chorus_config::{KeyReference, agent_reference, config_reference, table_references};

use super::compare;

const PAGE: &str = "docs/CONFIGURATION.md";

const HEAD: &str = "\
# Configuration

Every key of `config.toml` and of an agent, with its default and its meaning. Generated: `cargo xtask bless`.

Chorus needs no configuration file. It reads the first of these:

1. the file that `$CHORUS_CONFIG` names,
2. `config.toml` in `$CHORUS_HOME`, if that is set,
3. `~/.config/chorus/config.toml`.

A value comes from the environment, `chorusctl settings set`, the file or the default, in this order.

    chorusctl config                                  # every key with its value and source; --origin names the line
    chorusctl config get defaults.idle_timeout        # one value
    chorusctl config set defaults.idle_timeout 1h     # in config.toml; comments in it stay
    chorusctl config unset defaults.idle_timeout      # its default again
    chorusctl config edit                             # in $EDITOR; checked before it replaces the file
    chorusctl config check [FILE|-]                   # without any effect
    chorusctl config reload                           # after another program has changed the file
    chorusctl config show --default                   # a file with every key and its default as a comment

These commands change the file at once or not at all: a key that does not exist, or a value that cannot be used, is refused with its place and the nearest
key. Concurrent changes, links, the owner and the permissions of the file are kept; a read-only file is not replaced. The audit log names each change that a
running daemon makes or applies. A running daemon reads the file again after each change, and if it gets SIGHUP
(a daemon in a terminal stops instead, as that is what a terminal sends when it is closed). It applies what it can to agents at work; a key with `[restart]`
below applies after `chorusctl daemon restart`, which `chorusctl config` says until then. If the file has an error, the daemon keeps the
configuration that it has, says so in its log and in the event `config.reloaded`, and `chorusctl daemon restart` does not stop it. In a cluster, each node has
its own file; a value of `settings set` holds for all nodes.

`chorusctl models add` adds a server of models to the file. Durations are written like `90s`, `30m` or `1h30m`, sizes like `16MiB`.

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

#[test]
fn the_configuration_page_is_up_to_date() {
    let mut page = HEAD.to_owned();
    let keys = config_reference();
    for table in table_references() {
        let title = if table.name.is_empty() { "Top level".to_owned() } else { format!("[{}]", table.name) };
        _ = write!(page, "\n## {title}\n\n{}\n", table.about);
        let keys: Vec<_> = keys.iter().filter(|key| key.table == table.name).collect();
        if !keys.is_empty() {
            page.push('\n');
            describe(&mut page, &keys);
        }
    }
    let missing = keys.iter().find(|key| !table_references().iter().any(|table| table.name == key.table));
    assert_eq!(missing, None, "a table without a section");
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

fn describe(page: &mut String, keys: &[&KeyReference]) {
    let has_default = keys.iter().any(|key| key.default.is_some());
    page.push_str(if has_default {
        "| key | default | meaning |\n|---|---|---|\n"
    } else {
        "| key | meaning |\n|---|---|\n"
    });
    for key in keys {
        let default = key.default.as_ref().map(|value| format!("`{}`", cell(value))).unwrap_or_default();
        let variable = key.variable().map(|name| format!(" [env: `{name}`]")).unwrap_or_default();
        let restart = if key.needs_restart() { " [restart]" } else { "" };
        let about = format!("{}{variable}{restart}", cell(key.about));
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
