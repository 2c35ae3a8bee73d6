//! `[store.sessions]`: where the bodies of sessions are that several daemons share. Only a build with the feature `cluster`
//! has the keys.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use chorus_base::Secret;
use serde_json::Value;

use super::keys::ConfigKey;
#[cfg(feature = "cluster")]
use super::keys::config_key;
use super::provider::KeySource;

/// Variables with the two parts of the key, unless a file has them.
const KEY_VARIABLES: [&str; 2] = ["CHORUS_S3_KEY_ID", "CHORUS_S3_SECRET"];

/// The kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStoreKind {
    /// A directory that all daemons have, for example on a network file system.
    Dir,
    /// A bucket of a server that speaks S3.
    S3,
}

/// The table `[store.sessions]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionStoreConfig {
    /// `None`: the files of this machine are the only ones.
    pub kind: Option<SessionStoreKind>,
    /// The shared directory.
    pub path: Option<PathBuf>,
    pub bucket: Option<String>,
    /// URL of the server; `None`: Amazon's.
    pub endpoint: Option<String>,
    pub region: String,
    pub prefix: String,
    /// True if the bucket is in the path of a URL; `None`: if there is an endpoint.
    pub path_style: Option<bool>,
    /// Host that may be reached without TLS.
    pub plain_host: Option<String>,
    /// File with the key; [`KeySource::None`]: the environment has it.
    pub key: KeySource,
    /// Key and secret in the environment.
    pub key_in_env: Option<(String, Secret)>,
    /// Bytes that the copies on this machine may have.
    pub cache: u64,
}

impl Default for SessionStoreConfig {
    fn default() -> Self {
        Self {
            kind: None,
            path: None,
            bucket: None,
            endpoint: None,
            region: "us-east-1".into(),
            prefix: String::new(),
            path_style: None,
            plain_host: None,
            key: KeySource::None,
            key_in_env: None,
            cache: 10 << 30,
        }
    }
}

/// Keys of the table.
#[cfg(not(feature = "cluster"))]
pub(crate) const KEYS: &[ConfigKey] = &[];

#[cfg(feature = "cluster")]
const TABLE: &str = "store.sessions";

/// Keys of the table.
#[cfg(feature = "cluster")]
pub(crate) const KEYS: &[ConfigKey] = &[
    config_key(
        TABLE,
        "kind",
        "`\"s3\"` keeps the messages of saved sessions in a bucket, `\"dir\"` in a directory that all daemons share. By \
         default only the files of this machine have them.",
        |c, v| {
            c.store.sessions.kind = Some(match v.text()?.as_str() {
                "dir" => SessionStoreKind::Dir,
                "s3" => SessionStoreKind::S3,
                _ => return Err("must be \"dir\" or \"s3\"".into()),
            });
            Ok(())
        },
    ),
    config_key(
        TABLE,
        "path",
        "The shared directory; a relative path starts at the directory of config.toml.",
        |c, v| {
            c.store.sessions.path = Some(v.text()?.into());
            Ok(())
        },
    ),
    config_key(TABLE, "bucket", "Name of the bucket.", |c, v| {
        c.store.sessions.bucket = Some(v.text()?);
        Ok(())
    }),
    config_key(TABLE, "endpoint", "URL of a server that speaks S3. By default Amazon's.", |c, v| {
        c.store.sessions.endpoint = Some(super::provider::parse_base_url(&v.text()?, &["https", "http"])?);
        Ok(())
    }),
    config_key(TABLE, "region", "Region of the bucket.", |c, v| {
        c.store.sessions.region = v.text()?;
        Ok(())
    }),
    config_key(TABLE, "prefix", "Start of the names of all objects, if others use the bucket, too.", |c, v| {
        c.store.sessions.prefix = v.text()?;
        Ok(())
    }),
    config_key(
        TABLE,
        "path_style",
        "Whether the bucket is in the path of a URL, and not in its host. By default if an endpoint is set.",
        |c, v| {
            c.store.sessions.path_style = Some(v.boolean()?);
            Ok(())
        },
    ),
    config_key(TABLE, "plain_host", "Host of an endpoint that may be reached without TLS.", |c, v| {
        c.store.sessions.plain_host = Some(v.text()?);
        Ok(())
    }),
    config_key(
        TABLE,
        "key_file",
        "File with the lines `key_id = …` and `secret = …`. Without it, the variables `CHORUS_S3_KEY_ID` and \
         `CHORUS_S3_SECRET` have the key.",
        |c, v| c.store.sessions.set_key(KeySource::File(v.text()?.into())),
    ),
    config_key(TABLE, "credential", "Name of a systemd credential that holds such a file.", |c, v| {
        let name = super::provider::parse_name(v, |c| c.is_ascii_alphanumeric() || "-_.".contains(c))?;
        c.store.sessions.set_key(KeySource::Credential { name, path: None })
    }),
    config_key(
        TABLE,
        "cache",
        "Limit of the copies of sessions on this machine. Those that were not read for longest are deleted.",
        |c, v| {
            c.store.sessions.cache = v.size()? as u64;
            Ok(())
        },
    ),
];

impl SessionStoreConfig {
    /// Sets the file of the key.
    #[cfg(feature = "cluster")]
    fn set_key(&mut self, key: KeySource) -> Result<(), String> {
        if self.key != KeySource::None && std::mem::discriminant(&self.key) != std::mem::discriminant(&key) {
            return Err("conflicts with another setting: set only one of `key_file` and `credential`".into());
        }
        self.key = key;
        Ok(())
    }

    /// Looks up the variables of the key, and resolves relative paths in `dir`.
    pub(super) fn locate_key(&mut self, dir: &Path, env: &dyn Fn(&str) -> Option<OsString>) {
        if self.kind.is_none() {
            return;
        }
        let value =
            |name| env(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty());
        let [id, secret] = KEY_VARIABLES.map(value);
        self.key_in_env = id.zip(secret.map(Secret::new));
        self.path = self.path.take().map(|path| dir.join(path));
        match &mut self.key {
            KeySource::File(path) => *path = dir.join(&*path),
            KeySource::Credential { name, path } => {
                *path = env("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(name));
            }
            KeySource::Env { .. } | KeySource::None => {}
        }
    }

    /// Returns the value of a key of the table as it would be written in config.toml; `None` if there is no such key.
    pub(super) fn value(&self, key: &str) -> Option<Value> {
        let text = |text: Option<&str>| text.map(Value::from).unwrap_or_default();
        Some(match key {
            "kind" => match self.kind {
                None => Value::Null,
                Some(SessionStoreKind::Dir) => "dir".into(),
                Some(SessionStoreKind::S3) => "s3".into(),
            },
            "path" => text(self.path.as_ref().map(|path| path.to_string_lossy()).as_deref()),
            "bucket" => text(self.bucket.as_deref()),
            "endpoint" => text(self.endpoint.as_deref()),
            "region" => self.region.as_str().into(),
            "prefix" => self.prefix.as_str().into(),
            "path_style" => self.path_style.map(Value::from).unwrap_or_default(),
            "plain_host" => text(self.plain_host.as_deref()),
            "key_file" => match &self.key {
                KeySource::File(path) => path.to_string_lossy().into(),
                _ => Value::Null,
            },
            "credential" => match &self.key {
                KeySource::Credential { name, .. } => name.as_str().into(),
                _ => Value::Null,
            },
            "cache" => super::display::size_value(usize::try_from(self.cache).unwrap_or(usize::MAX)),
            _ => return None,
        })
    }
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use super::*;
    use crate::Config;

    fn load(text: &str) -> chorus_base::error::Result<Config> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).expect("config.toml");
        let config = crate::load(&path, |name| match name {
            "CHORUS_S3_KEY_ID" => Some("id".into()),
            "CHORUS_S3_SECRET" => Some("a-secret".into()),
            "CHORUS_STORE_SESSIONS_PREFIX" => Some("from/env".into()),
            _ => None,
        })?;
        let dir = dir.path().to_owned();
        assert!(config.store.sessions.path.as_ref().is_none_or(|path| path.starts_with(dir)));
        Ok(config)
    }

    #[test]
    fn the_table_is_inside_of_that_of_the_store() {
        let config = load(
            "[store]\nkind = \"postgres\"\n[store.sessions]\nkind = \"s3\"\nbucket = \"b\"\n\
             endpoint = \"http://127.0.0.1:9000/\"\ncache = \"2GiB\"\n",
        )
        .unwrap();
        let sessions = &config.store.sessions;
        assert_eq!((sessions.kind, sessions.cache), (Some(SessionStoreKind::S3), 2 << 30));
        assert_eq!(sessions.endpoint.as_deref(), Some("http://127.0.0.1:9000"));
        assert_eq!((&*sessions.region, &*sessions.prefix), ("us-east-1", "from/env"));
        assert_eq!(sessions.key_in_env.as_ref().map(|(id, _)| &**id), Some("id"));
        assert!(!format!("{config:?}").contains("a-secret"));
        assert_eq!(config.value("store.sessions.bucket"), Some("b".into()));
        assert!(config.origins.contains_key("store.sessions.bucket"));
        let config = load("[store.sessions]\nkind = \"dir\"\npath = \"shared\"\n").unwrap();
        assert!(config.store.sessions.path.is_some());
        assert_eq!(
            load("").unwrap().store.sessions,
            SessionStoreConfig { prefix: "from/env".into(), ..Default::default() }
        );
    }

    #[test]
    fn what_cannot_be_used_names_its_line() {
        for (text, what) in [
            ("kind = \"ftp\"", "line 2, column 1: `store.sessions.kind` must be"),
            ("bukket = \"x\"", "line 2, column 1: unknown key `store.sessions.bukket`"),
            ("key_file = \"a\"\ncredential = \"b\"", "set only one of `key_file` and `credential`"),
            ("endpoint = \"https://a:b@c\"", "must not contain a user"),
        ] {
            let failure = load(&format!("[store.sessions]\n{text}\n")).unwrap_err();
            assert!(failure.message.contains(what), "{}", failure.message);
        }
    }
}
