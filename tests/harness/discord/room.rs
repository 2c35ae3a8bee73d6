//! A channel: what people say in it, and what they see.

use std::sync::Arc;

use super::gateway::session::GUILD_MESSAGES;
use super::messages::{File, Message, mentioned};
use super::person::Person;
use super::shown::Shown;
use super::state::Shared;
use super::world::{Channel, TEXT, User};
use crate::wait::{DEADLINE, wait_until};

/// A text channel. Copies are the same channel.
#[derive(Debug, Clone)]
pub struct Room {
    pub(super) shared: Arc<Shared>,
    pub id: u64,
}

impl Room {
    pub(super) fn direct(shared: &Arc<Shared>, person: &Person) -> Self {
        let id = shared.change(|state| {
            let known =
                state.channels.values().find(|channel| channel.with == Some(person.id)).map(|channel| channel.id);
            known.unwrap_or_else(|| {
                let id = state.flakes.next();
                let channel = Channel {
                    id,
                    guild: 0,
                    kind: TEXT,
                    name: String::new(),
                    topic: None,
                    parent: None,
                    position: 0,
                    overwrites: Vec::new(),
                    last_message: None,
                    with: Some(person.id),
                };
                state.channels.insert(id, channel);
                id
            })
        });
        Self { shared: shared.clone(), id }
    }

    /// Somebody says something; the number of the message.
    pub fn say(&self, who: &Person, text: &str) -> u64 {
        self.put(who, text, |_| {})
    }

    /// Somebody says something that the next new session tells between IDENTIFY and READY. Discord's documentation promises no order of the two:
    /// "Ready: dispatched when a client has completed the initial handshake", and libraries hold events that come sooner
    /// (Rapptz/discord.py#1375).
    pub fn say_before_ready(&self, who: &Person, text: &str) -> u64 {
        let id = self.say(who, text);
        self.shared.change(|state| {
            let told = state.messages.get(&id).map(|message| state.message_json(message, true));
            state.before_ready.extend(told);
        });
        id
    }

    /// Somebody says something with files: name, content type, bytes.
    pub fn say_with(&self, who: &Person, text: &str, files: &[(&str, &str, &[u8])]) -> u64 {
        let new = self.shared.change(|state| {
            let file = |(name, kind, bytes): &(&str, &str, &[u8])| File {
                id: state.flakes.next(),
                name: (*name).to_owned(),
                kind: Some((*kind).to_owned()).filter(|kind| !kind.is_empty()),
                bytes: bytes.to_vec(),
            };
            files.iter().map(file).collect()
        });
        self.put(who, text, |message| message.files = new)
    }

    /// Somebody answers a message.
    pub fn reply(&self, who: &Person, to: u64, text: &str) -> u64 {
        self.put(who, text, |message| (message.reply_to, message.kind) = (Some(to), 19))
    }

    /// What Discord itself writes: 7 says that somebody came, 6 that a message was pinned, 8 that the server was boosted.
    pub fn system(&self, who: &Person, kind: u64) -> u64 {
        self.put(who, "", |message| message.kind = kind)
    }

    /// Something from outside, by a webhook.
    pub fn webhook(&self, name: &str, text: &str) -> u64 {
        let id = self.shared.change(|state| {
            let id = state.flakes.next();
            // It is no member, and has no account: its number is its own.
            state.users.insert(id, User { id, name: name.to_owned(), bot: true });
            id
        });
        self.put(&Person { shared: self.shared.clone(), id }, text, |message| message.webhook = Some(id))
    }

    fn put(&self, who: &Person, text: &str, change: impl FnOnce(&mut Message)) -> u64 {
        self.shared.change(|state| {
            assert!(state.channels.contains_key(&self.id), "the channel is not there any more");
            let mut message = Message::new(state.flakes.next(), self.id, who.id, text);
            message.mentions = mentioned(text);
            change(&mut message);
            state.post(message)
        })
    }

    /// A message is edited by who wrote it.
    pub fn edit(&self, id: u64, text: &str) {
        self.shared.change(|state| state.edit(id, |message| message.content = text.to_owned()));
    }

    /// The application is told of a message once more.
    pub fn again(&self, id: u64) {
        self.shared.change(|state| {
            let message = state.messages.get(&id).cloned();
            state.dispatch_message("MESSAGE_CREATE", &message.expect("the message"));
        });
    }

    /// A message has something below it that no client knows yet. Nobody is told.
    pub fn spoil(&self, id: u64) {
        self.shared.change(|state| {
            state.messages.get_mut(&id).expect("the message").embeds = serde_json::json!([{"type": 99}]);
        });
    }

    /// A message is deleted.
    pub fn delete(&self, id: u64) {
        let there = self.shared.change(|state| state.delete(id));
        assert!(there, "the message is not there any more");
    }

    /// Messages are deleted at once.
    pub fn delete_many(&self, ids: &[u64]) {
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

    /// The channel is deleted by hand.
    pub fn remove(&self) {
        self.shared.change(|state| _ = state.remove_channel(self.id));
    }

    /// The channel gets another name by hand.
    pub fn rename(&self, name: &str) {
        self.shared.change(|state| {
            if let Some(channel) = state.channels.get_mut(&self.id) {
                channel.name = name.to_owned();
            }
            state.dispatch_channel("CHANNEL_UPDATE", self.id);
        });
    }

    /// The application may not do this here any more.
    pub fn deny(&self, permissions: u64) {
        self.shared.change(|state| {
            // It is told of the change as long as it sees the channel.
            let app = state.app;
            if let Some(channel) = state.channels.get_mut(&self.id) {
                channel.overwrites.retain(|(of, ..)| *of != app);
                channel.overwrites.push((app, 0, permissions));
            }
            state.dispatch_channel("CHANNEL_UPDATE", self.id);
        });
    }

    /// Somebody may this here, and nowhere else.
    pub fn grant(&self, who: &Person, permissions: u64) {
        self.shared.change(|state| {
            if let Some(channel) = state.channels.get_mut(&self.id) {
                channel.overwrites.push((who.id, permissions, 0));
            }
            state.dispatch_channel("CHANNEL_UPDATE", self.id);
        });
    }

    /// What the application was denied here it may again.
    pub fn allow(&self) {
        self.deny(0);
    }

    #[must_use]
    pub fn is_there(&self) -> bool {
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

    /// What everybody sees, oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<Shown> {
        let state = self.shared.state();
        state.messages_of(self.id).map(|message| Shown::of(&state, message)).collect()
    }

    /// What the application wrote of it.
    #[must_use]
    pub fn posts(&self) -> Vec<Shown> {
        self.messages().into_iter().filter(|message| message.own).collect()
    }

    /// What was there and was deleted.
    #[must_use]
    pub fn deleted(&self) -> Vec<Shown> {
        let state = self.shared.state();
        state
            .deleted
            .iter()
            .filter(|message| message.channel == self.id)
            .map(|message| Shown::of(&state, message))
            .collect()
    }

    /// Waits until `found` finds what it wants among the messages.
    ///
    /// # Panics
    /// With what there is where it does not in time.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, mut found: impl FnMut(&[Shown]) -> Option<T>) -> T {
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

    /// Waits for a post of the application that holds `text`.
    ///
    /// # Panics
    /// As `wait_for`.
    #[track_caller]
    pub fn post(&self, text: &str) -> Shown {
        let fits = |message: &&Shown| message.own && message.content.contains(text);
        self.wait_for(text, |messages| messages.iter().find(fits).cloned())
    }

    /// Waits for a post of the application with a button of this label.
    ///
    /// # Panics
    /// As `wait_for`.
    #[track_caller]
    pub fn post_with_button(&self, label: &str) -> Shown {
        let fits = |message: &&Shown| message.own && message.button(label).is_some();
        self.wait_for(label, |messages| messages.iter().find(fits).cloned())
    }
}
