//! A command on its way: who asks for it, where, and what was given.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_proto::ErrorKind;
use serenity::model::application::{CommandData, CommandDataOption, CommandDataOptionValue};
use serenity::model::id::{ChannelId, GuildId};

use super::definitions::Right;
use crate::agent::directory::Entry;
use crate::discord::bridge::Bridge;
use crate::discord::person::Person;
use crate::failure::{Failure, Result};
use crate::ops::{Ops, discord};

/// Who asks for something, and where.
#[derive(Debug, Clone)]
pub struct Asker {
    pub bridge: Arc<Bridge>,
    pub guild: GuildId,
    pub channel: ChannelId,
    pub person: Person,
}

/// A command with what was given.
#[derive(Debug)]
pub struct Call {
    pub by: Asker,
    pub given: Given,
}

/// What was given, by name.
#[derive(Debug, Default)]
pub struct Given {
    /// The word behind that of the command.
    pub sub: Option<String>,
    values: HashMap<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(String),
    Number(u64),
    Yes(bool),
}

impl Given {
    #[must_use]
    pub fn of(data: &CommandData) -> Self {
        match data.options.first() {
            Some(CommandDataOption { name, value: CommandDataOptionValue::SubCommand(options), .. }) => {
                Self { sub: Some(name.clone()), values: values(options) }
            }
            _ => Self { sub: None, values: values(&data.options) },
        }
    }

    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.values.get(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    #[must_use]
    pub fn yes(&self, name: &str) -> bool {
        self.values.get(name) == Some(&Value::Yes(true))
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// `invalid_params`; Discord asks for it before it sends a command.
    pub fn must(&self, name: &str) -> Result<&str> {
        self.text(name).ok_or_else(|| Failure::invalid(format!("`{name}` is missing")))
    }
}

fn values(options: &[CommandDataOption]) -> HashMap<String, Value> {
    let value = |option: &CommandDataOption| match &option.value {
        CommandDataOptionValue::String(text) | CommandDataOptionValue::Autocomplete { value: text, .. } => {
            Some(Value::Text(text.clone()))
        }
        CommandDataOptionValue::Integer(number) => u64::try_from(*number).ok().map(Value::Number),
        CommandDataOptionValue::Boolean(yes) => Some(Value::Yes(*yes)),
        _ => None,
    };
    options.iter().filter_map(|option| Some((option.name.clone(), value(option)?))).collect()
}

impl Asker {
    #[must_use]
    pub fn ops(&self) -> &Ops {
        &self.bridge.ops
    }

    /// Whether they may; the right by its name, for who asks and for the audit log.
    ///
    /// # Errors
    /// `denied`, with what is needed.
    pub fn may(&self, right: Right) -> Result<&'static str> {
        let rights = self.person.rights;
        let (has, needed) = match right {
            Right::Read => (true, "anybody"),
            Right::Change => (rights.changes(), "Manage Messages or a role of `approvers`"),
            Right::Channels => (rights.manage_channels, "Manage Channels"),
            Right::Server => (rights.manage_guild, "Manage Server"),
        };
        if has {
            return Ok(needed);
        }
        self.sure()?;
        Err(Failure::new(ErrorKind::Denied, "you may not do that here").hint(format!("it needs {needed}")))
    }

    /// Whether it is known which roles there are: without that nobody can be told that they may not.
    ///
    /// # Errors
    /// `discord_failed`.
    fn sure(&self) -> Result<()> {
        if self.bridge.guilds.knows(self.guild) {
            return Ok(());
        }
        Err(Failure::new(ErrorKind::DiscordFailed, "Discord did not say which roles there are")
            .hint("try again in a moment"))
    }

    /// A failure, where it says that they may not only if that is sure.
    #[must_use]
    pub fn or_unsure(&self, failure: Failure) -> Failure {
        if failure.kind == ErrorKind::Denied { self.sure().err().unwrap_or(failure) } else { failure }
    }

    /// Whether a name is one of a model that can be called: nobody in a channel can add what it would need.
    ///
    /// # Errors
    /// `model_unavailable` with the nearest names.
    pub fn knows_model(&self, name: &str) -> Result<()> {
        self.ops().models.resolve(name).map(drop)
    }

    /// The agent of this channel.
    #[must_use]
    pub fn own(&self) -> Option<Arc<Entry>> {
        self.bridge.rooms.agent_of(self.channel)
    }

    /// Whether an agent is one of this server: it has its channel here, or had its last one; or it never had one, and no other server is
    /// served.
    #[must_use]
    pub fn is_here(&self, entry: &Entry) -> bool {
        match &entry.guild_id {
            Some(guild) => *guild == self.guild.to_string(),
            None => entry.channel_id.is_none() && self.bridge.rooms.serves_only(self.guild),
        }
    }

    /// The agents that they may look at, by name.
    #[must_use]
    pub fn visible(&self) -> Vec<Arc<Entry>> {
        if !self.person.rights.manage_channels {
            return self.own().into_iter().collect();
        }
        self.ops().directory.all().into_iter().filter(|entry| self.is_here(entry)).collect()
    }

    /// The agent that is meant: this channel's, or the one that is named.
    ///
    /// # Errors
    /// `no_agent`, `denied` for another agent without Manage Channels, `agent_not_found`.
    pub fn agent(&self, named: Option<&str>) -> Result<Arc<Entry>> {
        let own = self.own();
        let Some(name) = named else {
            return own.ok_or_else(|| {
                Failure::new(ErrorKind::NoAgent, "this channel has no agent")
                    .hint("use the command in an agent's channel, or name one with `agent`")
            });
        };
        if let Some(own) = own.filter(|own| own.facts.name == name) {
            return Ok(own);
        }
        self.other()?;
        self.ops().directory.by_name(name).filter(|entry| self.is_here(entry)).ok_or_else(|| {
            let shown: String = name.chars().take(80).collect();
            Failure::new(ErrorKind::AgentNotFound, format!("there is no agent {shown:?} here"))
                .hint("`/agent list` shows them")
        })
    }

    /// Whether they may reach for other agents than this channel's.
    ///
    /// # Errors
    /// `denied`.
    pub fn other(&self) -> Result<()> {
        if self.person.rights.manage_channels {
            return Ok(());
        }
        self.sure()?;
        Err(Failure::new(ErrorKind::Denied, "you may not reach for another channel's agent")
            .hint("it needs Manage Channels"))
    }

    /// Writes down what they are about to have done.
    ///
    /// # Errors
    /// What cannot be written down is not to be done.
    pub async fn note(&self, agent: &Entry, action: &str, right: Right) -> Result<()> {
        let right = self.may(right)?;
        discord::commands::note(self.ops(), &self.person.requester, agent, format!("discord:{action}"), right).await
    }
}
