//! Definitions of slash commands: their names, options and rights.

use chorus_base::error::Result;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use serenity::model::Permissions;

use super::invocation::Invocation;
use super::response::Response;

/// A slash command, or a group of subcommands.
#[derive(Debug)]
pub(super) struct Command {
    pub name: &'static str,
    pub description: &'static str,
    /// The permissions that a member needs to see the command. The right is checked again when the command runs.
    pub default_permissions: Option<Permissions>,
    pub subcommands: Subcommands,
}

#[derive(Debug)]
pub(super) enum Subcommands {
    One(Subcommand),
    Many(&'static [Subcommand]),
}

/// A subcommand, or a command that has none.
#[derive(Debug)]
pub(super) struct Subcommand {
    /// The name behind that of the command; equal to it if the command has no subcommands.
    pub name: &'static str,
    pub description: &'static str,
    pub run: Handler,
    pub right: Right,
    /// The response is shown only to the caller.
    pub private: bool,
    pub options: &'static [CommandOption],
}

/// The place in which a command is available, as Discord numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandContext {
    Guild = 0,
    /// Direct messages with the application.
    DirectMessages = 1,
}

/// The function that runs a subcommand.
pub(super) type Handler = for<'c> fn(&'c Invocation) -> BoxFuture<'c, Result<Response>>;

/// The right to use a command. To name another agent than the channel's own needs Manage Channels in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    /// Everybody who sees the channel.
    Read,
    /// Manage Messages, or a role of `approvers`.
    Change,
    /// Create Public Threads, or the right to change.
    Threads,
    /// Manage Channels.
    Channels,
    /// Manage Server.
    Server,
}

/// An option of a command.
#[derive(Debug)]
pub(super) struct CommandOption {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: OptionKind,
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionKind {
    /// At most this many characters.
    Text(u16),
    /// A text with autocomplete.
    Autocomplete(Completion),
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A whole number, at least this one.
    Number(u32),
    Bool,
}

/// What autocomplete suggests for an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completion {
    Agents,
    Sessions,
    Models,
    Profiles,
    /// Values for the configuration key that is given in another option.
    Values,
}

/// Defines an option that must be given.
pub(super) const fn required(name: &'static str, description: &'static str, kind: OptionKind) -> CommandOption {
    CommandOption { name, description, kind, required: true }
}

/// Defines an option that may be left out.
pub(super) const fn optional(name: &'static str, description: &'static str, kind: OptionKind) -> CommandOption {
    CommandOption { name, description, kind, required: false }
}

pub(super) const AGENT_OPTION: CommandOption =
    optional("agent", "Agent to use instead of this channel's", OptionKind::Autocomplete(Completion::Agents));
pub(super) const RESET_OPTION: CommandOption = optional("reset", "Reset to the default", OptionKind::Bool);

/// Defines a command without subcommands that only reads.
pub(super) const fn read_only_command(
    name: &'static str,
    description: &'static str,
    options: &'static [CommandOption],
    run: Handler,
) -> Command {
    let action = Subcommand { name, description, run, right: Right::Read, private: true, options };
    Command { name, description, default_permissions: None, subcommands: Subcommands::One(action) }
}

/// Longest text of an option with autocomplete.
const MAX_AUTOCOMPLETE_CHARS: u16 = 1000;

impl Command {
    /// Returns the subcommands, or the command itself if it has none.
    pub(super) fn all_subcommands(&self) -> &[Subcommand] {
        match &self.subcommands {
            Subcommands::One(action) => std::slice::from_ref(action),
            Subcommands::Many(actions) => actions,
        }
    }

    /// Returns the definition for Discord's API, where the command is available in this context only.
    pub(super) fn to_json(&self, context: CommandContext) -> Value {
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
            "contexts": [context as u8],
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
