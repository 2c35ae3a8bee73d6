//! Cache of the names and permissions of the roles of each guild: permissions and approvers are configured by role
//! name.

use std::collections::HashMap;
use std::time::Duration;

use crate::rest::{Request, Route};
use chorus_base::requester::SERVER_OWNER;
use chorus_base::sync::{Mutex, RwLock};
use chorus_engine::KeyedMutex;
use serde::Deserialize;
use serenity::model::Permissions;
use serenity::model::event::Event;
use serenity::model::guild::Role;
use serenity::model::id::{GuildId, RoleId};
use tokio::time::Instant;

use super::app::DiscordApp;
use super::rest::RestError;
use super::shards::shard_of;

/// After a failed request for the roles of a guild, the error is repeated for this long without another request.
const FAILURE_COOLDOWN: Duration = Duration::from_secs(2);

/// What is cached of a role.
#[derive(Debug, Clone, Deserialize)]
struct RoleInfo {
    name: String,
    permissions: Permissions,
}

type GuildRoles = HashMap<RoleId, RoleInfo>;

/// How long roles are used that no shard of this process keeps up to date.
const MAX_AGE: Duration = Duration::from_secs(30);

/// Roles by guild, in memory. Filled from gateway events, and by a REST request for guilds that the gateway sent no
/// event about, for example after a resumed connection.
#[derive(Debug, Default)]
pub(crate) struct RoleCache {
    roles: RwLock<HashMap<GuildId, GuildRoles>>,
    /// Lets one task at a time request the roles of a guild; the others wait for it.
    load_locks: KeyedMutex<GuildId>,
    /// When roles were requested.
    requested: Mutex<HashMap<GuildId, Instant>>,
    /// The time and error of the last failed request for a guild.
    failures: Mutex<HashMap<GuildId, (Instant, RestError)>>,
}

impl RoleCache {
    /// Updates the cache from a gateway event.
    pub(crate) fn apply(&self, event: &Event) {
        match event {
            Event::GuildCreate(event) => {
                let roles = event.guild.roles.values().map(|role| (role.id, RoleInfo::from_role(role))).collect();
                self.roles.write().insert(event.guild.id, roles);
            }
            Event::GuildDelete(event) => drop(self.roles.write().remove(&event.guild.id)),
            Event::GuildRoleCreate(event) => self.insert_role(&event.role),
            Event::GuildRoleUpdate(event) => self.insert_role(&event.role),
            Event::GuildRoleDelete(event) => {
                if let Some(roles) = self.roles.write().get_mut(&event.guild_id) {
                    roles.remove(&event.role_id);
                }
            }
            _ => {}
        }
    }

    /// Inserts one role of a guild that is in the cache.
    fn insert_role(&self, role: &Role) {
        if let Some(roles) = self.roles.write().get_mut(&role.guild_id) {
            roles.insert(role.id, RoleInfo::from_role(role));
        }
    }

    /// Returns the ids of these roles and the names of those that are cached. Names that consist of digits, and the
    /// name that stands for the guild's owner, are left out, so that somebody who may rename roles cannot impersonate
    /// another role.
    #[must_use]
    pub(crate) fn role_ids_and_names(&self, guild: GuildId, roles: &[RoleId]) -> Vec<String> {
        let known = self.roles.read();
        let here = known.get(&guild);
        let mut all: Vec<String> = roles.iter().map(RoleId::to_string).collect();
        let named = roles.iter().filter_map(|role| Some(&here?.get(role)?.name));
        all.extend(named.filter(|name| !name.bytes().all(|b| b.is_ascii_digit()) && *name != SERVER_OWNER).cloned());
        all
    }

    /// Returns the permissions that these roles grant in the whole guild, regardless of channel overwrites; empty if
    /// the guild is not cached.
    #[must_use]
    pub(crate) fn permissions(&self, guild: GuildId, roles: &[RoleId]) -> Permissions {
        let known = self.roles.read();
        let here = known.get(&guild);
        // The id of the `@everyone` role is the id of the guild.
        let held = roles.iter().copied().chain([RoleId::new(guild.get())]);
        let held = held.filter_map(|role| Some(here?.get(&role)?.permissions));
        held.fold(Permissions::empty(), |all, one| all | one)
    }

    /// Returns whether the roles of a guild are cached.
    #[must_use]
    pub(crate) fn is_loaded(&self, guild: GuildId) -> bool {
        self.roles.read().contains_key(&guild)
    }

    /// Forgets the guilds of a shard, which this process has no more.
    pub(crate) fn forget_shard(&self, shard: u32, count: u32) {
        self.roles.write().retain(|guild, _| shard_of(*guild, count) != shard);
    }

    fn is_current(&self, app: &DiscordApp, guild: GuildId) -> bool {
        let is_recent = || self.requested.lock().get(&guild).is_some_and(|at| at.elapsed() < MAX_AGE);
        self.is_loaded(guild)
            && (app.tables.shared.is_none() || app.has_shard(app.shards.of(Some(guild))) || is_recent())
    }

    /// Requests the roles of a guild that is not cached yet, or whose changes another node is told.
    ///
    /// # Errors
    /// The error of Discord, or of a request less than two seconds ago.
    pub(crate) async fn ensure_loaded(&self, app: &DiscordApp, guild: GuildId) -> Result<(), RestError> {
        if self.is_current(app, guild) {
            return Ok(());
        }
        let _one_at_a_time = self.load_locks.lock(guild).await;
        if self.is_current(app, guild) {
            return Ok(());
        }
        if let Some((at, error)) = self.failures.lock().get(&guild)
            && at.elapsed() < FAILURE_COOLDOWN
        {
            return Err(error.clone());
        }
        #[derive(Deserialize)]
        struct RoleRow {
            id: RoleId,
            #[serde(flatten)]
            role: RoleInfo,
        }
        let request = Request::get(Route::GuildRoles { guild_id: guild });
        let roles: Vec<RoleRow> = match app.rest.call(request).await {
            Ok(roles) => roles,
            Err(error) => {
                self.failures.lock().insert(guild, (Instant::now(), error.clone()));
                return Err(error);
            }
        };
        let roles = roles.into_iter().map(|told| (told.id, told.role)).collect();
        self.requested.lock().insert(guild, Instant::now());
        match app.tables.shared.is_none() || app.has_shard(app.shards.of(Some(guild))) {
            // What the gateway has sent since is newer.
            true => _ = self.roles.write().entry(guild).or_insert(roles),
            false => _ = self.roles.write().insert(guild, roles),
        }
        Ok(())
    }
}

impl RoleInfo {
    fn from_role(role: &Role) -> Self {
        Self { name: role.name.clone(), permissions: role.permissions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_known_by_its_id_and_by_its_name_unless_that_looks_like_an_id() {
        let guilds = RoleCache::default();
        let (guild, admin, sly) = (GuildId::new(1), RoleId::new(10), RoleId::new(11));
        assert_eq!(guilds.role_ids_and_names(guild, &[admin]), ["10"]);
        let named = |name: &str| RoleInfo { name: name.to_owned(), permissions: Permissions::empty() };
        guilds.roles.write().insert(guild, [(admin, named("admin")), (sly, named("10"))].into());
        assert_eq!(guilds.role_ids_and_names(guild, &[admin]), ["10", "admin"]);
        assert_eq!(guilds.role_ids_and_names(guild, &[sly]), ["11"]);
        guilds.roles.write().insert(guild, [(sly, named(SERVER_OWNER))].into());
        assert_eq!(guilds.role_ids_and_names(guild, &[sly]), ["11"]);
        guilds.roles.write().insert(guild, [(admin, named("admin")), (sly, named("10"))].into());
        // Roles of another guild have no names here.
        assert_eq!(guilds.role_ids_and_names(GuildId::new(2), &[admin]), ["10"]);
        assert!(guilds.role_ids_and_names(guild, &[]).is_empty());
    }

    #[test]
    fn what_roles_let_their_members_do_is_theirs_and_everybodys_in_that_server() {
        let guilds = RoleCache::default();
        let (guild, mods) = (GuildId::new(1), RoleId::new(10));
        let role = |permissions| RoleInfo { name: "x".to_owned(), permissions };
        assert!(guilds.permissions(guild, &[mods]).is_empty());
        let everybody = (RoleId::new(1), role(Permissions::SEND_MESSAGES));
        guilds.roles.write().insert(guild, [everybody, (mods, role(Permissions::MANAGE_CHANNELS))].into());
        assert_eq!(guilds.permissions(guild, &[]), Permissions::SEND_MESSAGES);
        assert_eq!(guilds.permissions(guild, &[mods]), Permissions::SEND_MESSAGES | Permissions::MANAGE_CHANNELS);
        assert!(guilds.permissions(GuildId::new(2), &[mods]).is_empty());
    }
}
