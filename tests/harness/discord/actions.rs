//! Actions of people and of the application, with the events that they dispatch.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::gateway::session::{DIRECT_MESSAGES, GUILD_MESSAGES, GUILDS};
use super::messages::Message;
use super::objects::{Channel, Guild, Role, TEXT_CHANNEL, User};
use super::permissions::VIEW_CHANNEL;
use super::state::State;

impl State {
    /// Returns the data of a GUILD_CREATE. Of the members it has only the application, which is all that Discord sends
    /// without a request.
    pub fn guild_json(&self, guild: &Guild) -> Value {
        let seen = |channel: &&Channel| {
            if channel.is_thread() {
                return false;
            }
            let base = guild.permissions(self.application_id);
            channel.guild == guild.id && channel.permissions(base, self.application_id) & VIEW_CHANNEL != 0
        };
        let channels: Vec<Value> = self.channels.values().filter(seen).map(Channel::to_json).collect();
        let mut own = guild.member_json(self.application_id);
        own["user"] = self.users[&self.application_id].to_json();
        let mut json = guild.to_json();
        for (name, value) in [
            ("joined_at", guild.joined_at.to_string().into()),
            ("large", false.into()),
            ("unavailable", false.into()),
            ("member_count", guild.members.len().into()),
            ("members", json!([own])),
            ("channels", channels.into()),
        ] {
            json[name] = value;
        }
        json["threads"] = self.active_threads(guild.id);
        for name in ["presences", "voice_states", "stage_instances", "guild_scheduled_events"] {
            json[name] = json!([]);
        }
        json
    }

    /// Returns the active threads of a guild that the application sees.
    pub fn active_threads(&self, guild: u64) -> Value {
        self.active_threads_where(|thread| thread.guild == guild)
    }

    fn active_threads_where(&self, fits: impl Fn(&Channel) -> bool) -> Value {
        let threads =
            self.channels.values().filter(|channel| channel.is_thread() && !channel.archived && fits(channel));
        let seen = |thread: &&Channel| self.permissions(thread.id, self.application_id) & VIEW_CHANNEL != 0;
        threads.filter(seen).map(Channel::to_json).collect()
    }

    /// Dispatches the active threads below a channel that the application sees again. A channel without active threads is
    /// named as well: <https://docs.discord.com/developers/events/gateway-events#thread-list-sync>.
    pub fn dispatch_thread_list(&mut self, channel: u64) {
        let guild = self.channels.get(&channel).map_or(0, |channel| channel.guild);
        let members = self.channels.values().filter(|thread| thread.parent == Some(channel) && thread.has_application);
        let told = json!({
            "guild_id": guild.to_string(), "channel_ids": [channel.to_string()],
            "threads": self.active_threads_where(|thread| thread.parent == Some(channel)),
            "members": members.map(|thread| self.thread_member_json(thread.id)).collect::<Value>(),
        });
        self.dispatch("THREAD_LIST_SYNC", GUILDS, &told);
    }

    /// Adds the application to a private thread, which it sees from now on. It receives the thread with its membership:
    /// <https://docs.discord.com/developers/events/gateway-events#thread-create>.
    pub fn add_to_thread(&mut self, thread: u64) {
        if let Some(channel) = self.channels.get_mut(&thread) {
            channel.has_application = true;
            let (mut told, guild) = (channel.to_json(), channel.guild);
            let member = self.thread_member_json(thread);
            told["member"] = member.clone();
            self.dispatch("THREAD_CREATE", GUILDS, &told);
            let told = json!({
                "id": thread.to_string(), "guild_id": guild.to_string(), "member_count": 2, "added_members": [member],
            });
            self.dispatch("THREAD_MEMBERS_UPDATE", GUILDS, &told);
        }
    }

    fn thread_member_json(&self, thread: u64) -> Value {
        let (id, user) = (thread.to_string(), self.application_id.to_string());
        json!({"id": id, "user_id": user, "join_timestamp": "2026-01-01T00:00:00Z", "flags": 0})
    }

    /// Grants a member these permissions in a guild, in addition to those of their other roles, by a role that only
    /// they have.
    pub fn grant_permissions(&mut self, guild: u64, user: u64, permissions: u64) {
        let id = self.snowflakes.next();
        let Some(server) = self.guild_mut(guild) else { return };
        let Some(member) = server.member_mut(user) else { return };
        let (own, kind) = match member.own_role {
            Some(own) => (own, "GUILD_ROLE_UPDATE"),
            None if permissions == 0 => return,
            None => (id, "GUILD_ROLE_CREATE"),
        };
        if member.own_role.replace(own).is_none() {
            member.roles.push(own);
        }
        let role = Role { id: own, name: format!("of {user}"), permissions, managed: false };
        server.roles.retain(|role| role.id != own);
        server.roles.push(role.clone());
        let told = json!({"guild_id": guild.to_string(), "role": role.to_json(1)});
        self.dispatch(kind, GUILDS, &told);
    }

    pub fn add_user(&mut self, name: &str, bot: bool) -> u64 {
        let id = self.snowflakes.next();
        self.users.insert(id, User { id, name: name.to_owned(), bot });
        id
    }

    pub fn add_channel(
        &mut self,
        guild: u64,
        kind: u64,
        name: &str,
        topic: Option<String>,
        parent: Option<u64>,
    ) -> u64 {
        let id = self.snowflakes.next();
        let position = self.channels.values().filter(|channel| channel.guild == guild).count() as u64;
        let channel = Channel {
            id,
            guild,
            kind,
            name: if kind == TEXT_CHANNEL { normalize_channel_name(name) } else { name.to_owned() },
            topic,
            parent,
            position,
            overwrites: Vec::new(),
            last_message: None,
            direct_with: None,
            archived: false,
            archived_at: Timestamp::now(),
            locked: false,
            has_application: false,
        };
        let event = if channel.is_thread() { "THREAD_CREATE" } else { "CHANNEL_CREATE" };
        self.channels.insert(id, channel);
        self.dispatch_channel(event, id);
        id
    }

    /// Deletes a channel with its messages and threads.
    pub fn remove_channel(&mut self, id: u64) -> Option<Channel> {
        let channel = self.channels.get(&id)?;
        if channel.is_thread() {
            // Less than the channel: https://docs.discord.com/developers/events/gateway-events#thread-delete.
            let told = json!({
                "id": id.to_string(), "guild_id": channel.guild.to_string(), "type": channel.kind,
                "parent_id": channel.parent.map(|id| id.to_string()),
            });
            self.dispatch("THREAD_DELETE", GUILDS, &told);
        } else {
            self.dispatch_channel("CHANNEL_DELETE", id);
        }
        let removed = self.channels.remove(&id)?;
        self.channels.retain(|_, channel| !channel.is_thread() || channel.parent != Some(id));
        self.messages.retain(|_, message| message.channel != id);
        for channel in self.channels.values_mut().filter(|channel| channel.parent == Some(id)) {
            channel.parent = None;
        }
        Some(removed)
    }

    /// Adds a message to its channel.
    pub fn post_message(&mut self, message: Message) -> u64 {
        let id = message.id;
        // A message unarchives its thread.
        if self.channels.get(&message.channel).is_some_and(|channel| channel.archived) {
            self.set_archived(message.channel, false);
        }
        if let Some(channel) = self.channels.get_mut(&message.channel).filter(|_| message.ephemeral_for.is_none()) {
            channel.last_message = Some(id);
        }
        self.dispatch_message("MESSAGE_CREATE", &message);
        self.messages.insert(id, message);
        id
    }

    /// Archives or unarchives a thread.
    pub fn set_archived(&mut self, thread: u64, archived: bool) {
        if let Some(channel) = self.channels.get_mut(&thread).filter(|channel| channel.archived != archived) {
            (channel.archived, channel.archived_at) = (archived, Timestamp::now());
            self.dispatch_channel("THREAD_UPDATE", thread);
        }
    }

    /// Edits a message; the previous content is recorded.
    pub fn edit_message(&mut self, id: u64, edit: impl FnOnce(&mut Message)) {
        let Some(message) = self.messages.get_mut(&id) else { return };
        let before = message.content.clone();
        edit(message);
        message.previous_contents.push(before);
        message.edited = Some(Timestamp::now());
        let message = message.clone();
        self.dispatch_message("MESSAGE_UPDATE", &message);
    }

    /// Deletes a message.
    pub fn delete_message(&mut self, id: u64) -> bool {
        let Some(message) = self.messages.remove(&id) else { return false };
        let guild = self.channels.get(&message.channel).filter(|channel| channel.direct_with.is_none());
        let mut told = json!({"id": id.to_string(), "channel_id": message.channel.to_string()});
        if let Some(guild) = guild.map(|channel| channel.guild) {
            told["guild_id"] = guild.to_string().into();
        }
        let seen = self.permissions(message.channel, self.application_id) & VIEW_CHANNEL != 0;
        if message.ephemeral_for.is_none() && seen {
            let is_direct = self.channels.get(&message.channel).is_some_and(|channel| channel.direct_with.is_some());
            let due = if is_direct { DIRECT_MESSAGES } else { GUILD_MESSAGES };
            self.dispatch("MESSAGE_DELETE", due, &told);
        }
        self.deleted.push(message);
        true
    }

    /// Dispatches a GUILD_CREATE, as when the application is invited.
    pub fn dispatch_guild(&mut self, guild: u64) {
        if let Some(json) = self.guild(guild).map(|guild| self.guild_json(guild)) {
            self.dispatch("GUILD_CREATE", GUILDS, &json);
        }
    }
}

/// Returns the name that Discord gives a text channel: lower case, with hyphens for spaces.
#[must_use]
pub fn normalize_channel_name(name: &str) -> String {
    let kept = |c: &char| !"!\"#$%&'()*+,./:;<=>?@[\\]^`{|}~".contains(*c);
    let name: String = name.trim().to_lowercase().chars().filter(kept).collect();
    name.split_whitespace().collect::<Vec<_>>().join("-")
}
