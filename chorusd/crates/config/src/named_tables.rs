//! The tables of config.toml with names chosen by the user: `[providers.NAME]`, `[prices."MODEL"]`, `[aliases]`,
//! `[mcp.NAME]`, `[hosts.NAME]`, `[permissions.NAME]`, `[permission_grants]`.

use std::ffi::OsString;
use std::path::Path;

use chorus_base::closest_match;
use toml::de::{DeTable, DeValue};

use super::hosts::{HOST_KEYS, HostConfig};
use super::mcp::{MCP_KEYS, McpServerBuilder, check_mcp_name};
use super::provider::{ANTHROPIC, NamedTableKey, PRICE_KEYS, PROVIDER_KEYS, Price, ProviderBuilder, check_name};
use super::raw_value::RawConfigValue;
use super::{Config, grants, permissions};

/// The table that refers to profiles. It is read last, because profiles may be defined after it.
pub(crate) const GRANTS_TABLE: &str = "permission_grants";

/// Names of these tables.
pub(crate) const NAMED_TABLES: [&str; 7] =
    ["providers", "prices", "aliases", "mcp", "hosts", "permissions", GRANTS_TABLE];

/// An error: byte offset, message, and hint.
pub(crate) type TableError = (usize, String, String);

/// Where the configuration is read from.
pub(crate) struct ConfigSource<'a> {
    pub dir: &'a Path,
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
}

/// Reads one of [`NAMED_TABLES`].
pub(crate) fn read_table(
    config: &mut Config,
    table: &str,
    content: &DeTable<'_>,
    source: &ConfigSource<'_>,
) -> Result<(), TableError> {
    if table == GRANTS_TABLE {
        return grants::read_grants(config, content);
    }
    for (label, value) in content {
        let (name, at) = (label.get_ref().as_ref(), label.span().start);
        let place = format!("{table}.{}", quote_key(name));
        let wrong = |what: String| (at, format!("`{place}` {what}"), "fix it; see docs/CONFIGURATION.md".into());
        match table {
            "aliases" => {
                let model = RawConfigValue::from_toml(value.get_ref()).text().map_err(&wrong)?;
                check_alias(name, &model).map_err(&wrong)?;
                config.aliases.insert(name.to_owned(), model);
            }
            "prices" => {
                check_model_ref(name).map_err(&wrong)?;
                let content = as_table(value.get_ref()).map_err(&wrong)?;
                let mut price = Price::default();
                set_keys(&mut price, &place, content, PRICE_KEYS)?;
                // A heading whose last key was removed says nothing; it does not make the model free.
                if content.iter().next().is_some() {
                    config.prices.insert(name.to_owned(), price);
                }
            }
            "mcp" => {
                check_mcp_name(name).map_err(&wrong)?;
                let mut draft = McpServerBuilder::default();
                set_keys(&mut draft, &place, as_table(value.get_ref()).map_err(&wrong)?, MCP_KEYS)?;
                let server = draft.build(name, source.dir, source.env).map_err(&wrong)?;
                config.mcp.insert(name.to_owned(), server);
            }
            "hosts" => {
                let mut host = HostConfig::default();
                set_keys(&mut host, &place, as_table(value.get_ref()).map_err(&wrong)?, HOST_KEYS)?;
                config.hosts.insert(name.to_owned(), host);
            }
            "permissions" => {
                let content = as_table(value.get_ref()).map_err(&wrong)?;
                permissions::read_profile(&mut config.profiles, name, content).map_err(|(inside, what)| {
                    let hint = "fix it; see the examples in `docs/PERMISSIONS.md`".to_owned();
                    (inside.unwrap_or(at), format!("`{place}`{what}"), hint)
                })?;
            }
            _ => {
                check_name(name).map_err(&wrong)?;
                let mut draft = ProviderBuilder::default();
                set_keys(&mut draft, &place, as_table(value.get_ref()).map_err(&wrong)?, PROVIDER_KEYS)?;
                let provider = draft.build(name, source.dir, source.env).map_err(&wrong)?;
                config.providers.insert(name.to_owned(), provider);
            }
        }
    }
    Ok(())
}

/// Adds the provider Anthropic if no provider is configured and there is a key for it in the environment or the default
/// model is one of Anthropic's.
pub(crate) fn add_default_provider(config: &mut Config, source: &ConfigSource<'_>) {
    let (name, _, variable) = ANTHROPIC;
    let meant = config.default_model.as_deref().is_some_and(|model| model.split('/').next() == Some(name));
    let has_key = (source.env)(variable).is_some_and(|key| !key.is_empty());
    if config.providers.is_empty()
        && (meant || has_key)
        && let Ok(provider) = ProviderBuilder::default().build(name, source.dir, source.env)
    {
        config.providers.insert(name.to_owned(), provider);
    }
}

fn set_keys<T>(whole: &mut T, place: &str, content: &DeTable<'_>, keys: &[NamedTableKey<T>]) -> Result<(), TableError> {
    for (label, value) in content {
        let (name, at) = (label.get_ref().as_ref(), label.span().start);
        let Some((_, _, set)) = keys.iter().find(|(key, ..)| *key == name) else {
            let known = keys.iter().map(|(key, ..)| *key);
            let hint = match closest_match(name, known.clone()) {
                Some(meant) => format!("did you mean `{place}.{meant}`?"),
                None => format!("known keys: {}", known.collect::<Vec<_>>().join(", ")),
            };
            return Err((at, format!("unknown key `{place}.{name}`"), hint));
        };
        set(whole, &RawConfigValue::from_toml(value.get_ref()))
            .map_err(|e| (at, format!("`{place}.{name}` {e}"), "fix the value".into()))?;
    }
    Ok(())
}

fn as_table<'a, 'b>(value: &'a DeValue<'b>) -> Result<&'a DeTable<'b>, String> {
    match value {
        DeValue::Table(table) => Ok(table),
        _ => Err("must be a table".into()),
    }
}

/// Checks that `name` is a `provider/model`.
fn check_model_ref(name: &str) -> Result<(), String> {
    let named = name.split_once('/').is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty());
    if named { Ok(()) } else { Err("must be for a provider/model".into()) }
}

fn check_alias(name: &str, of: &str) -> Result<(), String> {
    if name.is_empty() || name.contains('/') {
        return Err("must have a name without a slash".into());
    }
    check_model_ref(of)
}

/// Quotes a name as in a TOML table header, if necessary.
fn quote_key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if bare { name.to_owned() } else { format!("{name:?}") }
}
