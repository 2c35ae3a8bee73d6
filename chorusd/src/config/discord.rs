//! `[discord]`: the connection to Discord.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::provider::Key;
use super::secret::Secret;

/// Discord's own REST address.
pub const API_BASE: &str = "https://discord.com";

/// Where the token is, unless the configuration names another place.
pub const TOKEN: &str = "DISCORD_TOKEN";

/// `[discord]` as it is in force. Without a token Discord is off.
#[derive(Debug, Clone, PartialEq)]
pub struct Discord {
    pub token: Key,
    /// Only these; empty: all that the application was invited to.
    pub guilds: Vec<u64>,
    /// The category that channels of new agents are made in.
    pub category: String,
    /// Roles, by name or id, whose members may answer any approval in a channel.
    pub approvers: Vec<String>,
    /// Without a slash at its end.
    pub api_base: String,
    /// `None`: the gateway's address is asked of [`Discord::api_base`].
    pub gateway_url: Option<String>,
    /// The longest wait between two tries to connect.
    pub reconnect_max: Duration,
}

impl Default for Discord {
    fn default() -> Self {
        Self {
            token: Key::Env { variable: TOKEN.into(), value: None },
            guilds: Vec::new(),
            category: "Agents".into(),
            approvers: Vec::new(),
            api_base: API_BASE.into(),
            gateway_url: None,
            reconnect_max: Duration::from_secs(300),
        }
    }
}

impl Discord {
    /// Whether a token is configured, be it of use or not.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !matches!(self.token, Key::None | Key::Env { value: None, .. })
    }

    /// Takes note where the token is.
    ///
    /// # Errors
    /// Another place was named already.
    pub(super) fn take_token(&mut self, token: Key) -> Result<(), String> {
        let named = self.token != Self::default().token;
        if named && std::mem::discriminant(&self.token) != std::mem::discriminant(&token) {
            return Err("is one token too many: give `token_env`, `token_file` or `credential`".into());
        }
        self.token = token;
        Ok(())
    }

    /// The token; `None` where none is configured. Reads a file: blocks.
    ///
    /// # Errors
    /// In words, why what is there cannot be used. The token itself is never said.
    pub fn read_token(&self) -> Result<Option<Secret>, String> {
        let text = match &self.token {
            Key::None | Key::Env { value: None, .. } => return Ok(None),
            Key::Env { value: Some(value), .. } => value.expose().to_owned(),
            Key::Credential { name, path: None } => {
                return Err(format!("the service manager passed no credential {name}"));
            }
            Key::File(path) | Key::Credential { path: Some(path), .. } => std::fs::read_to_string(path)
                .map_err(|e| format!("the token cannot be read from {}: {e}", path.display()))?,
        };
        let text = text.trim();
        if text.is_empty() || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err("what stands where Discord's token should be is no token".into());
        }
        Ok(Some(Secret::new(text.to_owned())))
    }

    /// Looks where the token is: in the environment as it is now, in `dir` for a relative file.
    pub(super) fn find_token(&mut self, dir: &Path, env: &dyn Fn(&str) -> Option<OsString>) {
        match &mut self.token {
            Key::Env { variable, value } => {
                let found = env(variable).filter(|value| !value.is_empty());
                *value = found.map(|value| Secret::new(value.to_string_lossy().into_owned()));
            }
            Key::File(path) => *path = dir.join(&*path),
            Key::Credential { name, path } => {
                *path = env("CREDENTIALS_DIRECTORY").map(|dir| Path::new(&dir).join(name));
            }
            Key::None => {}
        }
    }
}
