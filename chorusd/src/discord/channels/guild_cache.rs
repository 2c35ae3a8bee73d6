//! The servers that Chorus is in, as the gateway tells of them.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use serenity::model::Permissions;
use serenity::model::channel::{ChannelType, GuildChannel, PermissionOverwriteType};
use serenity::model::event::Event;
use serenity::model::guild::{Guild, Role};
use serenity::model::id::{ChannelId, GuildId, RoleId, UserId};

/// What Chorus must be able to do in a channel of an agent.
const REQUIRED_PERMISSIONS: [(Permissions, &str); 4] = [
    (Permissions::VIEW_CHANNEL, "View Channel"),
    (Permissions::SEND_MESSAGES, "Send Messages"),
    (Permissions::ATTACH_FILES, "Attach Files"),
    (Permissions::READ_MESSAGE_HISTORY, "Read Message History"),
];

/// Servers in memory: of each what says who may do what in which channel.
#[derive(Debug, Default)]
pub struct GuildCache {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Chorus itself; nobody before the first connection.
    own_user_id: Option<UserId>,
    /// Servers that are still to be told of.
    pending: Vec<GuildId>,
    guilds: HashMap<GuildId, Guild>,
}

/// Where a channel is, and whether an agent can have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelFitness {
    /// In none of the servers.
    Unknown,
    /// There is a reason against it.
    Unfit(String),
    Fit(GuildId),
}

impl GuildCache {
    /// Takes in what is told. `serves`: whether that server is served. Answers the server that is whole now.
    pub fn apply(&self, event: &Event, serves: impl Fn(GuildId) -> bool) -> Option<GuildId> {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Ready(ready) => {
                let ready = &ready.ready;
                inner.own_user_id = Some(ready.user.id);
                inner.pending = ready.guilds.iter().map(|guild| guild.id).filter(|id| serves(*id)).collect();
                let awaited = inner.pending.clone();
                inner.guilds.retain(|id, _| awaited.contains(id));
            }
            Event::GuildCreate(event) if serves(event.guild.id) => {
                let (id, me) = (event.guild.id, inner.own_user_id);
                inner.pending.retain(|awaited| *awaited != id);
                inner.guilds.insert(id, strip_guild(event.guild.clone(), me));
                return Some(id);
            }
            // One that cannot be reached for a while stays as it was.
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
            _ => {}
        }
        None
    }

    /// The servers that there are, told of or still to be, in the order of their ids.
    #[must_use]
    pub fn guild_ids(&self) -> Vec<GuildId> {
        let inner = self.read();
        let mut known: Vec<GuildId> = inner.guilds.keys().chain(&inner.pending).copied().collect();
        drop(inner);
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Whether all servers were told of, so that a channel that is in none is in none.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let inner = self.read();
        inner.own_user_id.is_some() && inner.pending.is_empty()
    }

    /// The server that a channel is in.
    #[must_use]
    pub fn guild_of(&self, channel: ChannelId) -> Option<GuildId> {
        self.read().guilds.values().find(|guild| guild.channels.contains_key(&channel)).map(|guild| guild.id)
    }

    /// Chorus itself; nobody before the first connection.
    #[must_use]
    pub fn own_user_id(&self) -> Option<UserId> {
        self.read().own_user_id
    }

    /// Who owns a server, as far as that is known.
    #[must_use]
    pub fn owner_of(&self, guild: GuildId) -> Option<UserId> {
        self.read().guilds.get(&guild).map(|guild| guild.owner_id)
    }

    /// What a channel is called.
    #[must_use]
    pub fn name_of(&self, channel: ChannelId) -> Option<String> {
        self.read().guilds.values().find_map(|guild| guild.channels.get(&channel)).map(|found| found.name.clone())
    }

    /// Whether Chorus has these rights in a channel; `None`: nobody told.
    #[must_use]
    pub fn has_permissions(&self, channel: ChannelId, wanted: Permissions) -> Option<bool> {
        let inner = self.read();
        let guild = inner.guilds.values().find(|guild| guild.channels.contains_key(&channel))?;
        let me = guild.members.get(&inner.own_user_id?)?;
        Some(guild.user_permissions_in(guild.channels.get(&channel)?, me).contains(wanted))
    }

    /// Whether everybody who sees a channel has `wanted` there, as far as roles tell, or a role that `fits`. Nobody tells who has which role: each
    /// role counts as if somebody had it alone. False where nothing is known.
    #[must_use]
    pub fn all_members_have(&self, channel: ChannelId, wanted: Permissions, fits: impl Fn(&Role) -> bool) -> bool {
        let inner = self.read();
        let Some(guild) = inner.guilds.values().find(|guild| guild.channels.contains_key(&channel)) else {
            return false;
        };
        // Chorus and its owner, who may do everything. It is 1 where nobody told, as after a session that was taken up.
        if guild.member_count == 2 {
            return true;
        }
        let Some(found) = guild.channels.get(&channel) else { return false };
        // Who is named in the channel itself may see it by that alone.
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

    /// Whether an agent can have this channel.
    #[must_use]
    pub fn check_channel(&self, channel: ChannelId) -> ChannelFitness {
        let inner = self.read();
        let Some(guild) = inner.guilds.values().find(|guild| guild.channels.contains_key(&channel)) else {
            return ChannelFitness::Unknown;
        };
        let Some(found) = guild.channels.get(&channel) else { return ChannelFitness::Unknown };
        if !matches!(found.kind, ChannelType::Text | ChannelType::News) {
            return ChannelFitness::Unfit(format!("{} is no text channel", found.name));
        }
        // Without its own roles nothing can be told: Discord will say.
        if let Some(me) = inner.own_user_id.and_then(|me| guild.members.get(&me)) {
            let may = guild.user_permissions_in(found, me);
            let missing: Vec<&str> = REQUIRED_PERMISSIONS
                .iter()
                .filter(|(needed, _)| !may.contains(*needed))
                .map(|(_, name)| *name)
                .collect();
            if !missing.is_empty() {
                return ChannelFitness::Unfit(format!(
                    "Chorus lacks permissions in #{}: {}",
                    found.name,
                    missing.join(", ")
                ));
            }
        }
        ChannelFitness::Fit(guild.id)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
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

/// What somebody with this role and no other may in a channel, as
/// <https://discord.com/developers/docs/topics/permissions#permission-overwrites> computes it.
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

/// Without what nobody asks for; of the members only Chorus itself.
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
