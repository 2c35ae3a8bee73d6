//! The handle of a guild, by which a test builds it.

use std::sync::Arc;

use jiff::Timestamp;

use super::channel::ChannelHandle;
use super::objects::{CATEGORY_CHANNEL, Guild, Member, PRIVATE_THREAD_CHANNEL, Role, TEXT_CHANNEL, THREAD_CHANNEL};
use super::permissions as may;
use super::state::Shared;
use super::user::UserHandle;
use crate::wait::{DEADLINE, wait_until};

/// A guild that the application was invited to. Clones are the same guild.
#[derive(Debug, Clone)]
pub struct GuildHandle {
    pub(super) shared: Arc<Shared>,
    pub id: u64,
}

impl GuildHandle {
    pub(super) fn new(shared: &Arc<Shared>, name: &str) -> Self {
        let id = shared.change(|state| {
            let (id, owner, own) = (state.snowflakes.next(), state.add_user("owner", false), state.snowflakes.next());
            let role = |id, name: &str, permissions, managed| Role { id, name: name.into(), permissions, managed };
            let member = |user, roles| Member { user, nick: None, roles, own_role: None };
            state.guilds.push(Guild {
                id,
                name: name.to_owned(),
                owner,
                roles: vec![
                    role(id, "@everyone", may::EVERYONE_DEFAULT, false),
                    role(own, "Chorus", may::APPLICATION_DEFAULT, true),
                ],
                members: vec![member(owner, vec![]), member(state.application_id, vec![own])],
                joined_at: Timestamp::now(),
                is_left: false,
            });
            state.dispatch_guild(id);
            id
        });
        Self { shared: shared.clone(), id }
    }

    /// Adds a member with these roles, which are created if necessary, and these permissions in addition to those of
    /// `@everyone`, by a role that only they have.
    pub fn add_member(&self, name: &str, roles: &[&str], permissions: u64) -> UserHandle {
        let roles = roles.iter().map(|name| self.find_or_create_role(name)).collect();
        let user = self.shared.change(|state| {
            let user = state.add_user(name, false);
            if let Some(guild) = state.guild_mut(self.id) {
                guild.members.push(Member { user, nick: None, roles, own_role: None });
            }
            state.grant_permissions(self.id, user, permissions);
            user
        });
        UserHandle { shared: self.shared.clone(), id: user }
    }

    /// Gives a member these roles instead of those that they have. Applications without the intent for members are not
    /// told.
    pub fn set_roles(&self, who: &UserHandle, roles: &[&str]) {
        let roles = roles.iter().map(|name| self.find_or_create_role(name)).collect();
        self.shared.change(|state| {
            if let Some(member) = state.guild_mut(self.id).and_then(|guild| guild.member_mut(who.id)) {
                member.roles = roles;
            }
        });
    }

    /// Returns the owner.
    ///
    /// # Panics
    /// If the guild does not exist any more.
    #[must_use]
    pub fn owner(&self) -> UserHandle {
        let id = self.shared.state().guild(self.id).expect("the server").owner;
        UserHandle { shared: self.shared.clone(), id }
    }

    /// Adds another application.
    pub fn add_bot(&self, name: &str) -> UserHandle {
        let person = self.add_member(name, &[], 0);
        self.shared.change(|state| {
            if let Some(user) = state.users.get_mut(&person.id) {
                user.bot = true;
            }
        });
        person
    }

    /// Returns the id of a role, which is created if necessary.
    ///
    /// # Panics
    /// If the guild does not exist any more.
    pub fn find_or_create_role(&self, name: &str) -> u64 {
        self.shared.change(|state| {
            let id = state.snowflakes.next();
            let guild = state.guild_mut(self.id).expect("the server");
            if let Some(role) = guild.roles.iter().find(|role| role.name == name) {
                return role.id;
            }
            let role = Role { id, name: name.to_owned(), permissions: 0, managed: false };
            guild.roles.push(role.clone());
            let told = serde_json::json!({"guild_id": self.id.to_string(), "role": role.to_json(1)});
            state.dispatch("GUILD_ROLE_CREATE", super::gateway::session::GUILDS, &told);
            id
        })
    }

    /// Creates a text channel, as a person would.
    pub fn create_channel(&self, name: &str) -> ChannelHandle {
        let id = self.shared.change(|state| state.add_channel(self.id, TEXT_CHANNEL, name, None, None));
        ChannelHandle { shared: self.shared.clone(), id }
    }

    /// Creates a thread below a channel, as a person would.
    pub fn create_thread(&self, below: &ChannelHandle, name: &str) -> ChannelHandle {
        let id = self.shared.change(|state| state.add_channel(self.id, THREAD_CHANNEL, name, None, Some(below.id)));
        ChannelHandle { shared: self.shared.clone(), id }
    }

    /// Creates a private thread below a channel, as a person would. The application is not in it.
    pub fn create_private_thread(&self, below: &ChannelHandle, name: &str) -> ChannelHandle {
        let id =
            self.shared.change(|state| state.add_channel(self.id, PRIVATE_THREAD_CHANNEL, name, None, Some(below.id)));
        ChannelHandle { shared: self.shared.clone(), id }
    }

    /// Returns the threads below a channel, archived ones as well.
    #[must_use]
    pub fn threads(&self, below: &ChannelHandle) -> Vec<ChannelHandle> {
        let state = self.shared.state();
        let threads = state.channels.values().filter(|channel| channel.is_thread() && channel.parent == Some(below.id));
        threads.map(|thread| ChannelHandle { shared: self.shared.clone(), id: thread.id }).collect()
    }

    /// Creates a category, as a person would.
    pub fn create_category(&self, name: &str) -> u64 {
        self.shared.change(|state| state.add_channel(self.id, CATEGORY_CHANNEL, name, None, None))
    }

    /// Creates a text channel in a category, as a person would.
    pub fn create_channel_in(&self, name: &str, category: u64) {
        self.shared.change(|state| _ = state.add_channel(self.id, TEXT_CHANNEL, name, None, Some(category)));
    }

    /// Returns ids and names of the categories.
    #[must_use]
    pub fn categories(&self) -> Vec<(u64, String)> {
        let state = self.shared.state();
        let channels =
            state.channels.values().filter(|channel| channel.guild == self.id && channel.kind == CATEGORY_CHANNEL);
        channels.map(|channel| (channel.id, channel.name.clone())).collect()
    }

    /// Waits for a text channel of this name.
    ///
    /// # Panics
    /// If there is none in time.
    #[must_use]
    pub fn wait_for_channel(&self, name: &str) -> ChannelHandle {
        wait_until(name, DEADLINE, || self.text_channels().into_iter().find(|room| room.name() == name))
    }

    /// Returns the text channels.
    #[must_use]
    pub fn text_channels(&self) -> Vec<ChannelHandle> {
        let state = self.shared.state();
        let channels =
            state.channels.values().filter(|channel| channel.guild == self.id && channel.kind == TEXT_CHANNEL);
        channels.map(|channel| ChannelHandle { shared: self.shared.clone(), id: channel.id }).collect()
    }

    /// Sets the application's permissions in the whole guild.
    pub fn set_application_permissions(&self, permissions: u64) {
        self.shared.change(|state| {
            let guild = state.guild_mut(self.id).expect("the server");
            for role in guild.roles.iter_mut().filter(|role| role.managed || role.id == self.id) {
                role.permissions = permissions;
            }
        });
    }

    /// Removes the application from the guild.
    pub fn remove_application(&self) {
        self.shared.change(|state| {
            if let Some(guild) = state.guild_mut(self.id) {
                guild.is_left = true;
            }
            let told = serde_json::json!({"id": self.id.to_string()});
            state.dispatch("GUILD_DELETE", super::gateway::session::GUILDS, &told);
        });
    }

    /// Starts an outage of Discord: the guild is unavailable for a while.
    pub fn start_outage(&self) {
        let told = serde_json::json!({"id": self.id.to_string(), "unavailable": true});
        self.shared.change(|state| state.dispatch("GUILD_DELETE", super::gateway::session::GUILDS, &told));
    }

    /// Makes the guild available to the application again.
    pub fn make_available(&self) {
        self.shared.change(|state| {
            if let Some(guild) = state.guild_mut(self.id) {
                guild.is_left = false;
            }
            state.dispatch_guild(self.id);
        });
    }

    /// Returns the commands that are registered in this guild or globally.
    #[must_use]
    pub fn commands(&self) -> Vec<serde_json::Value> {
        let state = self.shared.state();
        [self.id, 0].iter().filter_map(|guild| state.commands.get(guild)).flatten().cloned().collect()
    }
}
