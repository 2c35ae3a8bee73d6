//! What a command is: its words, what may be given with it, who may use it.

use serde_json::{Value, json};
use serenity::model::Permissions;

/// A slash command, or several of one name.
#[derive(Debug)]
pub struct Command {
    pub name: &'static str,
    pub description: &'static str,
    /// Who is shown it; what counts is looked at when it is carried out.
    pub hidden: Option<Permissions>,
    pub actions: Actions,
}

#[derive(Debug)]
pub enum Actions {
    One(Action),
    Many(&'static [Action]),
}

/// What one command does.
#[derive(Debug)]
pub struct Action {
    /// Behind that of the command; of a command that is only one, the same.
    pub name: &'static str,
    pub description: &'static str,
    pub verb: Verb,
    pub right: Right,
    /// Whether nobody else sees the answer.
    pub private: bool,
    pub options: &'static [Opt],
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
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
pub struct Opt {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: Kind,
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// At most so many characters.
    Text(u16),
    /// With what is offered while it is typed.
    Offered(Offer),
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A whole number from this on.
    Number(u32),
    YesNo,
}

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    Agents,
    Sessions,
    Models,
    Profiles,
    /// Values of the key that is given, too.
    Values,
}

/// Longest text that is offered something for.
const OFFERED: u16 = 1000;

impl Command {
    #[cfg(test)]
    pub fn actions(&self) -> &[Action] {
        match &self.actions {
            Actions::One(action) => std::slice::from_ref(action),
            Actions::Many(actions) => actions,
        }
    }

    /// As Discord takes it. For servers only: an application's commands are none of a direct message.
    pub fn body(&self) -> Value {
        let options: Vec<Value> = match &self.actions {
            Actions::One(action) => action.options.iter().map(Opt::body).collect(),
            Actions::Many(actions) => actions.iter().map(Action::body).collect(),
        };
        json!({
            "name": self.name,
            "type": 1,
            "description": self.description,
            "options": options,
            "default_member_permissions": self.hidden.map(|permissions| permissions.bits().to_string()),
            "contexts": [0],
        })
    }
}

impl Action {
    fn body(&self) -> Value {
        let options: Vec<Value> = self.options.iter().map(Opt::body).collect();
        json!({"name": self.name, "type": 1, "description": self.description, "options": options})
    }
}

impl Opt {
    fn body(&self) -> Value {
        let mut body = json!({"name": self.name, "description": self.description, "required": self.required});
        let more = match self.kind {
            Kind::Text(most) => json!({"type": 3, "max_length": most}),
            Kind::Offered(_) => json!({"type": 3, "max_length": OFFERED, "autocomplete": true}),
            Kind::OneOf(words) => {
                let choices: Vec<Value> = words.iter().map(|word| json!({"name": word, "value": word})).collect();
                json!({"type": 3, "choices": choices})
            }
            Kind::Number(least) => json!({"type": 4, "min_value": least}),
            Kind::YesNo => json!({"type": 5}),
        };
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        body
    }
}
