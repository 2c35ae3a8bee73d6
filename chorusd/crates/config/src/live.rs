//! The keys that a running daemon takes from a configuration file that was changed, and those that wait for its restart.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Config, Origin};

/// Fixed keys outside of [`LIVE_TABLES`] that a running daemon applies.
const LIVE_KEYS: [&str; 5] = [
    "default_model",
    "approval_timeout",
    "stop_timeout",
    "retention.sessions_unused_for",
    "retention.sessions_compressed_after",
];

/// Tables that a running daemon applies. `chorusctl` reads those of `hosts` itself.
const LIVE_TABLES: [&str; 7] =
    ["defaults", "providers", "prices", "aliases", "hosts", "permissions", "permission_grants"];

/// Returns true if a running daemon applies a change of the key, which is given with its table.
#[must_use]
pub fn is_live(key: &str) -> bool {
    let table = key.split_once('.').map_or("", |(table, _)| table);
    LIVE_KEYS.contains(&key) || LIVE_TABLES.contains(&table)
}

impl Config {
    /// Returns this configuration with the values of `new` that a running daemon applies.
    #[must_use]
    pub fn with_live_values(&self, new: &Self) -> Self {
        let mut merged = Self {
            default_model: new.default_model.clone(),
            approval_timeout: new.approval_timeout,
            stop_timeout: new.stop_timeout,
            defaults: new.defaults.clone(),
            providers: new.providers.clone(),
            aliases: new.aliases.clone(),
            hosts: new.hosts.clone(),
            prices: new.prices.clone(),
            sessions_unused_for: new.sessions_unused_for,
            sessions_compressed_after: new.sessions_compressed_after,
            profiles: new.profiles.clone(),
            grants: new.grants.clone(),
            file: new.file.clone(),
            ..self.clone()
        };
        let kept: Vec<_> = new.origins.keys().chain(self.origins.keys()).filter(|key| !is_live(key)).cloned().collect();
        let (shown, next) = (merged.to_entries(), new.to_entries());
        let value = |entries: &[(String, Value)], name: &str| {
            entries.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        let kept: Vec<_> = kept.into_iter().filter(|key| value(&shown, key) != value(&next, key)).collect();
        // A value that is the same comes from where the file or the environment has it now.
        merged.origins.retain(|key, _| kept.contains(key));
        let moved = new.origins.iter().filter(|(key, _)| !kept.contains(key));
        merged.origins.extend(moved.map(|(key, origin)| (key.clone(), origin.clone())));
        // A value that waits for a restart is that of the daemon, and its line is where the file has the key now.
        for key in kept {
            let Some(Origin::File { path, line }) = merged.origins.get_mut(&key) else { continue };
            *line = match new.origins.get(&key) {
                Some(Origin::File { path: there, line }) if there == path => *line,
                _ => 0,
            };
        }
        merged
    }
}

/// Tables that have tables with the user's names, each with several keys.
const TABLES_OF_ENTRIES: [&str; 4] = ["providers", "prices", "mcp", "hosts"];

/// Returns the keys whose values differ. An entry such as `providers.local` that only one of the two has is named as a
/// whole.
#[must_use]
pub fn changed_keys(old: &Config, new: &Config) -> Vec<String> {
    let before: BTreeMap<String, Value> = old.to_entries().into_iter().collect();
    let after: BTreeMap<String, Value> = new.to_entries().into_iter().collect();
    let is_in = |there: &BTreeMap<String, Value>, entry: &str| {
        let inside = format!("{entry}.");
        there.range(inside.clone()..).next().is_some_and(|(key, _)| key.starts_with(&inside))
    };
    let mut changed = Vec::new();
    let order = new.to_entries().into_iter().chain(old.to_entries()).map(|(key, _)| key);
    for key in order.filter(|key| before.get(key) != after.get(key)) {
        let name = match entry_of(&key).filter(|entry| is_in(&before, entry) != is_in(&after, entry)) {
            Some(entry) => entry.to_owned(),
            None => key,
        };
        if !changed.contains(&name) {
            changed.push(name);
        }
    }
    changed
}

/// Returns the entry that has the key.
fn entry_of(key: &str) -> Option<&str> {
    TABLES_OF_ENTRIES.contains(&key.split('.').next()?).then(|| key.rsplit_once('.'))?.map(|(entry, _)| entry)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::check_text;

    fn read(text: &str) -> Config {
        check_text(text, Path::new("config.toml"), &|_| None).unwrap_or_else(|problem| panic!("{}", problem.what))
    }

    #[test]
    fn every_key_is_applied_or_waits_for_a_restart() {
        let old = read("");
        let new = read(
            "default_model = \"a/b\"\ndurability = \"interval\"\nautosave_interval = \"1s\"\nresume_on_start = false\n\
             max_frame = \"1MiB\"\nmax_connections = 1\nframe_timeout = \"1s\"\nstop_timeout = \"1s\"\n\
             approval_timeout = \"1s\"\nlog_level = \"warn\"\n[defaults]\nidle_timeout = \"1s\"\npermissions = \"own\"\n\
             window_messages = 1\ncompact_at_tokens = 1\ndaily_token_limit = 1\ndaily_cost_limit = 1\nredact = false\n\
             checkpoint_workspace = true\nmax_conversations = 1\nconcurrent_turns = 1\nworkspace = \"worktree\"\n\
             [discord]\ntoken_file = \"t\"\nguilds = \"1\"\ncategory = \"c\"\napprovers = \"a\"\ndm_agent = \"a\"\n\
             dm_allow = \"a\"\napi_base = \"http://a\"\ngateway_url = \"ws://a\"\nreconnect_max = \"1s\"\nshards = \"2\"\n\
             [discovery]\nlocal = true\n[retention]\nsessions_unused_for = \"2d\"\nsessions_compressed_after = \"2d\"\n\
             [capture]\nsources = \"codex\"\n\
             exclude = \"/a\"\nredact_secrets = false\n[metrics]\nlisten = \"127.0.0.1:1\"\n\
             [traces]\nendpoint = \"http://a\"\nheaders_env = \"A\"\ncontent = true\nservice_name = \"a\"\n[search]\nindex = false\n\
             index_tool_results = true\nlanguage = \"german\"\n[providers.x]\nkind = \"openai\"\nbase_url = \"http://a\"\n\
             [prices.\"x/y\"]\ninput = 1\n[aliases]\nx = \"x/y\"\n[hosts.h]\nssh = \"a\"\n[permissions.own]\nallow = []\n\
             [permission_grants]\nadmin = [\"own\"]\n[mcp.m]\nurl = \"https://a\"\n",
        );
        let merged = old.with_live_values(&new);
        let (applied, left) = (changed_keys(&old, &merged), changed_keys(&merged, &new));
        assert!(applied.iter().all(|key| is_live(key)), "{applied:?}");
        assert!(left.iter().all(|key| !is_live(key)), "{left:?}");
        let all = changed_keys(&old, &new);
        assert_eq!(applied.len() + left.len(), all.len());
        let fixed = crate::config_reference().into_iter().filter(|key| key.variable().is_some());
        for key in fixed.filter(|key| !matches!(key.table, "store" | "store.sessions" | "cluster")) {
            let name = crate::keys::dotted_name(key.table, key.name);
            // One source of a secret excludes the others.
            let others = ["discord.credential", "traces.credential", "traces.headers_file"];
            assert!(all.contains(&name) || others.contains(&&*name), "{name} is not changed by the test");
        }
        assert_eq!(merged.origins.get("max_frame"), None);
        let line_of = |config: &Config| match config.origins.get("max_connections") {
            Some(Origin::File { line, .. }) => Some(*line),
            _ => None,
        };
        let earlier = read("max_connections = 1\n");
        let waits = |text: &str| line_of(&earlier.with_live_values(&read(text)));
        assert_eq!(waits("stop_timeout = \"1s\"\n\nmax_connections = 2\n"), Some(3));
        assert_eq!(waits("stop_timeout = \"1s\"\n"), Some(0), "the file does not have it any more");
        assert_eq!(merged.origins.get("stop_timeout"), new.origins.get("stop_timeout"));
        assert_eq!(old.with_live_values(&read("max_connections = 1024\n")).origins.len(), 1);
    }
}
