//! `[discord]`: the connection to Discord.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use chorus_base::Secret;

use super::provider::{KeySource, same_server};

/// Base URL of Discord's REST API.
pub(crate) const API_BASE: &str = "https://discord.com";

/// Discord's own gateway URL, as `GET /gateway/bot` returns it.
const GATEWAY_URL: &str = "wss://gateway.discord.gg";

/// Environment variable with the token if the configuration names no other source and the URLs are Discord's.
pub(crate) const DEFAULT_TOKEN_VARIABLE: &str = "DISCORD_TOKEN";

/// The largest number of shards.
pub const MAX_SHARDS: u32 = 256;

/// The number of connections among which Discord divides the servers of a bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shards {
    /// The number that Discord recommends.
    Auto,
    /// From 1 to [`MAX_SHARDS`].
    Count(u32),
}

impl Shards {
    /// Parses `auto` or a number.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let count = text.parse().ok().filter(|count| (1..=MAX_SHARDS).contains(count));
        count.map(Self::Count).ok_or_else(|| format!("must be \"auto\" or a number from 1 to {MAX_SHARDS}"))
    }
}

impl std::fmt::Display for Shards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Count(count) => count.fmt(f),
        }
    }
}

/// The effective `[discord]` table. Without a token Discord is off.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscordConfig {
    pub token: KeySource,
    /// Guilds to serve; if empty, all guilds that the application was invited to.
    pub guilds: Vec<u64>,
    /// Name of the category in which channels of new agents are created.
    pub category: String,
    /// Roles, by name or id, whose members may decide any approval in a channel.
    pub approvers: Vec<String>,
    /// Name of the agent that answers direct messages; `None` if nobody does.
    pub dm_agent: Option<String>,
    /// Who may write direct messages: ids of people, and roles by name or id. If empty, whoever can write in the channel of
    /// the agent.
    pub dm_allow: Vec<String>,
    /// Without a trailing slash.
    pub api_base: String,
    /// If `None`, [`DiscordConfig::api_base`] is asked for the URL of the gateway.
    pub gateway_url: Option<String>,
    /// Limit of the wait between two attempts to connect.
    pub reconnect_max: Duration,
    pub shards: Shards,
}

impl Default for DiscordConfig {
    fn default() -> Self {
        Self {
            token: KeySource::Env { variable: DEFAULT_TOKEN_VARIABLE.into(), value: None },
            guilds: Vec::new(),
            category: "Agents".into(),
            approvers: Vec::new(),
            dm_agent: None,
            dm_allow: Vec::new(),
            api_base: API_BASE.into(),
            gateway_url: None,
            reconnect_max: Duration::from_secs(300),
            shards: Shards::Count(1),
        }
    }
}

impl DiscordConfig {
    /// Returns whether a token is configured, usable or not.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !matches!(self.token, KeySource::None | KeySource::Env { value: None, .. })
    }

    /// Returns whether both URLs are Discord's own.
    #[must_use]
    pub fn has_official_urls(&self) -> bool {
        let gateway = |url: &str| same_server(url, GATEWAY_URL);
        same_server(&self.api_base, API_BASE) && self.gateway_url.as_deref().is_none_or(gateway)
    }

    /// Sets the source of the token.
    ///
    /// # Errors
    /// Fails if a different source was configured already.
    pub(super) fn set_token_source(&mut self, token: KeySource) -> Result<(), String> {
        let named = self.token != Self::default().token;
        if named && std::mem::discriminant(&self.token) != std::mem::discriminant(&token) {
            return Err(
                "conflicts with another setting: set only one of `token_env`, `token_file` and `credential`".into()
            );
        }
        self.token = token;
        Ok(())
    }

    /// Reads the token; `None` if none is configured. May read a file: blocks.
    ///
    /// # Errors
    /// A message about an unusable token, without the token itself.
    pub fn read_token(&self) -> Result<Option<Secret>, String> {
        let text = match &self.token {
            KeySource::None | KeySource::Env { value: None, .. } => return Ok(None),
            KeySource::Env { value: Some(value), .. } => value.expose().to_owned(),
            KeySource::Credential { name, path: None } => {
                return Err(format!("the service manager did not pass the credential {name}"));
            }
            KeySource::File(path) | KeySource::Credential { path: Some(path), .. } => std::fs::read_to_string(path)
                .map_err(|e| format!("cannot read the token from {}: {e}", path.display()))?,
        };
        let text = text.trim();
        if text.is_empty() || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err("the configured value is not a Discord token".into());
        }
        Ok(Some(Secret::new(text.to_owned())))
    }

    /// Locates the token: looks up its environment variable, and resolves a relative path in `dir`. `named` says
    /// whether the configuration names the variable; if not, the token is dropped unless both URLs are Discord's own,
    /// so that it is sent to no other server.
    pub(super) fn locate_token(&mut self, named: bool, dir: &Path, env: &dyn Fn(&str) -> Option<OsString>) {
        if !named && matches!(self.token, KeySource::Env { .. }) && !self.has_official_urls() {
            self.token = KeySource::None;
        }
        match &mut self.token {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_token_is_sent_to_discord_only() {
        let env = |_: &str| Some("token".into());
        let found = |named: bool, api_base: &str, gateway_url: Option<&str>| {
            let gateway_url = gateway_url.map(str::to_owned);
            let mut discord = DiscordConfig { api_base: api_base.into(), gateway_url, ..DiscordConfig::default() };
            discord.locate_token(named, Path::new(""), &env);
            discord.is_configured()
        };
        assert!(found(false, API_BASE, None));
        assert!(found(false, API_BASE, Some("wss://gateway.discord.gg")));
        for (api_base, gateway_url) in [
            ("http://discord.com", None),
            ("https://discord.com.example.org", None),
            ("http://127.0.0.1:3000", None),
            (API_BASE, Some("ws://gateway.discord.gg")),
            (API_BASE, Some("wss://gateway.example.org")),
        ] {
            assert!(!found(false, api_base, gateway_url), "{api_base} {gateway_url:?}");
            assert!(found(true, api_base, gateway_url), "{api_base} {gateway_url:?}");
        }
    }
}
