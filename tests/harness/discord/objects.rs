//! The objects of Discord: guilds, users, roles, channels.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::permissions as may;

/// A person, an application or a webhook.
#[derive(Debug, Clone)]
pub struct User {
    pub id: u64,
    pub name: String,
    pub bot: bool,
}

impl User {
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id.to_string(), "username": self.name, "global_name": null, "discriminator": "0", "avatar": null,
            "bot": self.bot, "public_flags": 0,
        })
    }
}

/// A role of a guild.
#[derive(Debug, Clone)]
pub struct Role {
    pub id: u64,
    pub name: String,
    pub permissions: u64,
    /// It belongs to an application.
    pub managed: bool,
}

impl Role {
    pub fn to_json(&self, position: usize) -> Value {
        json!({
            "id": self.id.to_string(), "name": self.name, "color": 0,
            "colors": {"primary_color": 0, "secondary_color": null, "tertiary_color": null}, "hoist": false,
            "icon": null, "unicode_emoji": null, "position": position, "permissions": self.permissions.to_string(),
            "managed": self.managed, "mentionable": false, "flags": 0,
        })
    }
}

/// A member of a guild.
#[derive(Debug, Clone)]
pub struct Member {
    pub user: u64,
    pub nick: Option<String>,
    pub roles: Vec<u64>,
    /// The role that only this member has, if there is one.
    pub own_role: Option<u64>,
}

/// A guild.
#[derive(Debug, Clone)]
pub struct Guild {
    pub id: u64,
    pub name: String,
    pub owner: u64,
    pub roles: Vec<Role>,
    pub members: Vec<Member>,
    pub joined_at: Timestamp,
    /// The application was removed.
    pub is_left: bool,
}

impl Guild {
    pub fn member(&self, user: u64) -> Option<&Member> {
        self.members.iter().find(|member| member.user == user)
    }

    pub fn member_mut(&mut self, user: u64) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.user == user)
    }

    /// Returns the permissions of a user in the whole guild.
    pub fn permissions(&self, user: u64) -> u64 {
        let Some(member) = self.member(user) else { return 0 };
        // "Guild owners have all permissions": https://discord.com/developers/docs/topics/permissions.
        if user == self.owner {
            return may::ALL;
        }
        // The id of the `@everyone` role is the id of the guild.
        let held = self.roles.iter().filter(|role| role.id == self.id || member.roles.contains(&role.id));
        held.fold(0, |all, role| all | role.permissions)
    }

    /// Returns the JSON of a REST response, without channels and members.
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id.to_string(), "name": self.name, "icon": null, "splash": null, "discovery_splash": null,
            "owner_id": self.owner.to_string(), "afk_channel_id": null, "afk_timeout": 300, "verification_level": 0,
            "default_message_notifications": 1, "explicit_content_filter": 0, "roles": self.roles_json(), "emojis": [],
            "features": [], "mfa_level": 0, "application_id": null, "system_channel_id": null, "system_channel_flags": 0,
            "rules_channel_id": null, "vanity_url_code": null, "description": null, "banner": null, "premium_tier": 0,
            "premium_subscription_count": 0, "preferred_locale": "en-US", "public_updates_channel_id": null,
            "nsfw_level": 0, "stickers": [], "premium_progress_bar_enabled": false, "safety_alerts_channel_id": null,
        })
    }

    pub fn roles_json(&self) -> Value {
        self.roles.iter().enumerate().map(|(position, role)| role.to_json(position)).collect()
    }

    /// Returns the JSON of a member, without the user and the permissions.
    pub fn member_json(&self, user: u64) -> Value {
        let Some(member) = self.member(user) else { return Value::Null };
        let roles: Vec<String> = member.roles.iter().map(u64::to_string).collect();
        json!({
            "roles": roles, "nick": member.nick, "avatar": null, "banner": null, "joined_at": self.joined_at.to_string(),
            "premium_since": null, "deaf": false, "mute": false, "flags": 0, "pending": false,
            "communication_disabled_until": null,
        })
    }
}

pub const TEXT_CHANNEL: u64 = 0;
pub const CATEGORY_CHANNEL: u64 = 4;
/// A public thread.
pub const THREAD_CHANNEL: u64 = 11;
pub const PRIVATE_THREAD_CHANNEL: u64 = 12;

/// A channel or category of a guild.
#[derive(Debug, Clone)]
pub struct Channel {
    pub id: u64,
    pub guild: u64,
    pub kind: u64,
    pub name: String,
    pub topic: Option<String>,
    pub parent: Option<u64>,
    pub position: u64,
    /// Permission overwrites: user or guild, allow, deny.
    pub overwrites: Vec<(u64, u64, u64)>,
    pub last_message: Option<u64>,
    /// The user of a direct channel, which belongs to no guild.
    pub direct_with: Option<u64>,
    /// Of a thread: nobody writes in it any more, until somebody does.
    pub archived: bool,
    /// Of a thread: when its archive status last changed.
    pub archived_at: Timestamp,
    /// Of a thread: only moderators may unarchive it.
    pub locked: bool,
    /// Of a private thread: the application was added to it.
    pub has_application: bool,
}

impl Channel {
    pub fn to_json(&self) -> Value {
        // "Example DM Channel" of https://docs.discord.com/developers/resources/channel.
        if let Some(user) = self.direct_with {
            return json!({
                "id": self.id.to_string(), "type": 1, "flags": 0, "recipients": [{"id": user.to_string()}],
                "last_message_id": self.last_message.map(|id| id.to_string()),
            });
        }
        let overwrites: Vec<Value> = self.overwrites.iter().map(overwrite_json).collect();
        let mut json = json!({
            "id": self.id.to_string(), "type": self.kind, "guild_id": self.guild.to_string(), "name": self.name,
            "position": self.position, "permission_overwrites": overwrites, "flags": 0, "nsfw": false,
            "parent_id": self.parent.map(|id| id.to_string()),
        });
        // "Example Thread Channel" of https://discord.com/developers/docs/resources/channel has neither overwrites nor
        // a position.
        if self.is_thread() {
            return json!({
                "id": self.id.to_string(), "type": self.kind, "guild_id": self.guild.to_string(), "name": self.name,
                "parent_id": self.parent.map(|id| id.to_string()), "owner_id": "1", "flags": 0, "message_count": 1,
                "member_count": 1, "total_message_sent": 1, "rate_limit_per_user": 0,
                "last_message_id": self.last_message.map(|id| id.to_string()),
                "thread_metadata": {
                    "archived": self.archived, "auto_archive_duration": 1440, "archive_timestamp": self.archived_at.to_string(),
                    "locked": self.locked,
                },
            });
        }
        if self.kind == TEXT_CHANNEL {
            json["topic"] = self.topic.clone().into();
            json["rate_limit_per_user"] = 0.into();
            json["last_message_id"] = self.last_message.map(|id| id.to_string()).into();
        }
        json
    }

    /// Returns whether it is a thread.
    pub fn is_thread(&self) -> bool {
        matches!(self.kind, THREAD_CHANNEL | PRIVATE_THREAD_CHANNEL)
    }

    /// Returns the JSON of interactions.
    pub fn to_partial_json(&self, permissions: u64) -> Value {
        if self.direct_with.is_some() {
            return json!({"id": self.id.to_string(), "type": 1, "flags": 0});
        }
        let mut json = self.to_json();
        json["permissions"] = permissions.to_string().into();
        json
    }

    /// Returns the permissions in this channel of a user who has `base` in the guild.
    pub fn permissions(&self, base: u64, user: u64) -> u64 {
        let own = self.overwrites.iter().filter(|(of, ..)| *of == self.guild || *of == user);
        own.fold(base, |base, (_, allow, deny)| may::apply_overwrite(base, *allow, *deny))
    }
}

fn overwrite_json((of, allow, deny): &(u64, u64, u64)) -> Value {
    json!({"id": of.to_string(), "type": 1, "allow": allow.to_string(), "deny": deny.to_string()})
}
