//! What a command is: its words, what may be given with it, who may use it.

use serde_json::{Value, json};
use serenity::model::Permissions;

/// A slash command, or several of one name.
#[derive(Debug)]
pub struct Command {
    pub name: &'static str,
    pub description: &'static str,
    /// Who is shown it; what counts is looked at when it is carried out.
    pub default_permissions: Option<Permissions>,
    pub subcommands: Subcommands,
}

#[derive(Debug)]
pub enum Subcommands {
    One(Subcommand),
    Many(&'static [Subcommand]),
}

/// What one command does.
#[derive(Debug)]
pub struct Subcommand {
    /// Behind that of the command; of a command that is only one, the same.
    pub name: &'static str,
    pub description: &'static str,
    pub command: CommandId,
    pub right: Right,
    /// Whether nobody else sees the answer.
    pub private: bool,
    pub options: &'static [CommandOption],
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandId {
    AgentInit,
    AgentDestroy,
    AgentList,
    AgentConfig,
    ContextSave,
    ContextClear,
    ContextHistory,
    ContextRestore,
    ContextResume,
    ContextCompact,
    ContextRewind,
    SettingsModel,
    SettingsPermissions,
    SettingsIdle,
    SettingsShow,
    SettingsValidateKeys,
    TasksList,
    TasksShow,
    TasksStop,
    Status,
    Models,
    Approvals,
    Usage,
    Ping,
}

/// Who may use it. Another agent than the channel's own needs Manage Channels on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Anybody who sees the channel.
    Read,
    /// Manage Messages, or a role of `approvers`.
    Change,
    /// Manage Channels.
    Channels,
    /// Manage Server.
    Server,
}

/// Something that is given with a command.
#[derive(Debug)]
pub struct CommandOption {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: OptionKind,
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// At most so many characters.
    Text(u16),
    /// With what is offered while it is typed.
    Autocomplete(Completion),
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A whole number from this on.
    Number(u32),
    Bool,
}

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    Agents,
    Sessions,
    Models,
    Profiles,
    /// Values of the key that is given, too.
    Values,
}

/// Longest text that is offered something for.
const MAX_AUTOCOMPLETE_CHARS: u16 = 1000;

impl Command {
    #[cfg(test)]
    pub fn all_subcommands(&self) -> &[Subcommand] {
        match &self.subcommands {
            Subcommands::One(action) => std::slice::from_ref(action),
            Subcommands::Many(actions) => actions,
        }
    }

    /// As Discord takes it. For servers only: an application's commands are none of a direct message.
    pub fn to_json(&self) -> Value {
        let options: Vec<Value> = match &self.subcommands {
            Subcommands::One(action) => action.options.iter().map(CommandOption::to_json).collect(),
            Subcommands::Many(actions) => actions.iter().map(Subcommand::to_json).collect(),
        };
        json!({
            "name": self.name,
            "type": 1,
            "description": self.description,
            "options": options,
            "default_member_permissions": self.default_permissions.map(|permissions| permissions.bits().to_string()),
            "contexts": [0],
        })
    }
}

impl Subcommand {
    fn to_json(&self) -> Value {
        let options: Vec<Value> = self.options.iter().map(CommandOption::to_json).collect();
        json!({"name": self.name, "type": 1, "description": self.description, "options": options})
    }
}

impl CommandOption {
    fn to_json(&self) -> Value {
        let mut body = json!({"name": self.name, "description": self.description, "required": self.required});
        let more = match self.kind {
            OptionKind::Text(most) => json!({"type": 3, "max_length": most}),
            OptionKind::Autocomplete(_) => {
                json!({"type": 3, "max_length": MAX_AUTOCOMPLETE_CHARS, "autocomplete": true})
            }
            OptionKind::OneOf(words) => {
                let choices: Vec<Value> = words.iter().map(|word| json!({"name": word, "value": word})).collect();
                json!({"type": 3, "choices": choices})
            }
            OptionKind::Number(least) => json!({"type": 4, "min_value": least}),
            OptionKind::Bool => json!({"type": 5}),
        };
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        body
    }
}
