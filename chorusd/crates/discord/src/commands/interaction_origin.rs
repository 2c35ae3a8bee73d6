//! The origin of an interaction: a member in a guild, or a person in their direct messages.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use serenity::model::guild::Member;
use serenity::model::id::{ChannelId, GuildId};
use serenity::model::user::User;

use super::invocation::Caller;
use crate::app::DiscordApp;
use crate::direct::{self, Access};
use crate::member::GuildMember;

/// The origin of an interaction.
#[derive(Debug)]
pub(super) enum InteractionOrigin {
    Guild {
        guild: GuildId,
        channel: ChannelId,
        member: Box<Member>,
    },
    /// Direct messages that an agent answers.
    Direct {
        channel: ChannelId,
        user: Box<User>,
    },
}

/// Why an interaction is not handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unserved {
    /// The guild is not served: there is no answer.
    Guild,
    /// No agent answers direct messages.
    DirectMessages,
}

impl InteractionOrigin {
    /// Determines the origin. `member` is missing in direct messages.
    pub(super) fn new(
        app: &DiscordApp,
        guild: Option<GuildId>,
        channel: ChannelId,
        member: Option<Member>,
        user: User,
    ) -> Result<Self, Unserved> {
        match guild.zip(member) {
            Some((guild, member)) if app.channels.serves(guild) => {
                Ok(Self::Guild { guild, channel, member: Box::new(member) })
            }
            Some(_) => Err(Unserved::Guild),
            None if app.channels.direct_agent().is_some() => Ok(Self::Direct { channel, user: Box::new(user) }),
            None => Err(Unserved::DirectMessages),
        }
    }

    /// Returns whether it comes from direct messages.
    pub(super) fn is_direct(&self) -> bool {
        matches!(self, Self::Direct { .. })
    }

    /// Returns the caller as far as that is known without a request; `None` in direct messages.
    pub(super) fn known_caller(&self, app: &Arc<DiscordApp>) -> Option<Caller> {
        match self {
            Self::Guild { guild, channel, member } => Some(caller(app, *guild, *channel, member)),
            Self::Direct { .. } => None,
        }
    }

    /// Returns the caller, once the roles of the guild are loaded.
    ///
    /// # Errors
    /// `denied` if the person may not write direct messages, `discord_failed` if that is not known now.
    pub(super) async fn caller(&self, app: &Arc<DiscordApp>) -> Result<Caller> {
        match self {
            Self::Guild { guild, channel, member } => {
                if let Err(error) = app.roles.ensure_loaded(app, *guild).await {
                    tracing::warn!(%error, %guild, "cannot load the roles of a server");
                }
                Ok(caller(app, *guild, *channel, member))
            }
            Self::Direct { channel, user } => direct_caller(app, *channel, user).await,
        }
    }
}

fn caller(app: &Arc<DiscordApp>, guild: GuildId, channel: ChannelId, member: &Member) -> Caller {
    Caller { app: app.clone(), guild, channel, member: GuildMember::from_interaction(app, guild, member) }
}

async fn direct_caller(app: &Arc<DiscordApp>, channel: ChannelId, user: &User) -> Result<Caller> {
    app.channels.refresh_direct_agent(app).await?;
    let agent = app.channels.direct_agent();
    let agent = agent.ok_or_else(|| Error::new(ErrorKind::AgentNotFound, "This agent was deleted"))?;
    direct::register(app, channel, user);
    match direct::check_access(app, &agent, user.id).await? {
        Access::Denied => Err(Error::new(ErrorKind::Denied, direct::refusal_text(app))),
        Access::Granted(membership) => {
            app.roles.ensure_loaded(app, membership.guild).await?;
            let member = GuildMember::from_direct(app, user, &membership);
            Ok(Caller { app: app.clone(), guild: membership.guild, channel, member })
        }
    }
}
