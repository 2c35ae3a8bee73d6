//! `[providers.NAME]` and `[prices."provider/model"]`: URLs, keys, limits and prices of models.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_base::Secret;
pub use chorus_proto::methods::models::Price;
use url::Url;

use super::raw_value::RawConfigValue;

/// The provider name, `base_url` and key variable of each service that is known without configuration.
pub const ANTHROPIC: (&str, &str, &str) = ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY");
const OPENAI: (&str, &str, &str) = ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY");

/// Protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// Anthropic's Messages API.
    Anthropic,
    /// Chat completions of OpenAI and compatible servers.
    Openai,
}

impl ProviderKind {
    /// The word in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
        }
    }

    /// Environment variable with the key of the service that the protocol comes from.
    #[must_use]
    pub fn default_key_variable(self) -> &'static str {
        self.defaults().2
    }

    fn defaults(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Anthropic => ANTHROPIC,
            Self::Openai => OPENAI,
        }
    }
}

/// A provider of models.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    pub name: String,
    pub kind: ProviderKind,
    /// Without a trailing slash.
    pub base_url: String,
    pub key: KeySource,
    pub limits: CallLimits,
    /// Limit of a reply in tokens; `None` if not configured.
    pub max_output_tokens: Option<u64>,
}

/// Source of a provider's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The server needs no key.
    None,
    /// From the environment of the daemon's start.
    Env { variable: String, value: Option<Secret> },
    /// From a file, which is read at each use, so that the key may be changed while the daemon runs.
    File(PathBuf),
    /// From a file in the directory that the service manager passes; `None` if it passed none.
    Credential { name: String, path: Option<PathBuf> },
}

impl KeySource {
    /// The file with the key.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Credential { path: Some(path), .. } => Some(path),
            _ => None,
        }
    }
}

/// Time limits of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Until the connection is established, TLS included.
    pub connect: Duration,
    /// From the request to the first event of the reply.
    pub first_byte: Duration,
    /// Between two events; pings do not count.
    pub idle: Duration,
    /// For the whole call, retries included.
    pub total: Duration,
    /// Wait for a server that does not listen yet or is loading its model. Zero handles that like any other failure.
    pub start: Duration,
}

/// Limit until the first event of a server on this machine, which may read prompts slowly and load its model first.
const LOCAL_FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(300);

impl CallLimits {
    /// Returns the default limits for a provider at `base_url`.
    #[must_use]
    pub fn for_url(base_url: &str) -> Self {
        let usual = Self::default();
        if is_loopback_url(base_url) { Self { first_byte: LOCAL_FIRST_BYTE_TIMEOUT, ..usual } } else { usual }
    }
}

/// Returns whether a URL names this machine.
#[must_use]
pub fn is_loopback_url(url: &str) -> bool {
    let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

impl Default for CallLimits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(10),
            first_byte: seconds(60),
            idle: seconds(90),
            total: seconds(15 * 60),
            start: seconds(60),
        }
    }
}

/// Sets one key of a named table.
pub(crate) type Setter<T> = fn(&mut T, &RawConfigValue) -> Result<(), String>;

/// A key of a named table: its name, its meaning for docs/CONFIGURATION.md, and its setter.
pub(crate) type NamedTableKey<T> = (&'static str, &'static str, Setter<T>);

/// The keys of `[providers.NAME]`.
pub(crate) const PROVIDER_KEYS: &[NamedTableKey<ProviderBuilder>] = &[
    (
        "kind",
        "`\"anthropic\"` (Messages API) or `\"openai\"` (chat completions of any server). Known for `anthropic` and `openai`.",
        |p, v| {
            p.kind = Some(match v.text()?.as_str() {
                "anthropic" => ProviderKind::Anthropic,
                "openai" => ProviderKind::Openai,
                _ => return Err("must be \"anthropic\" or \"openai\" (any OpenAI-compatible server)".into()),
            });
            Ok(())
        },
    ),
    ("base_url", "Address of the server. Known for `anthropic` and `openai`.", |p, v| {
        p.base_url = Some(parse_base_url(&v.text()?, &["http", "https"])?);
        Ok(())
    }),
    ("api_key_env", "Environment variable of the daemon that holds the key.", |p, v| {
        p.set_key(KeySetting::Env(parse_name(v, |c| c.is_ascii_alphanumeric() || c == '_')?))
    }),
    (
        "api_key_file",
        "File that holds the key, read at each call; a relative path starts at the directory of config.toml.",
        |p, v| p.set_key(KeySetting::File(v.text()?)),
    ),
    ("credential", "Name of a systemd credential (`LoadCredential=`) that holds the key.", |p, v| {
        p.set_key(KeySetting::Credential(parse_name(v, |c| c.is_ascii_graphic() && c != '/')?))
    }),
    ("connect_timeout", "Longest wait for a connection, TLS included.", |p, v| {
        super::keys::set_positive_duration(&mut p.limits.connect, v)
    }),
    (
        "first_byte_timeout",
        "Longest wait for the first event of a reply; `300s` if the server is on this machine.",
        |p, v| super::keys::set_positive_duration(p.first_byte.insert(Duration::ZERO), v),
    ),
    ("idle_timeout", "Longest wait between two events of a reply; pings do not count.", |p, v| {
        super::keys::set_positive_duration(&mut p.limits.idle, v)
    }),
    ("total_timeout", "Longest time for a call, retries included.", |p, v| {
        super::keys::set_positive_duration(&mut p.limits.total, v)
    }),
    (
        "start_timeout",
        "Longest wait for a server that refuses connections or is loading its model; `0` does not wait.",
        |p, v| {
            p.limits.start = v.duration()?;
            Ok(())
        },
    ),
    (
        "max_output_tokens",
        "Largest reply to ask for. Unset: 8,192 tokens, at most a fifth of what the model takes.",
        |p, v| {
            p.max_output_tokens = Some(v.count()?).filter(|tokens| *tokens > 0);
            Ok(())
        },
    ),
];

/// The keys of `[prices."provider/model"]`.
pub(crate) const PRICE_KEYS: &[NamedTableKey<Price>] = &[
    ("input", "Input.", |p, v| {
        p.input = v.amount()?;
        Ok(())
    }),
    ("output", "Output.", |p, v| {
        p.output = v.amount()?;
        Ok(())
    }),
    ("cache_read", "Input read from the cache. Unset: as `input`.", |p, v| {
        p.cache_read = Some(v.amount()?);
        Ok(())
    }),
    ("cache_write", "Input written to the cache. Unset: as `input`.", |p, v| {
        p.cache_write = Some(v.amount()?);
        Ok(())
    }),
];

/// Collects the keys of a provider's table.
#[derive(Debug, Default)]
pub(crate) struct ProviderBuilder {
    kind: Option<ProviderKind>,
    base_url: Option<String>,
    key: Option<KeySetting>,
    limits: CallLimits,
    first_byte: Option<Duration>,
    max_output_tokens: Option<u64>,
}

#[derive(Debug)]
enum KeySetting {
    Env(String),
    File(String),
    Credential(String),
}

impl ProviderBuilder {
    fn set_key(&mut self, key: KeySetting) -> Result<(), String> {
        if self.key.replace(key).is_some() {
            return Err(
                "conflicts with another setting: set only one of `api_key_env`, `api_key_file` and `credential`".into(),
            );
        }
        Ok(())
    }

    /// Builds the provider; `dir` is the directory of the configuration file.
    ///
    /// # Errors
    /// A message about what is missing, which follows the provider's name.
    pub(crate) fn build(
        self,
        name: &str,
        dir: &Path,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Provider, String> {
        let usual = [ANTHROPIC, OPENAI].into_iter().find(|usual| usual.0 == name);
        let kind = match (self.kind, usual) {
            (Some(kind), _) => kind,
            (None, Some(usual)) if usual == ANTHROPIC => ProviderKind::Anthropic,
            (None, Some(_)) => ProviderKind::Openai,
            (None, None) => {
                return Err("has no `kind`: \"anthropic\", or \"openai\" (any OpenAI-compatible server)".into());
            }
        };
        let (usual_name, usual_url, variable) = kind.defaults();
        let has_default = kind == ProviderKind::Anthropic || usual_name == name;
        let base_url = self.base_url.or_else(|| has_default.then(|| usual_url.to_owned()));
        let Some(base_url) = base_url else { return Err("has no `base_url`".into()) };
        // The default key of a service is sent to that service only; another server gets a key only if the provider
        // names one.
        let variable = same_server(&base_url, usual_url).then_some(variable);
        let key = match (self.key, variable) {
            (None, None) => KeySource::None,
            (None, Some(variable)) => key_from_env(variable.to_owned(), env),
            (Some(KeySetting::Env(variable)), _) => key_from_env(variable, env),
            (Some(KeySetting::File(file)), _) => KeySource::File(dir.join(file)),
            (Some(KeySetting::Credential(name)), _) => {
                let path = env("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(&name));
                KeySource::Credential { name, path }
            }
        };
        let Self { mut limits, first_byte, max_output_tokens, .. } = self;
        limits.first_byte = first_byte.unwrap_or(CallLimits::for_url(&base_url).first_byte);
        Ok(Provider { name: name.to_owned(), kind, base_url, key, limits, max_output_tokens })
    }
}

pub(super) fn key_from_env(variable: String, env: &dyn Fn(&str) -> Option<OsString>) -> KeySource {
    let value = env(&variable).filter(|value| !value.is_empty());
    // A key that is not UTF-8 is refused at its first use, like every other key that cannot be sent.
    let value = value.map(|value| Secret::new(value.to_string_lossy().into_owned()));
    KeySource::Env { variable, value }
}

pub(super) fn parse_name(value: &RawConfigValue, good: fn(char) -> bool) -> Result<String, String> {
    let name = value.text()?;
    let fits = !name.is_empty() && name != "." && name != ".." && name.chars().all(good);
    // The value may be the key itself, by mistake: do not repeat it in the error.
    if fits { Ok(name) } else { Err("must be a name, not the key itself".into()) }
}

/// Returns whether both URLs have the same scheme, host and port.
pub(super) fn same_server(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => one.origin() == other.origin(),
        _ => false,
    }
}

/// Validates a base URL, to which paths are appended.
pub(super) fn parse_base_url(text: &str, schemes: &[&str]) -> Result<String, String> {
    let url = Url::parse(text).map_err(|e| format!("is not a URL: {e}"))?;
    if !schemes.contains(&url.scheme()) || !url.has_host() {
        return Err(format!("must start with {}", schemes.join(":// or ") + "://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user or password; put keys into `api_key_env`".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must end with its path".into());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Checks that `name` is a valid provider name.
pub fn check_name(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.is_empty() && name.chars().all(good) {
        return Ok(());
    }
    Err("is not a valid provider name: use letters, digits, `-`, `_` and `.`".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the provider `name` with this `kind` and `base_url`, in an environment where every default key is set.
    fn provider(name: &str, kind: Option<ProviderKind>, base_url: Option<&str>) -> Provider {
        let env = |variable: &str| Some(OsString::from(format!("value of {variable}")));
        let base_url = base_url.map(|text| parse_base_url(text, &["http", "https"]).unwrap());
        ProviderBuilder { kind, base_url, ..ProviderBuilder::default() }
            .build(name, Path::new("/etc/chorus"), &env)
            .unwrap()
    }

    fn variable(provider: &Provider) -> Option<&str> {
        match &provider.key {
            KeySource::Env { variable, .. } => Some(variable),
            _ => None,
        }
    }

    #[test]
    fn a_usual_key_is_sent_to_its_own_server_only() {
        let anthropic = Some(ProviderKind::Anthropic);
        for own in [
            None,
            Some("https://api.anthropic.com"),
            Some("https://api.anthropic.com/"),
            Some("https://API.Anthropic.com:443"),
            Some("https://api.anthropic.com/beta"),
        ] {
            for name in ["anthropic", "work"] {
                assert_eq!(variable(&provider(name, anthropic, own)), Some("ANTHROPIC_API_KEY"), "{name} {own:?}");
            }
        }
        for other in [
            "http://api.anthropic.com",
            "https://api.anthropic.com:8443",
            "https://api.anthropic.com.",
            "https://api.anthropic.com.example.org",
            "https://example.org/api.anthropic.com",
            "https://example.org/https://api.anthropic.com",
            "https://anthropic.com",
            "https://api-anthropic.com",
            "https://api.\u{430}nthropic.com",
            "https://api.openai.com/v1",
            "http://127.0.0.1:8080",
            "http://localhost:4000/anthropic",
        ] {
            for name in ["anthropic", "gateway"] {
                assert_eq!(provider(name, anthropic, Some(other)).key, KeySource::None, "{name} {other}");
            }
        }
    }

    #[test]
    fn a_server_of_this_machine_has_longer_to_begin() {
        let first_byte =
            |base_url| provider("p", Some(ProviderKind::Openai), Some(base_url)).limits.first_byte.as_secs();
        assert_eq!(first_byte("http://127.0.0.1:8080/v1"), 300);
        assert_eq!(first_byte("http://[::1]:8080/v1"), 300);
        assert_eq!(first_byte("http://localhost/v1"), 300);
        assert_eq!(first_byte("http://localhost.example.org/v1"), 60);
        assert_eq!(first_byte("https://api.example.org/v1"), 60);
    }

    #[test]
    fn the_rule_is_the_same_for_openai() {
        let openai = Some(ProviderKind::Openai);
        for (name, base_url) in [
            ("openai", None),
            ("openai", Some("https://api.openai.com/v1")),
            ("work", Some("https://api.openai.com/v1")),
        ] {
            assert_eq!(variable(&provider(name, openai, base_url)), Some("OPENAI_API_KEY"), "{name} {base_url:?}");
        }
        for base_url in ["http://api.openai.com/v1", "https://openrouter.ai/api/v1", "https://api.anthropic.com/v1"] {
            assert_eq!(provider("openai", openai, Some(base_url)).key, KeySource::None, "{base_url}");
        }
    }

    #[test]
    fn a_key_that_is_named_is_sent_wherever_the_provider_is() {
        let env = |variable: &str| (variable == "ANTHROPIC_API_KEY").then(|| "sk-test".into());
        let draft = ProviderBuilder {
            kind: Some(ProviderKind::Anthropic),
            base_url: Some("https://gateway.example.org".into()),
            key: Some(KeySetting::Env("ANTHROPIC_API_KEY".into())),
            ..ProviderBuilder::default()
        };
        let key = draft.build("gateway", Path::new(""), &env).unwrap().key;
        assert!(matches!(key, KeySource::Env { value: Some(value), .. } if value.expose() == "sk-test"));
    }
}
