//! Loads config.toml and the environment.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use toml::de::{DeTable, DeValue};

use super::keys::{dotted_name, keys};
use super::named_tables::{self, ConfigSource, GRANTS_TABLE, NAMED_TABLES};
use super::raw_value::RawConfigValue;
use super::syntax_problem::{SyntaxProblem, describe};
use super::{Config, Origin};

/// Loads the configuration: defaults, then the file (which need not exist), then the environment (`CHORUS_` and the key
/// in capitals).
///
/// # Errors
/// Fails if the file cannot be read, and for an unknown key or an invalid value; the error names its line or variable.
pub fn load(path: &Path, env: impl Fn(&str) -> Option<OsString>) -> Result<Config> {
    match std::fs::read_to_string(path) {
        Ok(text) => load_text(Some(&text), path, env),
        Err(e) if e.kind() == io::ErrorKind::NotFound => load_text(None, path, env),
        Err(e) => Err(Error::new(ErrorKind::InvalidConfig, format!("cannot read {}: {e}", path.display()))
            .hint("make it readable, or set another file in CHORUS_CONFIG")),
    }
}

/// Loads the configuration as [`load`] does, as if the file at `path` had this text; `None` if it did not exist.
///
/// # Errors
/// As [`load`], except that no file is read.
pub fn load_text(text: Option<&str>, path: &Path, env: impl Fn(&str) -> Option<OsString>) -> Result<Config> {
    let mut config = Config::default();
    let source = ConfigSource { dir: path.parent().unwrap_or(Path::new("")), env: &env };
    config.file.path = path.to_owned();
    if let Some(text) = text {
        config.file.exists = true;
        from_toml(&mut config, text, path, &source).map_err(|problem| problem.into_error(path))?;
    }
    for key in keys() {
        let name = key.variable();
        let Some(value) = env(&name).filter(|value| !value.is_empty()) else { continue };
        (key.set)(&mut config, &RawConfigValue::Text(value.to_string_lossy().into_owned())).map_err(|e| {
            Error::new(ErrorKind::InvalidConfig, format!("environment variable {name} {e}")).hint("fix or unset it")
        })?;
        config.origins.insert(dotted_name(key.table, key.name), Origin::Environment(name));
    }
    named_tables::add_default_provider(&mut config, &source);
    let named = config.origins.contains_key("discord.token_env");
    config.discord.locate_token(named, source.dir, source.env);
    config.store.locate_url(source.dir, source.env);
    config.store.sessions.locate_key(source.dir, source.env);
    config.cluster.locate_files(source.dir);
    config.traces.locate_headers(source.dir, source.env);
    Ok(config)
}

/// A problem of the configuration file, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// Counted from 1, as is `column`.
    pub line: usize,
    pub column: usize,
    pub what: String,
    pub hint: String,
}

impl FileProblem {
    fn at(text: &str, offset: usize, what: String, hint: String) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[line_start..].chars().count() + 1;
        Self { line: line_of(text, offset), column, what, hint }
    }

    /// The error for the file at `path`.
    #[must_use]
    pub fn into_error(self, path: &Path) -> Error {
        let Self { line, column, what, hint } = self;
        let message = format!("{}, line {line}, column {column}: {what}", path.display());
        Error::new(ErrorKind::InvalidConfig, message).hint(hint)
    }
}

/// Returns the line of an offset, counted from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Checks a text that the file at `path` is to have, without the environment's values.
///
/// # Errors
/// The first problem.
pub fn check_text(text: &str, path: &Path, env: &dyn Fn(&str) -> Option<OsString>) -> Result<Config, FileProblem> {
    let mut config = Config::default();
    let source = ConfigSource { dir: path.parent().unwrap_or(Path::new("")), env };
    from_toml(&mut config, text, path, &source)?;
    Ok(config)
}

fn from_toml(config: &mut Config, text: &str, path: &Path, source: &ConfigSource<'_>) -> Result<(), FileProblem> {
    let wrong = |at: usize, what: String, hint: String| FileProblem::at(text, at, what, hint);
    let origin = |at: usize| Origin::File { path: path.to_owned(), line: line_of(text, at) };
    let document = DeTable::parse(text).map_err(|e| {
        let SyntaxProblem { offset, what, hint } = describe(text, e.span().map_or(0, |s| s.start), e.message());
        wrong(offset, what, hint)
    })?;
    let mut pairs = Vec::new();
    let (last, first): (Vec<_>, Vec<_>) =
        document.get_ref().iter().partition(|(name, _)| *name.get_ref() == GRANTS_TABLE);
    for (name, value) in first.into_iter().chain(last) {
        let is_in = |table: &str| table == name.get_ref() || table.split('.').next() == Some(name.get_ref());
        let tables = keys().any(|key| is_in(key.table));
        match value.get_ref() {
            DeValue::Table(inner) if NAMED_TABLES.contains(&name.get_ref().as_ref()) => {
                named_tables::read_table(config, name.get_ref().as_ref(), inner, source)
                    .map_err(|(at, what, hint)| wrong(at, what, hint))?;
                record_origins(config, name.get_ref(), inner, origin);
            }
            DeValue::Table(inner) if tables => {
                for (inner_name, inner_value) in inner {
                    let nested = dotted_name(name.get_ref(), inner_name.get_ref());
                    match (keys().find(|key| key.table == nested), inner_value.get_ref()) {
                        (Some(of), DeValue::Table(keys)) => {
                            pairs.extend(keys.iter().map(|(key, value)| (of.table, key, value)));
                        }
                        _ => pairs.push((name.get_ref().as_ref(), inner_name, inner_value)),
                    }
                }
            }
            _ => pairs.push(("", name, value)),
        }
    }
    // The problem that is named is the first one in the file.
    pairs.sort_by_key(|(_, name, _)| name.span().start);
    for (table, name, value) in pairs {
        let given = name.get_ref().as_ref();
        let at = name.span().start;
        let Some(key) = keys().find(|key| key.table == table && key.name == given) else {
            let hint = match value.get_ref() {
                DeValue::Table(_) => suggest_table(table, given).unwrap_or_else(|| suggest_key(table, given)),
                _ => suggest_key(table, given),
            };
            return Err(wrong(at, format!("unknown key `{}`", dotted_name(table, given)), hint));
        };
        (key.set)(config, &RawConfigValue::from_toml(value.get_ref()))
            .map_err(|e| wrong(at, format!("`{}` {e}", dotted_name(table, given)), "fix the value".into()))?;
        config.origins.insert(dotted_name(table, given), origin(at));
    }
    Ok(())
}

/// Records the file as the origin of the keys of a named table.
fn record_origins(config: &mut Config, table: &str, content: &DeTable<'_>, origin: impl Fn(usize) -> Origin) {
    for (label, value) in content {
        let name = match table {
            "prices" => format!("{:?}", label.get_ref()),
            _ => label.get_ref().to_string(),
        };
        match value.get_ref() {
            DeValue::Table(inner) if table != "permissions" => {
                let keys = inner.iter().map(|(key, _)| (format!("{table}.{name}.{}", key.get_ref()), key.span().start));
                config.origins.extend(keys.map(|(key, at)| (key, origin(at))));
            }
            _ => _ = config.origins.insert(format!("{table}.{name}"), origin(label.span().start)),
        }
    }
}

/// The hint about an unknown table: the most similar one in the same place.
fn suggest_table(table: &str, given: &str) -> Option<String> {
    let above = if table.is_empty() { String::new() } else { format!("{table}.") };
    let inside = |key: &'static str| key.strip_prefix(&above)?.split('.').next().filter(|name| !name.is_empty());
    let named = if table.is_empty() { &NAMED_TABLES[..] } else { &[] };
    let name = closest_match(given, keys().filter_map(|key| inside(key.table)).chain(named.iter().copied()))?;
    // Those of the user's names are suggested as keys are.
    (!named.contains(&name)).then(|| format!("did you mean `[{above}{name}]`?"))
}

/// Checks that the file may have a key, which is given with its table. Those of tables with the user's names are not checked.
///
/// # Errors
/// `invalid_params` with the most similar key.
pub(crate) fn check_key(key: &str) -> Result<()> {
    let (first, (table, name)) = (key.split('.').next().unwrap_or(key), key.rsplit_once('.').unwrap_or(("", key)));
    if NAMED_TABLES.contains(&first) || keys().any(|known| known.table == table && known.name == name) {
        return Ok(());
    }
    Err(Error::invalid(format!("unknown key `{key}`")).hint(suggest_key(table, name)))
}

/// The hint about an unknown key: the most similar key of its table, else of any table.
fn suggest_key(table: &str, given: &str) -> String {
    let first = if table.is_empty() { given } else { table };
    if cfg!(not(feature = "cluster")) && matches!(first, "store" | "cluster") {
        return "this chorusd was built without the feature `cluster`, see docs/SCALING.md".to_owned();
    }
    let here = keys().filter(|key| key.table == table).map(|key| key.name);
    let found = closest_match(given, here).map(|name| dotted_name(table, name)).or_else(|| {
        let name = closest_match(given, keys().map(|key| key.name).chain(NAMED_TABLES))?;
        Some(keys().find(|key| key.name == name).map_or(name.to_owned(), |key| dotted_name(key.table, key.name)))
    });
    match found {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            format!("known keys: {}", keys().map(|k| dotted_name(k.table, k.name)).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{KeySource, ProviderKind};

    fn read(text: &str) -> Result<Config> {
        let mut config = Config::default();
        let env = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "sk-test".into());
        let source = ConfigSource { dir: Path::new("/etc/chorus"), env: &env };
        let path = Path::new("config.toml");
        from_toml(&mut config, text, path, &source).map_err(|problem| problem.into_error(path))?;
        named_tables::add_default_provider(&mut config, &source);
        Ok(config)
    }

    #[test]
    fn keys_are_set() {
        let config =
            read("default_model = \"local/small\"\nmax_frame = \"1MiB\"\n[defaults]\nidle_timeout = \"5m\"\n").unwrap();
        assert_eq!(config.default_model.as_deref(), Some("local/small"));
        assert_eq!(config.max_frame, 1 << 20);
        assert_eq!(config.defaults.idle_timeout, Some(Duration::from_secs(300)));
    }

    #[test]
    fn a_wrong_key_is_named_with_line_and_neighbour() {
        let failure = read("durability = \"always\"\n\n[defaults]\nidel_timeout = \"5m\"\n").unwrap_err();
        assert_eq!(failure.message, "config.toml, line 4, column 1: unknown key `defaults.idel_timeout`");
        assert_eq!(failure.hint.as_deref(), Some("did you mean `defaults.idle_timeout`?"));
        let in_cluster = [("clusters", "cluster"), ("stores", "store"), ("store.session", "store.sessions")];
        let known = in_cluster.into_iter().filter(|_| cfg!(feature = "cluster"));
        for (given, meant) in known.chain([("default", "defaults"), ("retentoin", "retention")]) {
            let failure = read(&format!("[{given}]\nidle_timeout = \"5m\"\n")).unwrap_err();
            let column = given.find('.').map_or(2, |dot| dot + 3);
            assert_eq!(failure.message, format!("config.toml, line 1, column {column}: unknown key `{given}`"));
            assert_eq!(failure.hint, Some(format!("did you mean `[{meant}]`?")));
        }
        let failure = read("idle_timeout = \"5m\"\n").unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean `defaults.idle_timeout`?"));
    }

    #[test]
    fn a_wrong_value_is_named() {
        let failure = read("resume_on_start = \"perhaps\"").unwrap_err();
        assert_eq!(failure.message, "config.toml, line 1, column 1: `resume_on_start` must be true or false");
        assert!(read("= 1").unwrap_err().message.starts_with("config.toml, line 1, column 1: "));
        assert!(read("[defaults]\npermissions = \"opne\"").unwrap_err().message.contains("did you mean `open`?"));
    }

    #[test]
    fn providers_prices_and_aliases_are_read() {
        let text = "[providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:8080/v1/\"\n\
                    api_key_file = \"key\"\nidle_timeout = \"5s\"\n[providers.anthropic]\n\
                    [aliases]\nfast = \"local/small\"\n[prices.\"local/small\"]\ninput = 1\ncache_read = 0.25\n\
                    [discovery]\nlocal = true\n";
        let config = read(text).unwrap();
        let local = &config.providers["local"];
        assert_eq!((local.kind, &*local.base_url), (ProviderKind::Openai, "http://127.0.0.1:8080/v1"));
        assert_eq!(local.key, KeySource::File("/etc/chorus/key".into()));
        assert_eq!((local.limits.idle, local.limits.connect), (Duration::from_secs(5), Duration::from_secs(10)));
        let key = format!("{:?}", config.providers["anthropic"].key);
        assert!(key.contains("ANTHROPIC_API_KEY") && !key.contains("sk-test"), "{key}");
        assert_eq!(config.aliases["fast"], "local/small");
        assert_eq!((config.prices["local/small"].input, config.prices["local/small"].cache_read), (1.0, Some(0.25)));
        assert!(config.discovery_local);
    }

    #[test]
    fn sessions_stay_unless_an_age_of_days_is_given() {
        assert_eq!(read("[retention]\n").unwrap().sessions_unused_for, None);
        let config = read("[retention]\nsessions_unused_for = \"60d\"").unwrap();
        assert_eq!(config.value("retention.sessions_unused_for"), Some("60d".into()));
        for (value, what) in [
            ("\"30m\"", "must be at least one day"),
            ("\"0\"", "must be at least one day"),
            ("0", "must be at least one day"),
            ("30", "must be a duration"),
            ("\"30\"", "is not a duration"),
            ("\"-30d\"", "is not a duration"),
            ("true", "must be a duration"),
        ] {
            let failure = read(&format!("[retention]\nsessions_unused_for = {value}")).unwrap_err();
            let begin = "config.toml, line 2, column 1: `retention.sessions_unused_for` ";
            assert!(failure.message.starts_with(begin) && failure.message.contains(what), "{}", failure.message);
        }
        let config = read("[retention]\nsessions_compressed_after = \"30d\"").unwrap();
        assert_eq!(config.value("retention.sessions_compressed_after"), Some("30d".into()));
        let failure = read("[retention]\nsessions_compressed_after = \"5h\"").unwrap_err();
        assert!(failure.message.contains("must be at least one day"), "{}", failure.message);
        let failure = read("[retention]\nsessions_unsed_for = \"30d\"").unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean `retention.sessions_unused_for`?"));
    }

    #[test]
    fn anthropic_is_there_for_whoever_has_a_key_and_no_provider() {
        assert!(read("").unwrap().providers.contains_key("anthropic"));
        let other = "[providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n";
        assert!(!read(other).unwrap().providers.contains_key("anthropic"));
        let none = load(Path::new("/nonexistent/config.toml"), |_| None).unwrap();
        assert!(none.providers.is_empty());
        let meant = |name: &str| (name == "CHORUS_DEFAULT_MODEL").then(|| "anthropic/claude".into());
        assert!(load(Path::new("/nonexistent/config.toml"), meant).unwrap().providers.contains_key("anthropic"));
    }

    #[test]
    fn what_is_wrong_with_a_provider_is_said_with_its_line() {
        for (text, what) in [
            ("[providers.x]\nkidn = \"openai\"", "line 2, column 1: unknown key `providers.x.kidn`"),
            (
                "[capture]\nsources = [\"claude\"]",
                "line 2, column 1: `capture.sources` has an unknown program \"claude\"; did you mean \"claude-code\"?",
            ),
            ("[providers.x]\nkind = \"gemini\"", "line 2, column 1: `providers.x.kind` must be"),
            ("\n[providers.x]\nkind = \"openai\"", "line 2, column 12: `providers.x` has no `base_url`"),
            ("[providers.x]\nbase_url = \"http://a\"", "line 1, column 12: `providers.x` has no `kind`"),
            ("[providers.x]\nbase_url = \"ftp://a\"", "line 2, column 1: `providers.x.base_url` must start with http"),
            ("[providers.x]\nbase_url = \"http://me:pw@a\"", "must not contain a user or password"),
            ("[providers.\"a/b\"]\nkind = \"openai\"", "is not a valid provider name"),
            ("[providers.anthropic]\napi_key_env = \"A\"\ncredential = \"b\"", "set only one of"),
            ("[providers.anthropic]\napi_key_env = \"sk-ant 1\"", "must be a name, not the key itself"),
            ("[providers.anthropic]\nidle_timeout = \"0\"", "must be greater than zero"),
            ("providers = 3", "unknown key `providers`"),
            ("[aliases]\nfast = \"small\"", "line 2, column 1: `aliases.fast` must be for a provider/model"),
            ("[prices.\"a/b\"]\ninput = -1", "line 2, column 1: `prices.\"a/b\".input` must be a number"),
            ("[discovry]\nlocal = true", "unknown key `discovry`"),
        ] {
            let failure = read(text).unwrap_err();
            assert!(failure.message.contains(what) && failure.hint.is_some(), "{failure}");
        }
        let failure = read("[providers.x]\nkidn = \"openai\"").unwrap_err();
        assert_eq!(failure.hint.as_deref(), Some("did you mean `providers.x.kind`?"));
    }

    #[test]
    fn roles_grant_profiles_that_there_are() {
        let text = "[permission_grants]\nadmin = [\"open\", \"careful\"]\n[permissions.careful]\nallow = []\n";
        let config = read(text).unwrap();
        let (id, name) = ("1".to_owned(), "Ada".to_owned());
        let ada = chorus_base::requester::Requester::Person { id, name, roles: vec!["admin".into()] };
        assert!(config.grants.check_grant(&ada, &"careful".into()).is_ok());
        assert!(config.grants.check_grant(&ada, &"standard".into()).is_err());
        for (text, what, hint) in [
            (
                "[permission_grants]\na = [\n\"open\",\n\"carefull\"]\n[permissions.careful]\nallow = []\n",
                "line 4, column 1: `permission_grants.a[1]` names the unknown profile `carefull`",
                "did you mean `careful`?",
            ),
            (
                "[permission_grants]\na = \"open\"",
                "line 2, column 1: `permission_grants.a` must be a list",
                "for example",
            ),
            ("[permission_grants]\na = [3]", "line 2, column 6: `permission_grants.a[0]` must be", "for example"),
            ("[permission_grant]\na = []", "unknown key `permission_grant`", "did you mean `permission_grants`?"),
        ] {
            let failure = read(text).unwrap_err();
            assert!(failure.message.contains(what), "{failure}");
            assert!(failure.hint.clone().unwrap().contains(hint), "{failure:?}");
        }
    }

    #[test]
    fn the_environment_wins() {
        let config =
            load(Path::new("/nonexistent/config.toml"), |name| (name == "CHORUS_IDLE_TIMEOUT").then(|| "0".into()));
        assert_eq!(config.unwrap().defaults.idle_timeout, None);
    }
}
