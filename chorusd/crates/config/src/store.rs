//! `[store]`: the database that keeps everything. Only a build with the feature `cluster` has the keys; otherwise it is
//! SQLite in the home.

use std::ffi::OsString;
use std::path::Path;

use chorus_base::Secret;
use serde_json::Value;

use super::keys::ConfigKey;
#[cfg(feature = "cluster")]
use super::keys::config_key;
use super::provider::KeySource;
use super::store_sessions::SessionStoreConfig;

/// The database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// Files in the home.
    #[default]
    Sqlite,
    /// A server, which several daemons can share.
    Postgres,
}

/// The table `[store]`.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreConfig {
    pub kind: StoreKind,
    /// The URL of PostgreSQL, which may contain a password.
    pub url: KeySource,
    pub sessions: SessionStoreConfig,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { kind: StoreKind::default(), url: KeySource::None, sessions: SessionStoreConfig::default() }
    }
}

/// Keys of the table.
#[cfg(not(feature = "cluster"))]
pub(crate) const KEYS: &[ConfigKey] = &[];

/// Keys of the table.
#[cfg(feature = "cluster")]
pub(crate) const KEYS: &[ConfigKey] = &[
    config_key(
        "store",
        "kind",
        "`\"sqlite\"` keeps everything in the home; `\"postgres\"` in a database that several daemons can share.",
        |c, v| {
            c.store.kind = match v.text()?.as_str() {
                "sqlite" => StoreKind::Sqlite,
                "postgres" => StoreKind::Postgres,
                _ => return Err("must be \"sqlite\" or \"postgres\"".into()),
            };
            Ok(())
        },
    ),
    config_key(
        "store",
        "url_file",
        "File with the URL of PostgreSQL; a relative path starts at the directory of config.toml.",
        |c, v| c.store.set_url(KeySource::File(v.text()?.into())),
    ),
    config_key("store", "url_env", "Environment variable that holds the URL of PostgreSQL.", |c, v| {
        let variable = super::provider::parse_name(v, |c| c.is_ascii_alphanumeric() || c == '_')?;
        c.store.set_url(KeySource::Env { variable, value: None })
    }),
    config_key("store", "credential", "Name of a systemd credential that holds the URL of PostgreSQL.", |c, v| {
        let name = super::provider::parse_name(v, |c| c.is_ascii_alphanumeric() || "-_.".contains(c))?;
        c.store.set_url(KeySource::Credential { name, path: None })
    }),
];

impl StoreConfig {
    /// Sets where the URL comes from.
    #[cfg(feature = "cluster")]
    fn set_url(&mut self, url: KeySource) -> Result<(), String> {
        if self.url != KeySource::None && std::mem::discriminant(&self.url) != std::mem::discriminant(&url) {
            return Err("conflicts with another setting: set only one of `url_file`, `url_env` and `credential`".into());
        }
        self.url = url;
        Ok(())
    }

    /// Looks up the environment variable of the URL, and resolves a relative path in `dir`.
    pub(super) fn locate_url(&mut self, dir: &Path, env: &dyn Fn(&str) -> Option<OsString>) {
        match &mut self.url {
            KeySource::Env { variable, value } => {
                let found = env(variable).filter(|value| !value.is_empty());
                *value = found.map(|value| Secret::new(value.to_string_lossy().into_owned()));
            }
            KeySource::File(path) => *path = dir.join(&*path),
            KeySource::Credential { name, path } => {
                *path = env("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(name));
            }
            KeySource::None => {}
        }
    }

    /// Returns the value of a key as it would be written in config.toml; `None` if there is no such key.
    pub(super) fn value(&self, key: &str) -> Option<Value> {
        Some(match key {
            "store.kind" => match self.kind {
                StoreKind::Sqlite => "sqlite".into(),
                StoreKind::Postgres => "postgres".into(),
            },
            "store.url_file" => match &self.url {
                KeySource::File(path) => path.to_string_lossy().into(),
                _ => Value::Null,
            },
            "store.url_env" => match &self.url {
                KeySource::Env { variable, .. } => variable.as_str().into(),
                _ => Value::Null,
            },
            "store.credential" => match &self.url {
                KeySource::Credential { name, .. } => name.as_str().into(),
                _ => Value::Null,
            },
            _ => return self.sessions.value(key.strip_prefix("store.sessions.")?),
        })
    }
}
