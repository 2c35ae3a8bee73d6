//! The table `[traces]`.

use std::ffi::OsString;
use std::path::Path;

use chorus_base::Secret;
use serde_json::Value;

use super::keys::{ConfigKey, config_key};
use super::provider::{KeySource, key_from_env, parse_base_url, parse_name};

/// The destination of spans, and what they have.
#[derive(Debug, Clone, PartialEq)]
pub struct TracesConfig {
    /// URL of a collector without `/v1/traces`; `None`: nothing is sent.
    pub endpoint: Option<String>,
    /// Source of the headers of each request, one `NAME=VALUE` per line or comma.
    pub headers: KeySource,
    /// True if the spans have messages, parameters and results.
    pub content: bool,
    /// Name under which the collector lists this daemon.
    pub service_name: String,
}

impl Default for TracesConfig {
    fn default() -> Self {
        Self { endpoint: None, headers: KeySource::None, content: false, service_name: "chorusd".into() }
    }
}

const TABLE: &str = "traces";

/// Keys of the table.
pub(crate) const KEYS: &[ConfigKey] = &[
    config_key(
        TABLE,
        "endpoint",
        "URL of a collector that accepts OTLP over HTTP, such as `\"http://127.0.0.1:4318\"`; `/v1/traces` is appended. By default nothing is sent.",
        |c, v| {
            let url = v.text()?;
            c.traces.endpoint =
                if url.is_empty() { None } else { Some(parse_base_url(&url, &["http", "https"]).map_err(no_keys)?) };
            Ok(())
        },
    ),
    config_key(
        TABLE,
        "headers_env",
        "Environment variable that holds headers for the collector, for example its key: `NAME=VALUE`, separated by commas.",
        |c, v| {
            let variable = parse_name(v, |c| c.is_ascii_alphanumeric() || c == '_')?;
            c.traces.set_headers(KeySource::Env { variable, value: None })
        },
    ),
    config_key(
        TABLE,
        "headers_file",
        "File that holds them, one per line. It is read again for each request.",
        |c, v| c.traces.set_headers(KeySource::File(v.text()?.into())),
    ),
    config_key(TABLE, "credential", "Name of a systemd credential that holds such a file.", |c, v| {
        let name = parse_name(v, |c| c.is_ascii_alphanumeric() || "-_.".contains(c))?;
        c.traces.set_headers(KeySource::Credential { name, path: None })
    }),
    config_key(
        TABLE,
        "content",
        "`true`: spans also have messages, parameters and results of tools, with secrets replaced. They leave this machine if the collector is elsewhere.",
        |c, v| {
            c.traces.content = v.boolean()?;
            Ok(())
        },
    ),
    config_key(TABLE, "service_name", "Name under which the collector lists this daemon.", |c, v| {
        c.traces.service_name = Some(v.text()?).filter(|name| !name.is_empty()).ok_or("must not be empty")?;
        Ok(())
    }),
];

/// Names the keys of this table in the error about a URL with a password.
fn no_keys(error: String) -> String {
    error.replace("put keys into `api_key_env`", "put keys into `headers_env` or `headers_file`")
}

impl TracesConfig {
    fn set_headers(&mut self, headers: KeySource) -> Result<(), String> {
        if self.headers != KeySource::None && std::mem::discriminant(&self.headers) != std::mem::discriminant(&headers)
        {
            return Err(
                "conflicts with another setting: set only one of `headers_env`, `headers_file` and `credential`".into(),
            );
        }
        self.headers = headers;
        Ok(())
    }

    /// Looks up the variable of the headers, and resolves a relative path in `dir`.
    pub(super) fn locate_headers(&mut self, dir: &Path, env: &dyn Fn(&str) -> Option<OsString>) {
        match &mut self.headers {
            KeySource::Env { variable, .. } => self.headers = key_from_env(std::mem::take(variable), env),
            KeySource::File(path) => *path = dir.join(&*path),
            KeySource::Credential { name, path } => {
                *path = env("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(name));
            }
            KeySource::None => {}
        }
    }

    /// Reads the headers. May read a file: blocks.
    ///
    /// # Errors
    /// A message that does not contain the headers.
    pub fn read_headers(&self) -> Result<Secret, String> {
        match &self.headers {
            KeySource::None => Ok(Secret::new(String::new())),
            KeySource::Env { value: Some(value), .. } => Ok(value.clone()),
            KeySource::Env { variable, value: None } => Err(format!("the environment variable {variable} is not set")),
            KeySource::Credential { name, path: None } => {
                Err(format!("the service manager did not pass the credential {name}"))
            }
            KeySource::File(path) | KeySource::Credential { path: Some(path), .. } => std::fs::read_to_string(path)
                .map(Secret::new)
                .map_err(|e| format!("cannot read the headers from {}: {e}", path.display())),
        }
    }

    /// Returns the value of a key of the table as it would be written in config.toml; `None` if there is no such key.
    pub(super) fn value(&self, key: &str) -> Option<Value> {
        Some(match key {
            "endpoint" => self.endpoint.as_deref().into(),
            "headers_env" => match &self.headers {
                KeySource::Env { variable, .. } => variable.as_str().into(),
                _ => Value::Null,
            },
            "headers_file" => match &self.headers {
                KeySource::File(path) => path.to_string_lossy().into(),
                _ => Value::Null,
            },
            "credential" => match &self.headers {
                KeySource::Credential { name, .. } => name.as_str().into(),
                _ => Value::Null,
            },
            "content" => self.content.into(),
            "service_name" => self.service_name.as_str().into(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn load(text: &str) -> chorus_base::error::Result<Config> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, format!("[traces]\n{text}\n")).expect("config.toml");
        crate::load(&path, |name| (name == "COLLECTOR").then(|| "authorization=Bearer abc".into()))
    }

    #[test]
    fn headers_come_from_one_place_and_are_not_shown() {
        let config = load("endpoint = \"http://127.0.0.1:4318/\"\nheaders_env = \"COLLECTOR\"\n").unwrap();
        assert_eq!(config.traces.endpoint.as_deref(), Some("http://127.0.0.1:4318"));
        assert_eq!(config.traces.read_headers().unwrap().expose(), "authorization=Bearer abc");
        assert!(!format!("{config:?}").contains("Bearer"));
        assert_eq!(config.value("traces.headers_env"), Some("COLLECTOR".into()));
        let missing = load("headers_env = \"OTHER\"").unwrap().traces.read_headers().unwrap_err();
        assert_eq!(missing, "the environment variable OTHER is not set");
        assert_eq!(load("").unwrap().traces, TracesConfig::default());
    }

    #[test]
    fn what_cannot_be_used_names_its_line() {
        for (text, what) in [
            ("endpoint = \"127.0.0.1:4318\"", "line 2, column 1: `traces.endpoint`"),
            ("endpoint = \"grpc://127.0.0.1:4317\"", "must start with http:// or https://"),
            ("endpoint = \"https://a:b@c\"", "put keys into `headers_env` or `headers_file`"),
            ("headers_file = \"a\"\ncredential = \"b\"", "set only one of `headers_env`"),
            ("service_name = \"\"", "must not be empty"),
            ("headers_env = \"authorization=Bearer abc\"", "must be a name, not the key itself"),
        ] {
            let failure = load(text).unwrap_err();
            assert!(failure.message.contains(what), "{}", failure.message);
        }
    }
}
