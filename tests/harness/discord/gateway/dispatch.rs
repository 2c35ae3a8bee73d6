//! Dispatches events to all sessions.

use serde_json::{Value, json};

use super::session::{DIRECT_MESSAGES, GUILD_MESSAGES, GUILDS, MESSAGE_CONTENT, Session};
use crate::discord::messages::Message;
use crate::discord::permissions::VIEW_CHANNEL;
use crate::discord::state::State;

impl Session {
    /// Returns whether events of a guild come to this shard; those of none come to the first.
    pub fn receives(&self, guild: Option<u64>) -> bool {
        let (shard, count) = self.shard;
        guild.map_or(0, |guild| (guild >> 22) % count) == shard
    }

    pub fn dispatch(&mut self, kind: &str, data: &Value) {
        self.seq += 1;
        let text = json!({"op": 0, "t": kind, "s": self.seq, "d": data}).to_string();
        self.log.push((self.seq, text));
    }
}

impl State {
    /// Dispatches an event to the sessions with any of these intents; 0 means all sessions.
    pub fn dispatch(&mut self, kind: &str, intents: u64, data: &Value) {
        let guild = if kind.starts_with("GUILD_") && data.get("guild_id").is_none() { "id" } else { "guild_id" };
        let guild = data[guild].as_str().and_then(|id| id.parse().ok());
        for session in self.sessions.values_mut().filter(|session| session.receives(guild)) {
            if intents == 0 || session.intents & intents != 0 {
                session.dispatch(kind, data);
            }
        }
    }

    /// Dispatches an event about a channel, if the application sees it.
    pub fn dispatch_channel(&mut self, kind: &str, channel: u64) {
        let Some(json) = self.channels.get(&channel).map(super::super::objects::Channel::to_json) else { return };
        if self.permissions(channel, self.application_id) & VIEW_CHANNEL != 0 {
            self.dispatch(kind, GUILDS, &json);
        }
    }

    /// Dispatches an event about a message; without its content for sessions whose intents do not include it.
    pub fn dispatch_message(&mut self, kind: &str, message: &Message) {
        let Some(channel) = self.channels.get(&message.channel) else { return };
        let direct = channel.direct_with.is_some();
        let left = self.guild(channel.guild).is_some_and(|guild| guild.is_left);
        if left
            || message.ephemeral_for.is_some()
            || self.permissions(message.channel, self.application_id) & VIEW_CHANNEL == 0
        {
            return;
        }
        let whole = self.message_json(message, true);
        let mut bare = whole.clone();
        bare["content"] = "".into();
        for list in ["attachments", "embeds", "components"] {
            bare[list] = json!([]);
        }
        let open = direct || message.author == self.application_id || message.mentions.contains(&self.application_id);
        let due = if direct { DIRECT_MESSAGES } else { GUILD_MESSAGES };
        let guild = (!direct).then_some(channel.guild);
        for session in
            self.sessions.values_mut().filter(|session| session.receives(guild) && session.intents & due != 0)
        {
            let told = if open || session.intents & MESSAGE_CONTENT != 0 { &whole } else { &bare };
            session.dispatch(kind, told);
        }
    }

    /// Returns a message with its author and the referenced message; if `told`, in the form of the gateway, with guild
    /// and member.
    pub fn message_json(&self, message: &Message, told: bool) -> Value {
        let mut json = message.to_json(&self.rest_url);
        json["author"] = self.users.get(&message.author).map_or(Value::Null, super::super::objects::User::to_json);
        let named = message.mentions.iter().filter_map(|id| self.users.get(id));
        json["mentions"] = named.map(super::super::objects::User::to_json).collect();
        if message.webhook.is_some_and(|id| id == self.application_id) {
            json["application_id"] = self.application_id.to_string().into();
        }
        let guild = self.channels.get(&message.channel).and_then(|channel| self.guild(channel.guild));
        if let Some(id) = message.reply_to {
            json["message_reference"] = json!({
                "type": 0, "message_id": id.to_string(), "channel_id": message.channel.to_string(),
                "guild_id": guild.map(|guild| guild.id.to_string()),
            });
            let original = self.messages.get(&id).map(|original| Message { reply_to: None, ..original.clone() });
            json["referenced_message"] = original.map_or(Value::Null, |original| self.message_json(&original, false));
        }
        if let (true, Some(guild)) = (told, guild) {
            json["guild_id"] = guild.id.to_string().into();
            let member = guild.member_json(message.author);
            if !member.is_null() && message.webhook.is_none() {
                json["member"] = member;
            }
        }
        json
    }
}
