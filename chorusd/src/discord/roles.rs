//! What roles are called in each server, and what they let their members do there: permissions and approvers are configured by names.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use serde::Deserialize;
use serenity::http::{LightMethod, Request, Route};
use serenity::model::Permissions;
use serenity::model::event::Event;
use serenity::model::guild::Role;
use serenity::model::id::{GuildId, RoleId};
use tokio::time::Instant;

use super::keyed_mutex::KeyedMutex;
use super::rest::{RestClient, RestError};
use crate::requester::SERVER_OWNER;

/// For so long after Discord did not say which roles there are nobody asks it again.
const FAILURE_COOLDOWN: Duration = Duration::from_secs(2);

/// What is known of a role.
#[derive(Debug, Clone, Deserialize)]
struct RoleInfo {
    name: String,
    permissions: Permissions,
}

type GuildRoles = HashMap<RoleId, RoleInfo>;

/// Roles by server, in memory. Told by the gateway; asked for where that has not told them, as after a connection that was taken up
/// again.
#[derive(Debug, Default)]
pub struct RoleCache {
    roles: RwLock<HashMap<GuildId, GuildRoles>>,
    /// However many want to know of a server, one asks; when that failed last, and how.
    load_locks: KeyedMutex<Option<(Instant, RestError)>>,
}

impl RoleCache {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<GuildId, GuildRoles>> {
        self.roles.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<GuildId, GuildRoles>> {
        self.roles.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes from an event what it says of roles.
    pub fn apply(&self, event: &Event) {
        match event {
            Event::GuildCreate(event) => {
                let roles = event.guild.roles.values().map(|role| (role.id, RoleInfo::from_role(role))).collect();
                self.write().insert(event.guild.id, roles);
            }
            Event::GuildDelete(event) => drop(self.write().remove(&event.guild.id)),
            Event::GuildRoleCreate(event) => self.insert_role(&event.role),
            Event::GuildRoleUpdate(event) => self.insert_role(&event.role),
            Event::GuildRoleDelete(event) => {
                if let Some(roles) = self.write().get_mut(&event.guild_id) {
                    roles.remove(&event.role_id);
                }
            }
            _ => {}
        }
    }

    /// One role of a server whose others are known.
    fn insert_role(&self, role: &Role) {
        if let Some(roles) = self.write().get_mut(&role.guild_id) {
            roles.insert(role.id, RoleInfo::from_role(role));
        }
    }

    /// The ids of these roles and the names of those that are known. A name that looks like an id, or like the owner's, is left out: whoever may rename roles
    /// must not be able to pass for another role.
    #[must_use]
    pub fn role_ids_and_names(&self, guild: GuildId, roles: &[RoleId]) -> Vec<String> {
        let known = self.read();
        let here = known.get(&guild);
        let mut all: Vec<String> = roles.iter().map(RoleId::to_string).collect();
        let named = roles.iter().filter_map(|role| Some(&here?.get(role)?.name));
        all.extend(named.filter(|name| !name.bytes().all(|b| b.is_ascii_digit()) && *name != SERVER_OWNER).cloned());
        all
    }

    /// What members with these roles may in the whole server, whatever a channel grants or denies; nothing as far as it is not known.
    #[must_use]
    pub fn permissions(&self, guild: GuildId, roles: &[RoleId]) -> Permissions {
        let known = self.read();
        let here = known.get(&guild);
        // The role of everybody has the server's number.
        let held = roles.iter().copied().chain([RoleId::new(guild.get())]);
        let held = held.filter_map(|role| Some(here?.get(&role)?.permissions));
        held.fold(Permissions::empty(), |all, one| all | one)
    }

    /// Whether the roles of a server are known.
    #[must_use]
    pub fn is_loaded(&self, guild: GuildId) -> bool {
        self.read().contains_key(&guild)
    }

    /// Asks for the roles of a server that are not known yet.
    ///
    /// # Errors
    /// What Discord says, or said a moment ago.
    pub async fn ensure_loaded(&self, rest: &RestClient, guild: GuildId) -> Result<(), RestError> {
        if self.is_loaded(guild) {
            return Ok(());
        }
        let asking = self.load_locks.get(guild);
        let mut failed = asking.lock().await;
        if self.is_loaded(guild) {
            return Ok(());
        }
        if let Some((at, error)) = &*failed
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
        let request = Request::new(Route::GuildRoles { guild_id: guild }, LightMethod::Get);
        let roles: Vec<RoleRow> = match rest.call(request).await {
            Ok(roles) => roles,
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                return Err(error);
            }
        };
        // What the gateway told meanwhile is newer.
        self.write().entry(guild).or_insert_with(|| roles.into_iter().map(|told| (told.id, told.role)).collect());
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
        guilds.write().insert(guild, [(admin, named("admin")), (sly, named("10"))].into());
        assert_eq!(guilds.role_ids_and_names(guild, &[admin]), ["10", "admin"]);
        assert_eq!(guilds.role_ids_and_names(guild, &[sly]), ["11"]);
        guilds.write().insert(guild, [(sly, named(SERVER_OWNER))].into());
        assert_eq!(guilds.role_ids_and_names(guild, &[sly]), ["11"]);
        guilds.write().insert(guild, [(admin, named("admin")), (sly, named("10"))].into());
        // Of another server's roles nothing is known by name.
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
        guilds.write().insert(guild, [everybody, (mods, role(Permissions::MANAGE_CHANNELS))].into());
        assert_eq!(guilds.permissions(guild, &[]), Permissions::SEND_MESSAGES);
        assert_eq!(guilds.permissions(guild, &[mods]), Permissions::SEND_MESSAGES | Permissions::MANAGE_CHANNELS);
        assert!(guilds.permissions(GuildId::new(2), &[mods]).is_empty());
    }
}
