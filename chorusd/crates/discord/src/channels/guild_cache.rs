//! Cache of the guilds that Chorus is in, filled from gateway events.

use std::collections::{HashMap, HashSet};

use chorus_base::sync::RwLock;
use serenity::model::Permissions;
use serenity::model::application::Interaction;
use serenity::model::channel::{ChannelType, GuildChannel, PermissionOverwriteType};
use serenity::model::event::Event;
use serenity::model::guild::{Guild, Role};
use serenity::model::id::{ChannelId, GuildId, RoleId, UserId};

use crate::shards::{shard_of, shard_of_ready};

use super::effective_permissions::{member_permissions_in, permissions_in};

/// Permissions that Chorus needs in an agent's channel.
const REQUIRED_PERMISSIONS: [(Permissions, &str); 4] = [
    (Permissions::VIEW_CHANNEL, "View Channel"),
    (Permissions::SEND_MESSAGES, "Send Messages"),
    (Permissions::ATTACH_FILES, "Attach Files"),
    (Permissions::READ_MESSAGE_HISTORY, "Read Message History"),
];

/// Permissions that Chorus needs in threads below an agent's channel, and to create them.
const THREAD_PERMISSIONS: [(Permissions, &str); 2] = [
    (Permissions::SEND_MESSAGES_IN_THREADS, "Send Messages in Threads"),
    (Permissions::CREATE_PUBLIC_THREADS, "Create Public Threads"),
];

/// Guilds in memory, with what determines who may do what in which channel.
#[derive(Debug, Default)]
pub(super) struct GuildCache {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The id of Chorus's own user; `None` before the first connection.
    own_user_id: Option<UserId>,
    /// Guilds that READY listed and whose GUILD_CREATE has not arrived yet.
    pending: Vec<GuildId>,
    guilds: HashMap<GuildId, Guild>,
    /// The shards whose READY arrived, each with the number of shards.
    shards: HashSet<(u32, u32)>,
}

/// Whether a channel can become an agent's channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChannelFitness {
    /// It is in none of the cached guilds.
    Unknown,
    /// It cannot, for this reason.
    Unfit(String),
    Fit(GuildId),
}

impl GuildCache {
    /// Updates the cache from an event. `serves` tells whether a guild is allowed. Returns the guild that is complete
    /// now.
    pub(super) fn apply(&self, event: &Event, serves: impl Fn(GuildId) -> bool) -> Option<GuildId> {
        let mut inner = self.inner.write();
        match event {
            Event::Ready(ready) => {
                let ((shard, count), ready) = (shard_of_ready(ready), &ready.ready);
                inner.own_user_id = Some(ready.user.id);
                // Of other shards nothing is said.
                let is_of_other = |id: GuildId| shard_of(id, count) != shard;
                let awaited: Vec<GuildId> =
                    ready.guilds.iter().map(|guild| guild.id).filter(|id| serves(*id)).collect();
                inner.pending.retain(|id| is_of_other(*id));
                inner.pending.extend(&awaited);
                inner.guilds.retain(|id, _| awaited.contains(id) || is_of_other(*id));
                inner.shards.retain(|(_, of)| *of == count);
                inner.shards.insert((shard, count));
            }
            Event::GuildCreate(event) if serves(event.guild.id) => {
                let (id, me) = (event.guild.id, inner.own_user_id);
                inner.pending.retain(|awaited| *awaited != id);
                inner.guilds.insert(id, strip_guild(event.guild.clone(), me));
                return Some(id);
            }
            // A guild that is unavailable for a while keeps its state.
            Event::GuildDelete(event) if !event.guild.unavailable => {
                inner.pending.retain(|awaited| *awaited != event.guild.id);
                inner.guilds.remove(&event.guild.id);
            }
            Event::GuildUpdate(event) => {
                if let Some(guild) = inner.guilds.get_mut(&event.guild.id) {
                    guild.name.clone_from(&event.guild.name);
                    guild.owner_id = event.guild.owner_id;
                    guild.roles.clone_from(&event.guild.roles);
                }
            }
            Event::ChannelCreate(event) => inner.insert_channel(event.channel.clone()),
            Event::ChannelUpdate(event) => inner.insert_channel(event.channel.clone()),
            Event::ChannelDelete(event) => {
                if let Some(guild) = inner.guilds.get_mut(&event.channel.guild_id) {
                    guild.channels.remove(&event.channel.id);
                }
            }
            Event::GuildRoleCreate(event) => inner.insert_role(event.role.clone()),
            Event::GuildRoleUpdate(event) => inner.insert_role(event.role.clone()),
            Event::GuildRoleDelete(event) => {
                if let Some(guild) = inner.guilds.get_mut(&event.guild_id) {
                    guild.roles.remove(&event.role_id);
                }
            }
            Event::GuildMemberUpdate(event) if inner.own_user_id == Some(event.user.id) => {
                let guild = inner.guilds.get_mut(&event.guild_id);
                if let Some(me) = guild.and_then(|guild| guild.members.get_mut(&event.user.id)) {
                    me.roles.clone_from(&event.roles);
                }
            }
            Event::MessageCreate(event) if event.message.webhook_id.is_none() => {
                inner.observe_member(event.message.guild_id, event.message.author.id);
            }
            Event::InteractionCreate(event) => match &event.interaction {
                Interaction::Command(command) | Interaction::Autocomplete(command) => {
                    inner.observe_member(command.guild_id, command.user.id);
                }
                Interaction::Component(press) => inner.observe_member(press.guild_id, press.user.id),
                _ => {}
            },
            _ => {}
        }
        None
    }

    /// Returns the ids of all guilds, cached or pending, in ascending order.
    #[must_use]
    pub(super) fn guild_ids(&self) -> Vec<GuildId> {
        let inner = self.inner.read();
        let mut known: Vec<GuildId> = inner.guilds.keys().chain(&inner.pending).copied().collect();
        drop(inner);
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Returns whether all guilds are cached, so that a channel in none of them does not exist.
    #[must_use]
    pub(super) fn is_complete(&self) -> bool {
        let inner = self.inner.read();
        inner.has_all_shards() && inner.pending.is_empty()
    }

    /// Returns whether the guilds of all shards are known by their ids.
    #[must_use]
    pub(super) fn has_all_shards(&self) -> bool {
        self.inner.read().has_all_shards()
    }

    /// Forgets the guilds of a shard, which this process has no more.
    pub(super) fn forget_shard(&self, shard: u32, count: u32) {
        let mut inner = self.inner.write();
        inner.shards.remove(&(shard, count));
        inner.guilds.retain(|id, _| shard_of(*id, count) != shard);
        inner.pending.retain(|id| shard_of(*id, count) != shard);
    }

    /// Returns the guild of a channel.
    #[must_use]
    pub(super) fn guild_of(&self, channel: ChannelId) -> Option<GuildId> {
        self.inner.read().guilds.values().find(|guild| guild.channels.contains_key(&channel)).map(|guild| guild.id)
    }

    /// Returns the id of Chorus's own user; `None` before the first connection.
    #[must_use]
    pub(super) fn own_user_id(&self) -> Option<UserId> {
        self.inner.read().own_user_id
    }

    /// Returns the owner of a guild, if known.
    #[must_use]
    pub(super) fn owner_of(&self, guild: GuildId) -> Option<UserId> {
        self.inner.read().guilds.get(&guild).map(|guild| guild.owner_id)
    }

    /// Returns the name of a channel.
    #[must_use]
    pub(super) fn name_of(&self, channel: ChannelId) -> Option<String> {
        self.inner.read().guilds.values().find_map(|guild| guild.channels.get(&channel)).map(|found| found.name.clone())
    }

    /// Returns whether Chorus has these permissions in a channel; `None` if not known.
    #[must_use]
    pub(super) fn has_permissions(&self, channel: ChannelId, wanted: Permissions) -> Option<bool> {
        let inner = self.inner.read();
        let guild = inner.guilds.values().find(|guild| guild.channels.contains_key(&channel))?;
        let me = guild.members.get(&inner.own_user_id?)?;
        Some(member_permissions_in(guild, guild.channels.get(&channel)?, me).contains(wanted))
    }

    /// Returns the permissions of a member with these roles in a channel; `None` if the channel is not cached.
    #[must_use]
    pub(super) fn permissions_of(&self, channel: ChannelId, user: UserId, roles: &[RoleId]) -> Option<Permissions> {
        let inner = self.inner.read();
        let guild = inner.guilds.values().find(|guild| guild.channels.contains_key(&channel))?;
        Some(permissions_in(guild, guild.channels.get(&channel)?, user, roles))
    }

    /// Returns whether everybody who sees a channel has the permission `wanted` there, or a role that `fits`. Discord
    /// does not send the roles of other members, so each role is checked as if a member had only that one. Returns
    /// false if the channel is not cached.
    #[must_use]
    pub(super) fn all_members_have(
        &self,
        channel: ChannelId,
        wanted: Permissions,
        fits: impl Fn(&Role) -> bool,
    ) -> bool {
        let inner = self.inner.read();
        let Some(guild) = inner.guilds.values().find(|guild| guild.channels.contains_key(&channel)) else {
            return false;
        };
        // Two members are Chorus and the owner, who may do everything. The count is 1 if it is not known, as after a
        // resumed session. Whoever joined since counts once they were observed.
        if guild.member_count == 2 {
            return true;
        }
        let Some(found) = guild.channels.get(&channel) else { return false };
        // A member who has an overwrite of their own may see the channel by that alone.
        let by_name = found.permission_overwrites.iter().any(|overwrite| {
            matches!(overwrite.kind, PermissionOverwriteType::Member(user) if Some(user) != inner.own_user_id)
                && overwrite.allow.contains(Permissions::VIEW_CHANNEL)
                && !overwrite.allow.contains(wanted)
        });
        let mut people = guild.roles.values().filter(|role| !role.managed);
        !by_name
            && people.all(|role| {
                let may = role_permissions_in(guild, found, role);
                !may.contains(Permissions::VIEW_CHANNEL) || may.contains(wanted) || fits(role)
            })
    }

    /// Checks whether an agent can have this channel.
    #[must_use]
    pub(super) fn check_channel(&self, channel: ChannelId) -> ChannelFitness {
        let inner = self.inner.read();
        let Some(guild) = inner.guilds.values().find(|guild| guild.channels.contains_key(&channel)) else {
            return ChannelFitness::Unknown;
        };
        let Some(found) = guild.channels.get(&channel) else { return ChannelFitness::Unknown };
        if !matches!(found.kind, ChannelType::Text | ChannelType::News) {
            return ChannelFitness::Unfit(format!("{} is not a text channel", found.name));
        }
        // Without Chorus's own roles its permissions are not known; Discord will refuse.
        if let Some(me) = inner.own_user_id.and_then(|me| guild.members.get(&me)) {
            let may = member_permissions_in(guild, found, me);
            if let Some(why) = describe_missing(may, &REQUIRED_PERMISSIONS, &found.name) {
                return ChannelFitness::Unfit(why);
            }
        }
        ChannelFitness::Fit(guild.id)
    }

    /// Returns which permissions for threads below a channel Chorus lacks; `None` if it has them or that is not known.
    #[must_use]
    pub(super) fn thread_problem(&self, channel: ChannelId) -> Option<String> {
        let inner = self.inner.read();
        let guild = inner.guilds.values().find(|guild| guild.channels.contains_key(&channel))?;
        let (found, me) = (guild.channels.get(&channel)?, guild.members.get(&inner.own_user_id?)?);
        describe_missing(member_permissions_in(guild, found, me), &THREAD_PERMISSIONS, &found.name)
    }
}

/// Describes which permissions are missing in a channel; `None` if none is.
fn describe_missing(may: Permissions, needed: &[(Permissions, &str)], channel: &str) -> Option<String> {
    let missing: Vec<&str> =
        needed.iter().filter(|(needed, _)| !may.contains(*needed)).map(|(_, name)| *name).collect();
    (!missing.is_empty()).then(|| format!("Chorus lacks permissions in #{channel}: {}", missing.join(", ")))
}

impl Inner {
    fn has_all_shards(&self) -> bool {
        self.shards
            .iter()
            .next()
            .is_some_and(|(_, count)| self.shards.len() >= usize::try_from(*count).unwrap_or(usize::MAX))
    }

    /// Corrects the number of a guild's members if this one is neither its owner nor Chorus. Discord sends the number
    /// with the guild; who joins later is told only to applications with the intent for members.
    fn observe_member(&mut self, guild: Option<GuildId>, user: UserId) {
        if self.own_user_id == Some(user) {
            return;
        }
        if let Some(guild) = guild.and_then(|guild| self.guilds.get_mut(&guild))
            && guild.owner_id != user
        {
            guild.member_count = guild.member_count.max(3);
        }
    }

    fn insert_channel(&mut self, channel: GuildChannel) {
        if let Some(guild) = self.guilds.get_mut(&channel.guild_id) {
            guild.channels.insert(channel.id, channel);
        }
    }

    fn insert_role(&mut self, role: Role) {
        if let Some(guild) = self.guilds.get_mut(&role.guild_id) {
            guild.roles.insert(role.id, role);
        }
    }
}

/// Returns the permissions in a channel of a member who has only this role, computed as in
/// <https://discord.com/developers/docs/topics/permissions#permission-overwrites>.
fn role_permissions_in(guild: &Guild, channel: &GuildChannel, role: &Role) -> Permissions {
    let everyone = RoleId::new(guild.id.get());
    let base = guild.roles.get(&everyone).map_or(Permissions::empty(), |all| all.permissions) | role.permissions;
    if base.contains(Permissions::ADMINISTRATOR) {
        return Permissions::all();
    }
    let of = |id: RoleId| {
        let mut all = channel.permission_overwrites.iter();
        all.find(|overwrite| overwrite.kind == PermissionOverwriteType::Role(id))
    };
    [everyone, role.id].into_iter().filter_map(of).fold(base, |may, overwrite| may & !overwrite.deny | overwrite.allow)
}

/// Removes what is not used from a guild, including all members except Chorus itself.
fn strip_guild(mut guild: Guild, me: Option<UserId>) -> Guild {
    guild.members.retain(|id, _| Some(*id) == me);
    guild.presences = HashMap::new();
    guild.voice_states = HashMap::new();
    guild.emojis = HashMap::new();
    guild.stickers = HashMap::new();
    guild.threads = Vec::new();
    guild.scheduled_events = Vec::new();
    guild.stage_instances = Vec::new();
    guild
}
