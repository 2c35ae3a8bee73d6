//! The handle of a channel: posts messages as users, and reads what they see.

use std::sync::Arc;

use super::gateway::session::GUILD_MESSAGES;
use super::messages::{File, Message, mentioned_users};
use super::objects::{Channel, TEXT_CHANNEL, User};
use super::permissions::VIEW_CHANNEL;
use super::state::Shared;
use super::user::UserHandle;
use super::visible_message::VisibleMessage;
use crate::wait::{DEADLINE, wait_until};

/// A text channel. Clones are the same channel.
#[derive(Debug, Clone)]
pub struct ChannelHandle {
    pub(super) shared: Arc<Shared>,
    pub id: u64,
}

impl ChannelHandle {
    pub(super) fn direct(shared: &Arc<Shared>, person: &UserHandle) -> Self {
        let id = shared.change(|state| {
            let known = state
                .channels
                .values()
                .find(|channel| channel.direct_with == Some(person.id))
                .map(|channel| channel.id);
            known.unwrap_or_else(|| {
                let id = state.snowflakes.next();
                let channel = Channel {
                    id,
                    guild: 0,
                    kind: TEXT_CHANNEL,
                    name: String::new(),
                    topic: None,
                    parent: None,
                    position: 0,
                    overwrites: Vec::new(),
                    last_message: None,
                    direct_with: Some(person.id),
                    archived: false,
                    archived_at: jiff::Timestamp::now(),
                    locked: false,
                    has_application: false,
                };
                state.channels.insert(id, channel);
                id
            })
        });
        Self { shared: shared.clone(), id }
    }

    /// Posts a message as `who`. Returns its id.
    pub fn say(&self, who: &UserHandle, text: &str) -> u64 {
        self.add_message(who, text, |_| {})
    }

    /// Posts a message that the next new session receives between IDENTIFY and READY. Discord's documentation promises
    /// no order of the two: "Ready: dispatched when a client has completed the initial handshake", and libraries buffer
    /// events that arrive before it (Rapptz/discord.py#1375).
    pub fn say_before_ready(&self, who: &UserHandle, text: &str) -> u64 {
        let id = self.say(who, text);
        self.shared.change(|state| {
            let told = state.messages.get(&id).map(|message| state.message_json(message, true));
            state.before_ready.extend(told);
        });
        id
    }

    /// Posts a message with files: name, content type, bytes.
    pub fn say_with_files(&self, who: &UserHandle, text: &str, files: &[(&str, &str, &[u8])]) -> u64 {
        let new = self.shared.change(|state| {
            let file = |(name, kind, bytes): &(&str, &str, &[u8])| File {
                id: state.snowflakes.next(),
                name: (*name).to_owned(),
                kind: Some((*kind).to_owned()).filter(|kind| !kind.is_empty()),
                bytes: bytes.to_vec(),
            };
            files.iter().map(file).collect()
        });
        self.add_message(who, text, |message| message.files = new)
    }

    /// Replies to a message.
    pub fn reply(&self, who: &UserHandle, to: u64, text: &str) -> u64 {
        self.add_message(who, text, |message| (message.reply_to, message.kind) = (Some(to), 19))
    }

    /// Posts a system message of Discord: 7 says that somebody joined, 6 that a message was pinned, 8 that the guild
    /// was boosted.
    pub fn post_system_message(&self, who: &UserHandle, kind: u64) -> u64 {
        self.add_message(who, "", |message| message.kind = kind)
    }

    /// Posts a message by a webhook.
    pub fn post_by_webhook(&self, name: &str, text: &str) -> u64 {
        let id = self.shared.change(|state| {
            let id = state.snowflakes.next();
            // A webhook is no member and has no account; its id is its own.
            state.users.insert(id, User { id, name: name.to_owned(), bot: true });
            id
        });
        self.add_message(&UserHandle { shared: self.shared.clone(), id }, text, |message| message.webhook = Some(id))
    }

    fn add_message(&self, who: &UserHandle, text: &str, change: impl FnOnce(&mut Message)) -> u64 {
        self.shared.change(|state| {
            assert!(state.channels.contains_key(&self.id), "the channel is not there any more");
            let mut message = Message::new(state.snowflakes.next(), self.id, who.id, text);
            message.mentions = mentioned_users(text);
            change(&mut message);
            state.post_message(message)
        })
    }

    /// Edits a message as its author.
    pub fn edit_message(&self, id: u64, text: &str) {
        self.shared.change(|state| state.edit_message(id, |message| message.content = text.to_owned()));
    }

    /// Dispatches the MESSAGE_CREATE of a message once more.
    pub fn redeliver(&self, id: u64) {
        self.shared.change(|state| {
            let message = state.messages.get(&id).cloned();
            state.dispatch_message("MESSAGE_CREATE", &message.expect("the message"));
        });
    }

    /// Gives a message an embed of a type that no client knows. Dispatches no event.
    pub fn make_unparsable(&self, id: u64) {
        self.shared.change(|state| {
            state.messages.get_mut(&id).expect("the message").embeds = serde_json::json!([{"type": 99}]);
        });
    }

    /// Deletes a message.
    pub fn delete_message(&self, id: u64) {
        let there = self.shared.change(|state| state.delete_message(id));
        assert!(there, "the message is not there any more");
    }

    /// Deletes several messages at once.
    pub fn delete_messages(&self, ids: &[u64]) {
        self.shared.change(|state| {
            let Some(guild) = state.channels.get(&self.id).map(|channel| channel.guild) else { return };
            for id in ids {
                if let Some(message) = state.messages.remove(id) {
                    state.deleted.push(message);
                }
            }
            let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
            let told =
                serde_json::json!({"ids": ids, "channel_id": self.id.to_string(), "guild_id": guild.to_string()});
            state.dispatch("MESSAGE_DELETE_BULK", GUILD_MESSAGES, &told);
        });
    }

    /// Deletes the channel, as a person would.
    pub fn delete_channel(&self) {
        self.shared.change(|state| _ = state.remove_channel(self.id));
    }

    /// Archives the thread, as a person or the time would.
    pub fn archive(&self) {
        self.shared.change(|state| state.set_archived(self.id, true));
    }

    /// Unarchives the thread, as a person would.
    pub fn unarchive(&self) {
        self.shared.change(|state| state.set_archived(self.id, false));
    }

    /// Adds the application to the private thread.
    pub fn add_application(&self) {
        self.shared.change(|state| state.add_to_thread(self.id));
    }

    /// Locks the thread: only moderators may unarchive it from now on.
    pub fn lock(&self) {
        self.shared.change(|state| {
            if let Some(channel) = state.channels.get_mut(&self.id) {
                channel.locked = true;
            }
            state.dispatch_channel("THREAD_UPDATE", self.id);
        });
    }

    /// Returns whether the thread is archived.
    #[must_use]
    pub fn is_archived(&self) -> bool {
        self.shared.state().channels.get(&self.id).is_some_and(|channel| channel.archived)
    }

    /// Renames the channel, as a person would.
    pub fn rename(&self, name: &str) {
        self.shared.change(|state| {
            if let Some(channel) = state.channels.get_mut(&self.id) {
                channel.name = name.to_owned();
            }
            let is_thread = state.channels.get(&self.id).is_some_and(Channel::is_thread);
            let event = if is_thread { "THREAD_UPDATE" } else { "CHANNEL_UPDATE" };
            state.dispatch_channel(event, self.id);
        });
    }

    /// Denies the application these permissions in the channel.
    pub fn deny_application(&self, permissions: u64) {
        self.shared.change(|state| {
            // The application receives the change only as long as it sees the channel.
            let app = state.application_id;
            let was_seen = state.permissions(self.id, app) & VIEW_CHANNEL != 0;
            if let Some(channel) = state.channels.get_mut(&self.id) {
                channel.overwrites.retain(|(of, ..)| *of != app);
                channel.overwrites.push((app, 0, permissions));
            }
            state.dispatch_channel("CHANNEL_UPDATE", self.id);
            if !was_seen && state.permissions(self.id, app) & VIEW_CHANNEL != 0 {
                state.dispatch_thread_list(self.id);
            }
        });
    }

    /// Grants a user these permissions in the channel only.
    pub fn grant_to_user(&self, who: &UserHandle, permissions: u64) {
        self.shared.change(|state| {
            if let Some(channel) = state.channels.get_mut(&self.id) {
                channel.overwrites.push((who.id, permissions, 0));
            }
            state.dispatch_channel("CHANNEL_UPDATE", self.id);
        });
    }

    /// Denies a user these permissions in the channel only.
    pub fn deny_user(&self, who: &UserHandle, permissions: u64) {
        self.shared.change(|state| {
            if let Some(channel) = state.channels.get_mut(&self.id) {
                channel.overwrites.push((who.id, 0, permissions));
            }
            state.dispatch_channel("CHANNEL_UPDATE", self.id);
        });
    }

    /// Removes all denials for the application.
    pub fn clear_denials(&self) {
        self.deny_application(0);
    }

    #[must_use]
    pub fn exists(&self) -> bool {
        self.shared.state().channels.contains_key(&self.id)
    }

    #[must_use]
    pub fn name(&self) -> String {
        self.shared.state().channels.get(&self.id).map(|channel| channel.name.clone()).unwrap_or_default()
    }

    #[must_use]
    pub fn topic(&self) -> String {
        self.shared.state().channels.get(&self.id).and_then(|channel| channel.topic.clone()).unwrap_or_default()
    }

    /// The name of its category.
    #[must_use]
    pub fn category(&self) -> Option<String> {
        let state = self.shared.state();
        let parent = state.channels.get(&self.id)?.parent?;
        state.channels.get(&parent).map(|channel| channel.name.clone())
    }

    /// Returns the messages that everybody sees, the oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<VisibleMessage> {
        let state = self.shared.state();
        state.public_messages(self.id).map(|message| VisibleMessage::from_message(&state, message)).collect()
    }

    /// Returns the messages of the application among them.
    #[must_use]
    pub fn application_posts(&self) -> Vec<VisibleMessage> {
        self.messages().into_iter().filter(|message| message.is_own).collect()
    }

    /// Returns the messages that were deleted.
    #[must_use]
    pub fn deleted_messages(&self) -> Vec<VisibleMessage> {
        let state = self.shared.state();
        state
            .deleted
            .iter()
            .filter(|message| message.channel == self.id)
            .map(|message| VisibleMessage::from_message(&state, message))
            .collect()
    }

    /// Waits until `found` returns a value for the messages.
    ///
    /// # Panics
    /// If it does not in time; the panic message lists the messages.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, mut found: impl FnMut(&[VisibleMessage]) -> Option<T>) -> T {
        let end = std::time::Instant::now() + DEADLINE;
        wait_until(what, DEADLINE * 2, || {
            let messages = self.messages();
            let found = found(&messages);
            let said =
                || messages.iter().map(|m| format!("{}: {}", m.author, m.content)).collect::<Vec<_>>().join("\n");
            assert!(found.is_some() || std::time::Instant::now() < end, "no {what} among\n{}", said());
            found
        })
    }

    /// Waits for a message of the application that contains `text`.
    ///
    /// # Panics
    /// As [`ChannelHandle::wait_for`].
    #[track_caller]
    pub fn wait_for_post(&self, text: &str) -> VisibleMessage {
        let fits = |message: &&VisibleMessage| message.is_own && message.content.contains(text);
        self.wait_for(text, |messages| messages.iter().find(fits).cloned())
    }

    /// Waits for a message of the application with a button of this label.
    ///
    /// # Panics
    /// As [`ChannelHandle::wait_for`].
    #[track_caller]
    pub fn wait_for_post_with_button(&self, label: &str) -> VisibleMessage {
        let fits = |message: &&VisibleMessage| message.is_own && message.button(label).is_some();
        self.wait_for(label, |messages| messages.iter().find(fits).cloned())
    }
}
