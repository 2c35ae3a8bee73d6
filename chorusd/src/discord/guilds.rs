//! The names that roles have in each server: permissions and approvers are configured by them.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serenity::http::{LightMethod, Request, Route};
use serenity::model::event::Event;
use serenity::model::guild::Role;
use serenity::model::id::{GuildId, RoleId};
use tokio::sync::Mutex;

use super::rest::{Rest, RestError};

type Names = HashMap<RoleId, String>;

/// Roles by server, in memory. Told by the gateway; asked for where that has not told them, as after a connection that was taken up
/// again.
#[derive(Debug, Default)]
pub struct Guilds {
    known: RwLock<HashMap<GuildId, Names>>,
    /// However many want to know, one asks.
    asking: Mutex<()>,
}

impl Guilds {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<GuildId, Names>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<GuildId, Names>> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes from an event what it says of roles.
    pub fn hear(&self, event: &Event) {
        match event {
            Event::GuildCreate(event) => {
                let names = event.guild.roles.values().map(|role| (role.id, role.name.clone())).collect();
                self.write().insert(event.guild.id, names);
            }
            Event::GuildDelete(event) => drop(self.write().remove(&event.guild.id)),
            Event::GuildRoleCreate(event) => self.put(&event.role),
            Event::GuildRoleUpdate(event) => self.put(&event.role),
            Event::GuildRoleDelete(event) => {
                if let Some(names) = self.write().get_mut(&event.guild_id) {
                    names.remove(&event.role_id);
                }
            }
            _ => {}
        }
    }

    /// One role of a server whose others are known.
    fn put(&self, role: &Role) {
        if let Some(names) = self.write().get_mut(&role.guild_id) {
            names.insert(role.id, role.name.clone());
        }
    }

    /// The ids of these roles and the names of those that are known. A name that looks like an id is left out: whoever may rename roles
    /// must not be able to pass for another role.
    #[must_use]
    pub fn ids_and_names(&self, guild: GuildId, roles: &[RoleId]) -> Vec<String> {
        let known = self.read();
        let names = known.get(&guild);
        let mut all: Vec<String> = roles.iter().map(RoleId::to_string).collect();
        let named = roles.iter().filter_map(|role| names?.get(role));
        all.extend(named.filter(|name| !name.bytes().all(|b| b.is_ascii_digit())).cloned());
        all
    }

    fn knows(&self, guild: GuildId) -> bool {
        self.read().contains_key(&guild)
    }

    /// Asks for the roles of a server that are not known yet.
    ///
    /// # Errors
    /// What Discord says.
    pub async fn learn(&self, rest: &Rest, guild: GuildId) -> Result<(), RestError> {
        if self.knows(guild) {
            return Ok(());
        }
        let _one_at_a_time = self.asking.lock().await;
        if self.knows(guild) {
            return Ok(());
        }
        #[derive(serde::Deserialize)]
        struct Named {
            id: RoleId,
            name: String,
        }
        let request = Request::new(Route::GuildRoles { guild_id: guild }, LightMethod::Get);
        let roles: Vec<Named> = rest.call(request).await?;
        // What the gateway told meanwhile is newer.
        self.write().entry(guild).or_insert_with(|| roles.into_iter().map(|role| (role.id, role.name)).collect());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_known_by_its_id_and_by_its_name_unless_that_looks_like_an_id() {
        let guilds = Guilds::default();
        let (guild, admin, sly) = (GuildId::new(1), RoleId::new(10), RoleId::new(11));
        assert_eq!(guilds.ids_and_names(guild, &[admin]), ["10"]);
        guilds.write().insert(guild, [(admin, "admin".to_owned()), (sly, "10".to_owned())].into());
        assert_eq!(guilds.ids_and_names(guild, &[admin]), ["10", "admin"]);
        assert_eq!(guilds.ids_and_names(guild, &[sly]), ["11"]);
        // Of another server's roles nothing is known by name.
        assert_eq!(guilds.ids_and_names(GuildId::new(2), &[admin]), ["10"]);
        assert!(guilds.ids_and_names(guild, &[]).is_empty());
    }
}
