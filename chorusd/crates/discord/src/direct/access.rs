//! Decides who may write direct messages to the agent. Direct messages belong to no guild, so the person's roles are
//! requested from the guilds that are served.

use std::time::Duration;

use chorus_engine::agent::agent_index::AgentEntry;
use jiff::Timestamp;
use serde::Deserialize;
use serenity::model::Permissions;
use serenity::model::id::{GuildId, RoleId, UserId};

use crate::app::DiscordApp;
use crate::rest::{Request, RestError, Route};

/// How long the result of a check is used: a person who loses a role may write for this long.
pub(super) const MAX_ACCESS_AGE: Duration = Duration::from_secs(60);

/// Discord's codes for a guild, a member or a user that does not exist, and for a guild that Chorus is not in.
const NO_MEMBER_CODES: [u64; 4] = [10_004, 10_007, 10_013, 50_001];

/// The result of the check if a person may write direct messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    Granted(Membership),
    Denied,
}

/// The membership by which a person may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    pub guild: GuildId,
    pub nick: Option<String>,
    /// Empty for somebody who is listed in `dm_allow` and in no guild that is served.
    pub roles: Vec<RoleId>,
}

/// The fields of a member that are used.
#[derive(Debug, Deserialize)]
struct Member {
    nick: Option<String>,
    #[serde(default)]
    roles: Vec<RoleId>,
    /// Until then the person may not write in the guild.
    communication_disabled_until: Option<Timestamp>,
}

/// Checks whether a person may write direct messages to `agent`. The result is at most a minute old.
///
/// # Errors
/// The error of Discord if that is not known now.
pub(crate) async fn check_access(app: &DiscordApp, agent: &AgentEntry, user: UserId) -> Result<Access, RestError> {
    let (now, id) = (app.ops.clock.ticks(), agent.settings.id);
    if let Some(known) = app.channels.direct.cached_access(id, user, now) {
        return Ok(known);
    }
    let access = match app.ops.config.discord.dm_allow.is_empty() {
        true => writes_in_channel(app, agent, user).await?,
        false => is_listed(app, agent, user).await?,
    };
    app.channels.direct.cache_access(id, user, now, access.clone());
    Ok(access)
}

/// Members who can write in the channel of the agent may write direct messages.
async fn writes_in_channel(app: &DiscordApp, agent: &AgentEntry, user: UserId) -> Result<Access, RestError> {
    let Some((channel, Some(guild))) = app.channels.channel_of(agent.settings.id) else { return Ok(Access::Denied) };
    let Some(member) = fetch_member(app, guild, user).await? else { return Ok(Access::Denied) };
    let is_timed_out = member.communication_disabled_until.is_some_and(|until| until > app.ops.clock.now());
    let needed = Permissions::VIEW_CHANNEL | Permissions::SEND_MESSAGES;
    let permissions = match app.channels.permissions_of(channel, user, &member.roles) {
        Some(permissions) => permissions,
        // Another node is told of the guild.
        None if !app.has_shard(app.shards.of(Some(guild))) => {
            app.channels.fetch_permissions_of(app, (guild, channel), user, &member.roles).await?
        }
        None => {
            let why = "the permissions in the channel of the agent are not known yet";
            return Err(RestError::Unreachable(why.into()));
        }
    };
    Ok(match permissions.contains(needed) && !is_timed_out {
        true => Access::Granted(Membership { guild, nick: member.nick, roles: member.roles }),
        false => Access::Denied,
    })
}

/// People and roles that `dm_allow` lists may write direct messages.
async fn is_listed(app: &DiscordApp, agent: &AgentEntry, user: UserId) -> Result<Access, RestError> {
    let listed = &app.ops.config.discord.dm_allow;
    let by_id = listed.contains(&user.to_string());
    let own = app.channels.channel_of(agent.settings.id).and_then(|(_, guild)| guild);
    let mut guilds = app.channels.allowlist.all();
    guilds.sort_by_key(|guild| Some(*guild) != own);
    for guild in &guilds {
        let Some(member) = fetch_member(app, *guild, user).await? else { continue };
        app.roles.ensure_loaded(app, *guild).await?;
        let mut roles = app.roles.role_ids_and_names(*guild, &member.roles).into_iter();
        if by_id || roles.any(|role| listed.contains(&role)) {
            return Ok(Access::Granted(Membership { guild: *guild, nick: member.nick, roles: member.roles }));
        }
    }
    Ok(match guilds.first().filter(|_| by_id) {
        Some(guild) => Access::Granted(Membership { guild: *guild, nick: None, roles: Vec::new() }),
        None => Access::Denied,
    })
}

/// Returns the member of a guild; `None` if the person is none.
async fn fetch_member(app: &DiscordApp, guild_id: GuildId, user_id: UserId) -> Result<Option<Member>, RestError> {
    match app.rest.call(Request::get(Route::GuildMember { guild_id, user_id })).await {
        Ok(member) => Ok(Some(member)),
        Err(error) if error.code().is_some_and(|code| NO_MEMBER_CODES.contains(&code)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the text for a person who may not write direct messages.
#[must_use]
pub(crate) fn refusal_text(app: &DiscordApp) -> &'static str {
    match app.ops.config.discord.dm_allow.is_empty() {
        true => {
            "You may not write to this agent. Ask the people who manage the server for permission to write in the agent's \
             channel."
        }
        false => {
            "You may not write to this agent. Ask the owner of Chorus for permission (`dm_allow` in its configuration)."
        }
    }
}
