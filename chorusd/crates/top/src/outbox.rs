//! Messages that were typed and are not in their conversation yet. None of them is lost or sent twice: each has a key, with which it is
//! sent again if the daemon did not answer.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::fleet::Target;
use crate::line_editor::LineEditor;

/// The state of a message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The daemon has not answered yet.
    Sending,
    /// The connection was lost at that time, so nobody knows if the daemon has it. It is sent again with the same key.
    Unconfirmed(Timestamp),
    /// The daemon has it; its turn comes after so many others.
    Queued(u64),
    /// It was not sent: the daemon refused it for this reason, or it is to be changed first.
    Refused(String),
}

/// A message on its way.
#[derive(Debug)]
pub(crate) struct OutboxEntry {
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) delivery: Delivery,
    /// It was sent before with the same key, and the daemon has not reported a stage since.
    is_repeated: bool,
}

/// The messages that are on their way into a conversation, and the one that is written.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    entries: Vec<OutboxEntry>,
    /// The text of the line to write in while the conversation is closed.
    pub(crate) draft: LineEditor,
    /// The key of a refused message that is in the line again, and its text.
    refused: Option<(String, String)>,
}

impl Outbox {
    pub(crate) fn entries(&self) -> &[OutboxEntry] {
        &self.entries
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.draft.text().is_empty() && self.refused.is_none()
    }

    /// Returns true if a message was sent and the daemon has not answered.
    pub(crate) fn is_sending(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.delivery, Delivery::Sending | Delivery::Unconfirmed(_)))
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.key == key)
    }
}

/// The outcome of a message that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FailedSend {
    /// Its turn had started: it is in the conversation.
    Delivered,
    /// It is sent again.
    Retried,
    /// It was refused, and is still in the outbox.
    Refused,
}

/// The outboxes of all conversations.
#[derive(Debug, Default)]
pub(crate) struct Outboxes {
    outboxes: HashMap<Target, Outbox>,
    /// The start of all keys, by which they differ from those of other screens.
    key_prefix: String,
    keys: u64,
}

impl Outboxes {
    pub(crate) fn new(key_prefix: String) -> Self {
        Self { key_prefix, ..Self::default() }
    }

    pub(crate) fn get(&self, target: &Target) -> Option<&Outbox> {
        self.outboxes.get(target)
    }

    pub(crate) fn of(&mut self, target: &Target) -> &mut Outbox {
        self.outboxes.entry(target.clone()).or_default()
    }

    /// Returns a closed conversation in whose line something is typed.
    pub(crate) fn drafted(&self) -> Option<&Target> {
        self.outboxes.iter().find(|(_, outbox)| !outbox.draft.text().is_empty()).map(|(target, _)| target)
    }

    /// Moves an outbox to the new name of its conversation.
    pub(crate) fn rename(&mut self, from: &Target, to: &Target) {
        if let Some(outbox) = self.outboxes.remove(from) {
            self.outboxes.insert(to.clone(), outbox);
        }
    }

    /// Removes outboxes without content.
    pub(crate) fn tidy(&mut self) {
        self.outboxes.retain(|_, outbox| !outbox.is_empty());
    }

    /// Adds a message that is sent now. Returns its key: the same one if this text was refused before.
    pub(crate) fn add(&mut self, target: &Target, text: String) -> String {
        let outbox = self.outboxes.entry(target.clone()).or_default();
        let refused = outbox.refused.take().filter(|(_, of)| *of == text);
        let is_repeated = refused.is_some();
        let key = refused.map_or_else(
            || {
                self.keys += 1;
                format!("{}-{}", self.key_prefix, self.keys)
            },
            |(key, _)| key,
        );
        outbox.entries.push(OutboxEntry { key: key.clone(), text, delivery: Delivery::Sending, is_repeated });
        key
    }

    /// Notes that a message is in its conversation.
    pub(crate) fn delivered(&mut self, target: &Target, key: &str) {
        if let Some(outbox) = self.outboxes.get_mut(&self.current(target, key)) {
            outbox.entries.retain(|entry| entry.key != key);
        }
        self.tidy();
    }

    pub(crate) fn queued(&mut self, target: &Target, key: &str, before: u64) {
        if let Some(entry) = self.entry(target, key) {
            entry.delivery = Delivery::Queued(before);
            entry.is_repeated = false;
        }
    }

    fn entry(&mut self, target: &Target, key: &str) -> Option<&mut OutboxEntry> {
        let outbox = self.outboxes.get_mut(&self.current(target, key))?;
        let at = outbox.position(key)?;
        outbox.entries.get_mut(at)
    }

    /// Returns the conversation that a message belongs to: another one than `target` if that was renamed since.
    pub(crate) fn current(&self, target: &Target, key: &str) -> Target {
        let has_it = |outbox: &Outbox| outbox.position(key).is_some();
        let renamed = self.outboxes.iter().find(|(_, outbox)| has_it(outbox)).map(|(target, _)| target.clone());
        renamed.unwrap_or_else(|| target.clone())
    }

    /// Notes that the daemon did not answer.
    pub(crate) fn unconfirmed(&mut self, target: &Target, key: &str, now: Timestamp) -> FailedSend {
        let Some(entry) = self.entry(target, key) else { return FailedSend::Delivered };
        entry.delivery = Delivery::Unconfirmed(now);
        FailedSend::Retried
    }

    /// Notes that a message failed. `is_interrupted` if its turn, or the one that had its key before, ended early.
    pub(crate) fn failed(&mut self, target: &Target, key: &str, is_interrupted: bool, reason: String) -> FailedSend {
        let Some(entry) = self.entry(target, key) else { return FailedSend::Delivered };
        if is_interrupted && entry.is_repeated {
            // The first attempt had come so far that the message was recorded.
            self.delivered(target, key);
            return FailedSend::Delivered;
        }
        entry.delivery = Delivery::Refused(reason);
        FailedSend::Refused
    }

    /// Puts the text of a refused message into `line` if that is empty. Otherwise it stays in the outbox.
    pub(crate) fn take_refused(&mut self, target: &Target, key: &str, line: &mut LineEditor) -> bool {
        let Some(outbox) = self.outboxes.get_mut(target) else { return false };
        let Some(at) = outbox.position(key).filter(|_| line.text().is_empty()) else { return false };
        let entry = outbox.entries.remove(at);
        line.set(entry.text.clone());
        outbox.refused = Some((entry.key, entry.text));
        true
    }

    /// Takes the newest refused message into `line` to change it. What is typed there takes its place, and comes up next. Returns false if
    /// no message was refused.
    pub(crate) fn edit_refused(&mut self, target: &Target, line: &mut LineEditor) -> bool {
        let Some(outbox) = self.outboxes.get_mut(target) else { return false };
        let is_refused = |entry: &OutboxEntry| matches!(entry.delivery, Delivery::Refused(_));
        let Some(at) = outbox.entries.iter().rposition(is_refused) else { return false };
        let entry = outbox.entries.remove(at);
        let typed = line.take();
        if !typed.trim().is_empty() {
            self.keys += 1;
            let new_key = || format!("{}-{}", self.key_prefix, self.keys);
            let key = outbox.refused.take().filter(|(_, text)| *text == typed).map_or_else(new_key, |(key, _)| key);
            let delivery = Delivery::Refused(String::new());
            outbox.entries.insert(0, OutboxEntry { key, text: typed, delivery, is_repeated: true });
        }
        line.set(entry.text.clone());
        outbox.refused = Some((entry.key, entry.text));
        true
    }

    /// Returns the messages to send again: those that were unconfirmed before `before`.
    pub(crate) fn take_unconfirmed(&mut self, before: Timestamp) -> Vec<(Target, String, String)> {
        let mut found = Vec::new();
        for (target, outbox) in &mut self.outboxes {
            for entry in &mut outbox.entries {
                if matches!(entry.delivery, Delivery::Unconfirmed(at) if at <= before) {
                    (entry.delivery, entry.is_repeated) = (Delivery::Sending, true);
                    found.push((target.clone(), entry.text.clone(), entry.key.clone()));
                }
            }
        }
        found
    }

    /// Returns true if a message waits to be sent again.
    pub(crate) fn has_unconfirmed(&self) -> bool {
        self.all().any(|(_, entry)| matches!(entry.delivery, Delivery::Unconfirmed(_)))
    }

    /// Returns true if the daemon has not answered for a message.
    pub(crate) fn is_sending(&self) -> bool {
        self.outboxes.values().any(Outbox::is_sending)
    }

    /// Returns the messages that the daemon does not have, or may not have, each with its conversation.
    pub(crate) fn unsent(&self) -> impl Iterator<Item = (&Target, &OutboxEntry)> {
        self.all().filter(|(_, entry)| !matches!(entry.delivery, Delivery::Queued(_)))
    }

    fn all(&self) -> impl Iterator<Item = (&Target, &OutboxEntry)> {
        self.outboxes.iter().flat_map(|(target, outbox)| outbox.entries.iter().map(move |entry| (target, entry)))
    }
}
