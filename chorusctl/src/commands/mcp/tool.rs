//! The coding tools: where their configuration is, and the form of an entry.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The name of the server in a configuration.
pub(super) const NAME: &str = "chorus";

/// A coding tool that runs MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Tool {
    /// Claude Code
    ClaudeCode,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// Zed
    Zed,
    /// Cursor
    Cursor,
}

/// The syntax of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON, perhaps with comments.
    Json,
    Toml,
}

/// The command that a tool is to run.
#[derive(Debug)]
pub(super) struct ServerCommand {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    /// Variables that select the instance.
    pub(super) env: Vec<(String, String)>,
}

impl Tool {
    /// Returns its name on the command line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Zed => "zed",
            Self::Cursor => "cursor",
        }
    }

    /// Returns its name.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Zed => "Zed",
            Self::Cursor => "Cursor",
        }
    }

    pub(super) fn syntax(self) -> Syntax {
        if self == Self::Codex { Syntax::Toml } else { Syntax::Json }
    }

    /// Returns the key of the servers.
    pub(super) fn servers_key(self) -> &'static str {
        match self {
            Self::ClaudeCode | Self::Gemini | Self::Cursor => "mcpServers",
            Self::Codex => "mcp_servers",
            Self::Opencode => "mcp",
            Self::Zed => "context_servers",
        }
    }

    /// Returns the file of the user's configuration. `env` looks up a variable.
    pub(super) fn config_file(self, home: &Path, env: impl Fn(&str) -> Option<OsString>) -> PathBuf {
        let dir = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let xdg = || dir("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        match self {
            Self::ClaudeCode => dir("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.to_owned()).join(".claude.json"),
            Self::Codex => dir("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml"),
            Self::Gemini => dir("GEMINI_CLI_HOME").unwrap_or_else(|| home.to_owned()).join(".gemini/settings.json"),
            Self::Opencode => {
                let folder = xdg().join("opencode");
                let with_comments = folder.join("opencode.jsonc");
                if with_comments.exists() { with_comments } else { folder.join("opencode.json") }
            }
            Self::Zed => xdg().join("zed/settings.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
        }
    }

    /// Returns the entry for a server.
    pub(super) fn entry(self, command: &ServerCommand) -> Value {
        let ServerCommand { program, args, env } = command;
        let env: Option<Value> =
            (!env.is_empty()).then(|| env.iter().map(|(name, value)| (name.clone(), json!(value))).collect());
        let mut entry = match self {
            Self::ClaudeCode => json!({"type": "stdio", "command": program, "args": args}),
            Self::Opencode => {
                let words: Vec<&String> = std::iter::once(program).chain(args).collect();
                json!({"type": "local", "command": words, "enabled": true})
            }
            Self::Codex | Self::Gemini | Self::Zed | Self::Cursor => json!({"command": program, "args": args}),
        };
        if let Some(env) = env {
            entry[if self == Self::Opencode { "environment" } else { "env" }] = env;
        }
        entry
    }

    /// Returns the text of a configuration that does not exist yet.
    pub(super) fn empty_config(self) -> &'static str {
        match self {
            Self::Codex => "",
            Self::Opencode => "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
            _ => "{}\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn configurations_are_where_the_tools_look() {
        let home = Path::new("/u");
        let plain = |tool: Tool| tool.config_file(home, |_| None).display().to_string();
        assert_eq!(plain(Tool::ClaudeCode), "/u/.claude.json");
        assert_eq!(plain(Tool::Codex), "/u/.codex/config.toml");
        assert_eq!(plain(Tool::Gemini), "/u/.gemini/settings.json");
        assert_eq!(plain(Tool::Opencode), "/u/.config/opencode/opencode.json");
        assert_eq!(plain(Tool::Zed), "/u/.config/zed/settings.json");
        assert_eq!(plain(Tool::Cursor), "/u/.cursor/mcp.json");
        let redirected = |tool: Tool| tool.config_file(home, |name| Some(format!("/{name}").into()));
        assert_eq!(redirected(Tool::ClaudeCode), Path::new("/CLAUDE_CONFIG_DIR/.claude.json"));
        assert_eq!(redirected(Tool::Codex), Path::new("/CODEX_HOME/config.toml"));
        assert_eq!(redirected(Tool::Gemini), Path::new("/GEMINI_CLI_HOME/.gemini/settings.json"));
        assert_eq!(redirected(Tool::Zed), Path::new("/XDG_CONFIG_HOME/zed/settings.json"));
        assert_eq!(Tool::Codex.config_file(home, |_| Some("relative".into())), Path::new("/u/.codex/config.toml"));
    }

    #[test]
    fn the_word_of_a_tool_is_its_name_on_the_command_line() {
        for tool in Tool::value_variants() {
            assert_eq!(tool.to_possible_value().map(|value| value.get_name().to_owned()).as_deref(), Some(tool.word()));
        }
    }
}
