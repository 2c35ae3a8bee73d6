//! agent.json: the configuration of one agent.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_permissions::{Profile, Profiles, parse_agent_rules};
use chorus_proto::ErrorKind;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::Config;
use super::mcp::{check_agent_servers, servers_of_agent};
use super::raw_value::parse_idle_timeout;
use super::workspace_mode::WorkspaceMode;

/// Name of the file in an agent's directory.
pub const AGENT_FILE: &str = "agent.json";

/// Largest value of `recall`.
const MAX_RECALL: u64 = 20;

/// A validated agent.json. Unknown keys are preserved.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    map: Map<String, Value>,
    pub id: Uuid,
    pub name: String,
    pub created_at: Timestamp,
    pub model: Option<String>,
    pub permissions: Value,
    /// The profile that `permissions` resolves to with the agent's own rules beside it, or why it cannot be used: then the agent exists but cannot act.
    pub profile: Result<Arc<Profile>, String>,
    /// `None` disables the timeout.
    pub idle_timeout: Option<Duration>,
    pub channel_id: Option<String>,
    pub guild_id: Option<String>,
    pub system_prompt: Option<String>,
    /// Limit of messages in the window.
    pub window_messages: u64,
    /// Number of tokens above which older messages leave the window.
    pub compact_at_tokens: u64,
    /// Tokens per day; 0 means no limit.
    pub daily_token_limit: u64,
    /// US dollars per day; 0 means no limit.
    pub daily_cost_limit: f64,
    /// Whether secrets in its output are redacted.
    pub redact: bool,
    /// Whether a save commits its workspace.
    pub checkpoint_workspace: bool,
    /// The directory for its workspace on a file system that the nodes of a cluster share. Not from its file.
    pub shared_dir: Option<PathBuf>,
    /// Project whose agents share memories.
    pub project: Option<String>,
    /// The program whose imported conversations this agent holds, such as `claude-code`. Such an agent is never the
    /// implied one.
    pub import_source: Option<String>,
    /// Conversations that are live at once.
    pub max_conversations: u64,
    /// Turns of its conversations that run at the same time.
    pub concurrent_turns: u64,
    /// The directories in which its conversations work.
    pub workspace: WorkspaceMode,
    /// Passages of its past that it recalls at the start of a window; 0: none.
    pub recall: u64,
    /// Names of the MCP servers whose tools it has.
    pub mcp: Vec<String>,
}

/// A key that `agent config` sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettableKey {
    pub name: &'static str,
    /// Its meaning in a sentence, for docs/CONFIGURATION.md.
    pub about: &'static str,
    /// True if it can be set in Discord, too. Keys that open one agent to another, or that show secrets, are set at the
    /// terminal only.
    in_discord: bool,
}

/// All keys that `agent config` sets, in alphabetical order.
pub(crate) const CONFIG_KEYS: [SettableKey; 18] = [
    SettableKey { name: "channel_id", in_discord: true, about: "Discord channel that the agent answers in." },
    SettableKey { name: "checkpoint_workspace", in_discord: true, about: "As in `[defaults]`." },
    SettableKey { name: "compact_at_tokens", in_discord: true, about: "As in `[defaults]`." },
    SettableKey { name: "concurrent_turns", in_discord: true, about: "As in `[defaults]`." },
    SettableKey { name: "daily_cost_limit", in_discord: true, about: "As in `[defaults]`." },
    SettableKey { name: "daily_token_limit", in_discord: true, about: "As in `[defaults]`." },
    SettableKey { name: "idle_timeout", in_discord: true, about: "As in `[defaults]`." },
    SettableKey { name: "max_conversations", in_discord: true, about: "As in `[defaults]`." },
    SettableKey {
        name: "mcp",
        in_discord: false,
        about: "Names of the servers of `[mcp.NAME]` whose tools the agent has, as a JSON list. Unset: none.",
    },
    SettableKey {
        name: "model",
        in_discord: true,
        about: "Model of the agent, as `provider/model` or an alias. Unset: `default_model`.",
    },
    SettableKey { name: "name", in_discord: true, about: "Renames the agent." },
    SettableKey {
        name: "permissions",
        in_discord: true,
        about: "Permission profile: a name, or a profile as a JSON object. Unset: `defaults.permissions`.",
    },
    SettableKey { name: "project", in_discord: false, about: "Project whose agents share what they remember." },
    SettableKey {
        name: "recall",
        in_discord: true,
        about: "How many passages of its past the agent recalls when a conversation starts and after a compaction, at most 20. \
                Unset: 0, none.",
    },
    SettableKey { name: "redact", in_discord: false, about: "As in `[defaults]`." },
    SettableKey {
        name: "system_prompt",
        in_discord: true,
        about: "System prompt; the notes in its `docs/` follow it.",
    },
    SettableKey { name: "window_messages", in_discord: true, about: "As in `[defaults]`." },
    SettableKey { name: "workspace", in_discord: true, about: "As in `[defaults]`." },
];

/// Counts the keys of [`SETTABLE_KEYS`], or of [`DISCORD_KEYS`] with `in_discord`.
const fn count_keys(in_discord: bool) -> usize {
    let (mut index, mut count) = (0, 0);
    while index < CONFIG_KEYS.len() {
        count += is_listed(index, in_discord) as usize;
        index += 1;
    }
    count
}

const fn is_listed(index: usize, in_discord: bool) -> bool {
    if in_discord { CONFIG_KEYS[index].in_discord } else { !matches!(CONFIG_KEYS[index].name.as_bytes(), b"name") }
}

const fn list_keys<const COUNT: usize>(in_discord: bool) -> [&'static str; COUNT] {
    let mut names = [""; COUNT];
    let (mut index, mut count) = (0, 0);
    while index < CONFIG_KEYS.len() {
        if is_listed(index, in_discord) {
            names[count] = CONFIG_KEYS[index].name;
            count += 1;
        }
        index += 1;
    }
    names
}

/// Keys of agent.json that `agent config` sets; `name` is a rename and handled elsewhere.
pub const SETTABLE_KEYS: [&str; count_keys(false)] = list_keys(false);

/// Keys that `/agent config` sets in Discord, `name` included.
pub const DISCORD_KEYS: [&str; count_keys(true)] = list_keys(true);

/// Keys that only Chorus writes; `guild_id` follows from the channel.
const MANAGED_KEYS: [&str; 6] =
    ["id", "created_at", "guild_id", "import_source", PERMISSION_RULES_KEY, "running_tasks"];

/// Key of the agent's own rules, which `permissions rules` lists.
pub const PERMISSION_RULES_KEY: &str = "permission_rules";

impl AgentConfig {
    /// Parses agent.json; `defaults` supplies the values of keys that are null or missing.
    ///
    /// # Errors
    /// A message that follows "agent.json".
    pub fn parse(text: &str, defaults: &Config) -> Result<Self, String> {
        let map: Map<String, Value> = serde_json::from_str(text).map_err(|e| format!("is not a JSON object: {e}"))?;
        Self::from_map(map, defaults)
    }

    /// As [`AgentConfig::parse`], for a parsed JSON object.
    pub fn from_map(map: Map<String, Value>, defaults: &Config) -> Result<Self, String> {
        for (key, value) in &map {
            check_value(key, value)?;
        }
        // A few keys are found sooner by looking at each than by hashing; a start reads the files of all agents.
        let get = |key: &str| map.iter().find_map(|(name, value)| (name == key).then_some(value));
        let text = |key: &str| get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| get(key).and_then(Value::as_u64);
        let required = |key: &str| text(key).filter(|v| !v.is_empty()).ok_or_else(|| format!("has no `{key}`"));
        let permissions = match get("permissions") {
            None | Some(Value::Null) => Value::String(defaults.defaults.permissions.clone()),
            Some(given) => given.clone(),
        };
        let profile = defaults.profiles.resolve(&permissions);
        let mut profile = profile.map_err(|e| format!("has invalid `permissions`: {e}"));
        if let (Ok(profile), Some(rules)) = (&mut profile, get(PERMISSION_RULES_KEY).filter(|rules| !rules.is_null())) {
            let rules = parse_agent_rules(rules).map_err(|e| format!("has {e}"))?;
            if !rules.is_empty() {
                *profile = Arc::new(profile.with_agent_rules(rules));
            }
        }
        let id: Uuid = required("id")?.parse().map_err(|_| "has an `id` that is not a UUID".to_owned())?;
        Ok(Self {
            id,
            name: required("name")?,
            created_at: required("created_at")?
                .parse()
                .map_err(|_| "has a `created_at` that is not a time".to_owned())?,
            model: text("model").or_else(|| defaults.default_model.clone()),
            permissions,
            profile,
            idle_timeout: match text("idle_timeout") {
                Some(text) => parse_idle_timeout(&text)?,
                None => defaults.defaults.idle_timeout,
            },
            channel_id: text("channel_id"),
            guild_id: text("guild_id"),
            system_prompt: text("system_prompt").filter(|prompt| !prompt.trim().is_empty()),
            window_messages: number("window_messages").unwrap_or(defaults.defaults.window_messages),
            compact_at_tokens: number("compact_at_tokens").unwrap_or(defaults.defaults.compact_at_tokens),
            daily_token_limit: number("daily_token_limit").unwrap_or(defaults.defaults.daily_token_limit),
            daily_cost_limit: get("daily_cost_limit")
                .and_then(Value::as_f64)
                .unwrap_or(defaults.defaults.daily_cost_limit),
            redact: get("redact").and_then(Value::as_bool).unwrap_or(defaults.defaults.redact),
            checkpoint_workspace: get("checkpoint_workspace")
                .and_then(Value::as_bool)
                .unwrap_or(defaults.defaults.checkpoint_workspace),
            shared_dir: defaults.workspace_root().map(|root| root.join(id.to_string())),
            project: text("project").map(|project| project.trim().to_owned()).filter(|project| !project.is_empty()),
            import_source: text("import_source").filter(|source| !source.is_empty()),
            max_conversations: number("max_conversations").unwrap_or(defaults.defaults.max_conversations),
            concurrent_turns: number("concurrent_turns").unwrap_or(defaults.defaults.concurrent_turns),
            workspace: match text("workspace") {
                Some(text) => text.parse()?,
                None => defaults.defaults.workspace,
            },
            recall: number("recall").unwrap_or(0),
            mcp: servers_of_agent(get("mcp")),
            map,
        })
    }

    /// All keys in the file.
    #[must_use]
    pub fn map(&self) -> &Map<String, Value> {
        &self.map
    }

    /// The text of the file.
    #[must_use]
    pub fn to_json(&self) -> String {
        render(&self.map)
    }
}

/// The text of an agent.json with these keys.
#[must_use]
pub fn render(map: &Map<String, Value>) -> String {
    // Serialising a map of JSON values cannot fail.
    let mut text = serde_json::to_string_pretty(map).unwrap_or_default();
    text.push('\n');
    text
}

/// Returns the values of a key that has a whole number; `None` for other keys.
fn count_range(key: &str) -> Option<RangeInclusive<u64>> {
    match key {
        "window_messages" | "compact_at_tokens" | "daily_token_limit" => Some(0..=u64::MAX),
        "max_conversations" | "concurrent_turns" => Some(1..=u64::MAX),
        "recall" => Some(0..=MAX_RECALL),
        _ => None,
    }
}

/// Converts the value of a key that has a whole number within `range`.
fn count_value(key: &str, range: &RangeInclusive<u64>, value: &Value) -> Result<Value> {
    let count = value.as_u64().or_else(|| value.as_str()?.parse().ok()).filter(|count| range.contains(count));
    count
        .map(Value::from)
        .ok_or_else(|| Error::invalid(format!("`{key}` must be {}", describe_range(range))).hint(example(key)))
}

fn describe_range(range: &RangeInclusive<u64>) -> String {
    match range.end() {
        &u64::MAX => format!("a whole number, at least {}", range.start()),
        end => format!("a whole number from {} to {end}", range.start()),
    }
}

/// Checks that `value` has the type of `key`. The error message follows "agent.json".
fn check_value(key: &str, value: &Value) -> Result<(), String> {
    if let Some(range) = count_range(key).filter(|_| !value.is_null()) {
        let fits = value.as_u64().is_some_and(|count| range.contains(&count));
        return if fits { Ok(()) } else { Err(format!("has a `{key}` that is not {}", describe_range(&range))) };
    }
    let fits = match key {
        _ if value.is_null() => true,
        "id" | "name" | "created_at" | "model" | "system_prompt" | "project" | "channel_id" | "guild_id"
        | "import_source" => value.is_string(),
        "idle_timeout" => {
            let text = value.as_str().ok_or("has an `idle_timeout` that is not a duration string")?;
            parse_idle_timeout(text)?;
            true
        }
        "workspace" => {
            value.as_str().unwrap_or_default().parse::<WorkspaceMode>()?;
            true
        }
        // Which profile it resolves to depends on the configuration, see `AgentConfig::profile`.
        "permissions" => value.is_string() || value.is_object(),
        "daily_cost_limit" => value.as_f64().is_some_and(|limit| limit.is_finite() && limit >= 0.0),
        "redact" | "checkpoint_workspace" => value.is_boolean(),
        "mcp" => {
            check_agent_servers(value)?;
            true
        }
        "running_tasks" | PERMISSION_RULES_KEY => value.is_array(),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("has a `{key}` of the wrong type")) }
}

/// Converts the value for `key` to the type that the file needs: the command line passes texts, JSON clients may pass
/// the type itself.
///
/// # Errors
/// Fails for an unknown key, for one that only Chorus writes, and for a value that does not fit.
pub fn normalise(key: &str, value: Value, profiles: &Profiles) -> Result<Value> {
    if MANAGED_KEYS.contains(&key) {
        return Err(Error::invalid(format!("`{key}` is read-only"))
            .hint(format!("keys that can be set: name, {}", SETTABLE_KEYS.join(", "))));
    }
    if !SETTABLE_KEYS.contains(&key) {
        let failure = Error::invalid(format!("unknown key `{key}`"));
        return Err(match closest_match(key, SETTABLE_KEYS) {
            Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
            None => failure.hint(format!("keys: name, {}", SETTABLE_KEYS.join(", "))),
        });
    }
    if let Some(range) = count_range(key).filter(|_| !value.is_null() && value != "") {
        return count_value(key, &range, &value);
    }
    let value = match value {
        Value::String(text) if text.is_empty() && key != "system_prompt" => Value::Null,
        Value::String(text) if key == "daily_cost_limit" => {
            let limit = text.parse::<f64>().ok().filter(|limit| *limit >= 0.0);
            limit
                .and_then(serde_json::Number::from_f64)
                .map(Value::Number)
                .ok_or_else(|| Error::invalid(format!("`{key}` must be a number, at least 0")).hint(example(key)))?
        }
        Value::String(text)
            if matches!(key, "redact" | "checkpoint_workspace") && matches!(&*text, "true" | "false") =>
        {
            Value::Bool(text == "true")
        }
        // An inline profile, typed as JSON.
        Value::String(text) if key == "permissions" && text.trim_start().starts_with('{') => {
            serde_json::from_str(&text)
                .map_err(|e| Error::invalid(format!("`permissions` is not valid JSON: {e}")).hint(example(key)))?
        }
        // A list, typed as JSON.
        Value::String(text) if key == "mcp" && text.trim_start().starts_with('[') => serde_json::from_str(&text)
            .map_err(|e| Error::invalid(format!("`mcp` is not valid JSON: {e}")).hint(example(key)))?,
        Value::String(text) if key == "mcp" => text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect(),
        Value::Number(number) if key == "idle_timeout" && number.as_u64() == Some(0) => Value::from("0"),
        other => other,
    };
    if key == "permissions" && (value.is_string() || value.is_object()) {
        profiles
            .resolve(&value)
            .map_err(|e| Error::invalid(format!("invalid `permissions`: {e}")).hint(example(key)))?;
    }
    check_value(key, &value).map_err(|e| {
        let what = ["has a ", "has an ", "has "].iter().find_map(|start| e.strip_prefix(start));
        Error::invalid(what.map_or_else(|| e.clone(), |what| format!("the {what}"))).hint(example(key))
    })?;
    Ok(value)
}

/// An example of a value of `key`.
fn example(key: &str) -> String {
    match key {
        "idle_timeout" => "for example 30m, 1h30m or 7d; 0 = never".into(),
        "permissions" => {
            "a profile name, such as standard (see `chorusctl permissions list`), or a profile as JSON".into()
        }
        "max_conversations" => "for example 100".into(),
        "mcp" => "a JSON list of names of `[mcp.NAME]` in config.toml, for example '[\"files\"]'".into(),
        "concurrent_turns" => "for example 4".into(),
        "window_messages" => "for example 50".into(),
        "recall" => "for example 5; 0 = none".into(),
        "compact_at_tokens" => "for example 50000".into(),
        "redact" | "checkpoint_workspace" => "true or false".into(),
        "workspace" => "shared, or worktree for a git worktree per conversation".into(),
        "daily_token_limit" => "for example 2000000; 0 = no limit".into(),
        "daily_cost_limit" => "US dollars, for example 2.50; 0 = no limit".into(),
        "model" => "a string, for example anthropic/claude-sonnet-4-5".into(),
        _ => "a string; an empty string means the default".into(),
    }
}

/// The limit on the characters of the name of an agent or a conversation.
pub const MAX_NAME_CHARS: usize = 64;

/// Checks that `name` is a valid agent name: `[a-z0-9][a-z0-9_-]{0,63}`.
///
/// # Errors
/// `invalid_name` with a similar valid name.
pub fn check_name(name: &str) -> Result<()> {
    let valid = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-');
    let first = |c: char| matches!(c, 'a'..='z' | '0'..='9');
    if name.chars().next().is_some_and(first) && name.chars().all(valid) {
        if name.len() <= MAX_NAME_CHARS {
            return Ok(());
        }
        return Err(Error::new(ErrorKind::InvalidName, format!("the agent name {name:.40}… is too long"))
            .hint(format!("it has {} characters; use at most {MAX_NAME_CHARS}", name.len())));
    }
    let mut near: String = name
        .chars()
        .flat_map(char::to_lowercase)
        .map(|c| if c.is_whitespace() || matches!(c, '.' | '/' | ':') { '-' } else { c })
        .filter(|c| valid(*c))
        .skip_while(|c| !first(*c))
        .take(MAX_NAME_CHARS)
        .collect();
    near.truncate(near.trim_end_matches(['-', '_']).len());
    let shown: String = name.chars().take(80).collect();
    let failure = Error::new(ErrorKind::InvalidName, format!("{shown:?} is not a valid agent name"));
    let rule = "use lower-case letters, digits, `-` and `_` (at most 64, starting with a letter or digit)";
    Err(if near.is_empty() { failure.hint(rule) } else { failure.hint(format!("{rule}, for example `{near}`")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "0", "front-end_2", &"x".repeat(64)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for (bad, near) in
            [("Frontend Agent", "frontend-agent"), ("../x", "x"), ("-a", "a"), ("a\0b", "ab"), ("Ä1", "1")]
        {
            let failure = check_name(bad).unwrap_err();
            assert_eq!(failure.kind, ErrorKind::InvalidName);
            assert!(failure.hint.unwrap().ends_with(&format!("for example `{near}`")), "{bad}");
        }
        assert!(check_name("").unwrap_err().hint.is_some());
        assert!(check_name(&"x".repeat(65)).is_err());
    }

    #[test]
    fn unknown_keys_stay_and_known_ones_are_checked() {
        let text = r#"{"id":"00000000-0000-4000-8000-000000000001","name":"a","created_at":"2026-01-01T00:00:00Z",
            "mine":{"x":[1]},"idle_timeout":"5m"}"#;
        let config = AgentConfig::parse(text, &Config::default()).unwrap();
        assert_eq!(config.idle_timeout, Some(Duration::from_secs(300)));
        assert_eq!(config.permissions, "standard");
        assert!(config.to_json().contains("\"mine\""));
        for (from, to) in
            [("\"5m\"", "5"), ("\"5m\"", "\"soon\""), ("\"a\"", "\"\""), ("{\"id\"", "{\"model\":3,\"id\"")]
        {
            assert!(AgentConfig::parse(&text.replace(from, to), &Config::default()).is_err(), "{from} {to}");
        }
    }

    #[test]
    fn values_of_a_command_line_get_their_type() {
        let profiles = Profiles::default();
        assert_eq!(normalise("window_messages", "20".into(), &profiles).unwrap(), 20);
        assert_eq!(normalise("model", "".into(), &profiles).unwrap(), Value::Null);
        for (key, value, smallest) in [
            ("window_messages", Value::from("many"), 0),
            ("max_conversations", "0".into(), 1),
            ("concurrent_turns", 0.into(), 1),
            ("concurrent_turns", "-1".into(), 1),
            ("concurrent_turns", true.into(), 1),
        ] {
            let refused = normalise(key, value, &profiles).unwrap_err();
            let expected = format!("`{key}` must be a whole number, at least {smallest}");
            assert_eq!(refused.message, expected);
        }
        assert_eq!(normalise("recall", "20".into(), &profiles).unwrap(), 20);
        let refused = normalise("recall", 21.into(), &profiles).unwrap_err();
        assert_eq!(refused.message, "`recall` must be a whole number from 0 to 20");
        assert_eq!(normalise("daily_token_limit", "5000".into(), &profiles).unwrap(), 5000);
        assert_eq!(normalise("daily_cost_limit", "2.5".into(), &profiles).unwrap(), 2.5);
        assert!(normalise("daily_cost_limit", "-1".into(), &profiles).is_err());
        assert!(normalise("daily_cost_limit", "inf".into(), &profiles).is_err());
        assert!(normalise("idle_timeout", "soon".into(), &profiles).is_err());
        assert_eq!(
            normalise("modle", "x".into(), &profiles).unwrap_err().hint.as_deref(),
            Some("did you mean `model`?")
        );
        assert!(normalise("id", "x".into(), &profiles).is_err());
    }
}
