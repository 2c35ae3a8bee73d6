//! The hooks in the settings of Claude Code: `hooks.EVENT` is a list of groups, each with a matcher and a list of commands.

use serde_json::{Value, json};

use super::Tool;
use crate::app::App;
use crate::coding_tools::config_file::{ConfigFile, user_home};
use crate::coding_tools::{json_edit, own_command};
use crate::error::Error;
use chorus_proto::shell_word::shell_word;

/// The member of the settings.
const HOOKS: &str = "hooks";

/// The events, in the order in which they occur.
const EVENTS: [&str; 3] = ["SessionStart", "PreCompact", "SessionEnd"];

/// The words by which a command of ours is known.
const COMMAND_END: &str = " hooks run claude-code";

/// Seconds after which Claude Code gives up. The hooks end long before.
const TIMEOUT: u64 = 10;

/// Settings as they were read.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) file: ConfigFile,
}

impl Settings {
    /// Reads the user's settings of `tool`.
    ///
    /// # Errors
    /// The user's home is unknown, or the file cannot be read.
    pub(super) fn read(tool: Tool) -> Result<Self, Error> {
        let Tool::ClaudeCode = tool;
        let dir = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| std::path::Path::new(dir).is_absolute());
        let dir = match dir {
            Some(dir) => dir.into(),
            None => user_home()?.join(".claude"),
        };
        Ok(Self { file: ConfigFile::read(dir.join("settings.json"))? })
    }

    fn text(&self) -> &str {
        self.file.text().unwrap_or_default()
    }

    /// Returns the commands of ours, with their events.
    ///
    /// # Errors
    /// The file is not valid.
    pub(super) fn installed(&self) -> Result<Vec<(String, Value)>, Error> {
        let root = json_edit::parse(self.text()).ok_or_else(|| {
            Error::failed(format!("{} is not valid JSON; nothing was changed", self.file.shown_path()))
                .with_hint("repair it; Claude Code cannot read it either")
        })?;
        let events = root.get(HOOKS).and_then(Value::as_object).into_iter().flatten();
        let groups = events.flat_map(|(event, groups)| {
            groups.as_array().into_iter().flatten().map(move |group| (event.clone(), group.clone()))
        });
        Ok(groups.filter(|(_, group)| is_ours(group)).collect())
    }

    /// Returns the text with these hooks, and no others of ours; `None` if they cannot be added without touching the rest.
    pub(super) fn with(&self, hooks: &[(&str, Value)]) -> Option<String> {
        let text = self.without()?;
        json_edit::append_items(&text, HOOKS, hooks)
    }

    /// Returns the text without the hooks of ours; `None` if they cannot be removed without touching the rest.
    pub(super) fn without(&self) -> Option<String> {
        match json_edit::parse(self.text())?.contains_key(HOOKS) {
            true => json_edit::remove_items(self.text(), HOOKS, is_ours),
            false => Some(self.text().to_owned()),
        }
    }
}

/// Returns true for a group that has only a command of ours.
fn is_ours(group: &Value) -> bool {
    let Some([hook]) = group[HOOKS].as_array().map(Vec::as_slice) else { return false };
    hook["command"].as_str().is_some_and(|command| command.ends_with(COMMAND_END))
}

/// Returns the hooks that are to be installed.
///
/// # Errors
/// The path of this program is unknown.
pub(super) fn wanted(app: &App) -> Result<Vec<(&'static str, Value)>, Error> {
    let mut command = String::new();
    for (name, value) in own_command::instance_variables()? {
        command.push_str(&format!("{name}={} ", shell_word(&value)));
    }
    command.push_str(&shell_word(&own_command::program()?.to_string_lossy()));
    if let Some(socket) = &app.global.socket {
        command.push_str(&format!(" --socket {}", shell_word(&own_command::absolute(socket.as_os_str())?)));
    }
    command.push_str(COMMAND_END);
    let group = json!({HOOKS: [{"type": "command", "command": command, "timeout": TIMEOUT}]});
    Ok(EVENTS.map(|event| (event, group.clone())).to_vec())
}
