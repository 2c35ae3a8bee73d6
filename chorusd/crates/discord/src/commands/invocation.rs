//! A command as it was invoked: by whom, where, and with which arguments.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_engine::agent::agent_index::AgentEntry;
use chorus_engine::ops::conversations::ConversationKey;
use chorus_engine::ops::{Ops, discord};
use chorus_proto::ErrorKind;
use serenity::model::application::{CommandData, CommandDataOption, CommandDataOptionValue};
use serenity::model::id::{ChannelId, GuildId};
use tokio::time::timeout;

use super::command_definition::Right;
use crate::app::DiscordApp;
use crate::member::GuildMember;
use crate::{conversations, threads};

/// How long it is waited for what Discord says of an unknown channel.
const THREAD_TIMEOUT: Duration = Duration::from_secs(5);

/// The member who invoked a command or pressed a button, and where.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub app: Arc<DiscordApp>,
    pub guild: GuildId,
    pub channel: ChannelId,
    pub member: GuildMember,
}

/// A command with its arguments.
#[derive(Debug)]
pub(super) struct Invocation {
    pub caller: Caller,
    pub args: Arguments,
}

/// The arguments of a command, by name.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// The name of the subcommand.
    pub subcommand: Option<String>,
    values: HashMap<String, ArgumentValue>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ArgumentValue {
    Text(String),
    Number(u64),
    Bool(bool),
}

impl Arguments {
    #[must_use]
    pub(super) fn from_data(data: &CommandData) -> Self {
        match data.options.first() {
            Some(CommandDataOption { name, value: CommandDataOptionValue::SubCommand(options), .. }) => {
                Self { subcommand: Some(name.clone()), values: argument_values(options) }
            }
            _ => Self { subcommand: None, values: argument_values(&data.options) },
        }
    }

    #[must_use]
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            ArgumentValue::Text(text) => Some(text),
            _ => None,
        }
    }

    #[must_use]
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match self.values.get(name)? {
            ArgumentValue::Number(number) => Some(*number),
            _ => None,
        }
    }

    #[must_use]
    pub(super) fn flag(&self, name: &str) -> bool {
        self.values.get(name) == Some(&ArgumentValue::Bool(true))
    }

    /// Returns a text argument that is required.
    ///
    /// # Errors
    /// `invalid_params`; Discord itself asks for required options before it sends a command.
    pub(super) fn require_text(&self, name: &str) -> Result<&str> {
        self.text(name).ok_or_else(|| Error::invalid(format!("`{name}` is missing")))
    }
}

fn argument_values(options: &[CommandDataOption]) -> HashMap<String, ArgumentValue> {
    let value = |option: &CommandDataOption| match &option.value {
        CommandDataOptionValue::String(text) | CommandDataOptionValue::Autocomplete { value: text, .. } => {
            Some(ArgumentValue::Text(text.clone()))
        }
        CommandDataOptionValue::Integer(number) => u64::try_from(*number).ok().map(ArgumentValue::Number),
        CommandDataOptionValue::Boolean(yes) => Some(ArgumentValue::Bool(*yes)),
        _ => None,
    };
    options.iter().filter_map(|option| Some((option.name.clone(), value(option)?))).collect()
}

impl Caller {
    #[must_use]
    pub(super) fn ops(&self) -> &Ops {
        &self.app.ops
    }

    /// Checks that the caller has a right. Returns the name of what grants it, for people and for the audit log.
    pub(super) fn check_right(&self, right: Right) -> Result<&'static str> {
        let rights = self.member.rights;
        let (has, needed) = match right {
            Right::Read => (true, "anybody"),
            Right::Change if rights.own_conversation => (true, "own direct messages"),
            Right::Change => (rights.can_change_context(), "Manage Messages or an approver role"),
            Right::Threads => {
                (rights.create_threads || rights.can_change_context(), "Create Public Threads or an approver role")
            }
            Right::Channels => (rights.manage_channels, "Manage Channels"),
            Right::Server => (rights.manage_guild, "Manage Server"),
        };
        if has {
            return Ok(needed);
        }
        self.ensure_roles_loaded()?;
        Err(Error::new(ErrorKind::Denied, "You don't have permission").hint(format!("you need {needed}")))
    }

    /// Checks that the roles of the guild are loaded. Without them no request can be denied with certainty.
    fn ensure_roles_loaded(&self) -> Result<()> {
        if self.app.roles.is_loaded(self.guild) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::DiscordFailed, "Discord did not return the roles of this server")
            .hint("try again in a moment"))
    }

    /// Replaces a `denied` error by `discord_failed` if the roles of the guild are not loaded.
    #[must_use]
    pub(super) fn verify_denial(&self, failure: Error) -> Error {
        if failure.kind == ErrorKind::Denied { self.ensure_roles_loaded().err().unwrap_or(failure) } else { failure }
    }

    /// Checks that a model of this name can be called. Nobody in a channel could configure what is missing.
    ///
    /// # Errors
    /// `model_unavailable` with the nearest names.
    pub(super) fn check_model(&self, name: &str) -> Result<()> {
        self.ops().models.resolve(name).map(drop)
    }

    /// The agent of this channel, of the channel that this thread is below, or of these direct messages.
    #[must_use]
    pub(super) fn channel_agent(&self) -> Option<Arc<AgentEntry>> {
        self.app.channels.target_of(self.channel).map(|target| target.agent)
    }

    /// Returns whether the caller is in direct messages.
    #[must_use]
    pub(super) fn is_direct(&self) -> bool {
        self.member.rights.own_conversation
    }

    /// Finds out whether an unknown channel is a thread. If Discord does not tell in time, it counts as none.
    pub(super) async fn find_thread(&self) {
        if self.app.channels.target_of(self.channel).is_none() && self.app.channels.may_be_thread(self.channel) {
            _ = timeout(THREAD_TIMEOUT, threads::lookup(&self.app, self.channel)).await;
        }
    }

    /// Returns the conversation of this channel, thread or direct messages with an agent: `main` if the agent belongs to
    /// another channel.
    ///
    /// # Errors
    /// `nothing_to_save` for a thread or direct messages without a conversation.
    pub(super) fn find_conversation(&self, agent: &AgentEntry) -> Result<ConversationKey> {
        let found = conversations::find_conversation(self.ops(), &self.app.channels, agent.settings.id, self.channel);
        found.ok_or_else(conversations::no_conversation_error)
    }

    /// Returns the conversation whose sessions may be shown here. A thread without one shows what `main` does.
    ///
    /// # Errors
    /// `nothing_to_save` for direct messages without a conversation.
    pub(super) fn session_viewer(&self, agent: &AgentEntry) -> Result<ConversationKey> {
        match self.find_conversation(agent) {
            Err(_) if !self.is_direct() => Ok(ConversationKey::main(agent.settings.id)),
            found => found,
        }
    }

    /// Like [`Caller::find_conversation`], as requests name it. Creates the conversation of a thread or of direct messages
    /// that have none, and opens a closed one.
    ///
    /// # Errors
    /// `busy`, `limit_reached`, `disk_full`, `storage_failed`.
    pub(super) async fn conversation(&self, agent: &AgentEntry) -> Result<Option<String>> {
        let target = self.app.channels.target_of(self.channel);
        let own = target.filter(|target| target.agent.settings.id == agent.settings.id);
        let Some(target) = own else { return Ok(None) };
        let key = conversations::ensure_conversation(&self.app, &target).await?;
        threads::open(&self.app, agent, key).await?;
        Ok(conversations::conversation_param(key))
    }

    /// Returns whether an agent belongs to this guild: its channel is here, or its last one was. An agent that never
    /// had a channel belongs to the guild if no other guild is allowed.
    #[must_use]
    pub(super) fn is_guild_agent(&self, entry: &AgentEntry) -> bool {
        if self.is_direct() {
            return self.channel_agent().is_some_and(|own| own.settings.id == entry.settings.id);
        }
        match &entry.guild_id {
            Some(guild) => *guild == self.guild.to_string(),
            None => entry.channel_id.is_none() && self.app.channels.serves_only(self.guild),
        }
    }

    /// The agents that the caller may see, by name.
    #[must_use]
    pub(super) fn visible_agents(&self) -> Vec<Arc<AgentEntry>> {
        if !self.member.rights.manage_channels {
            return self.channel_agent().into_iter().collect();
        }
        self.ops().agents.all().into_iter().filter(|entry| self.is_guild_agent(entry)).collect()
    }

    /// Returns the agent that is named, or this channel's agent if none is.
    ///
    /// # Errors
    /// `no_agent`, `denied` for another agent without Manage Channels, `agent_not_found`.
    pub(super) fn resolve_agent(&self, named: Option<&str>) -> Result<Arc<AgentEntry>> {
        let own = self.channel_agent();
        let Some(name) = named else {
            return own.ok_or_else(|| {
                Error::new(ErrorKind::NoAgent, "This channel has no agent")
                    .hint("use the command in an agent's channel, or choose an agent with the option `agent`")
            });
        };
        if let Some(own) = own.filter(|own| own.settings.name == name) {
            return Ok(own);
        }
        self.check_other_agents()?;
        self.ops().agents.by_name(name).filter(|entry| self.is_guild_agent(entry)).ok_or_else(|| {
            let shown: String = name.chars().take(80).collect();
            Error::new(ErrorKind::AgentNotFound, format!("No agent {shown:?} in this server"))
                .hint("list agents: `/agent list`")
        })
    }

    /// Checks that the caller may use agents of other channels.
    pub(super) fn check_other_agents(&self) -> Result<()> {
        if self.member.rights.manage_channels {
            return Ok(());
        }
        self.ensure_roles_loaded()?;
        Err(Error::new(ErrorKind::Denied, "You don't have permission to use another channel's agent")
            .hint("you need Manage Channels"))
    }

    /// Records in the audit log what the caller is about to do.
    ///
    /// # Errors
    /// If the audit log cannot be written, the action must not be done.
    pub(super) async fn audit(&self, agent: &AgentEntry, action: &str, right: Right) -> Result<()> {
        let right = self.check_right(right)?;
        discord::command_support::audit_action(
            self.ops(),
            &self.member.requester,
            agent,
            format!("discord:{action}"),
            right,
        )
        .await
    }
}
