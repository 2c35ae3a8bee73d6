//! Finds the line that carries each message that was typed while the program worked, so that each is imported once.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use jiff::{SignedDuration, Timestamp};

use super::super::anthropic_blocks::content::Content;
use super::index::NO_NODE;
use super::line::TranscriptMessage;
use super::queue_operation::{QueueOperation, command_as_typed};

/// Largest number of queued messages that are searched for in a line that may hold several.
const MAX_MERGED_CANDIDATES: usize = 16;

/// Largest number of messages with the same text that are tracked. Older ones have long been sent.
const MAX_SAME_TEXT: usize = 32;

/// The program may still send a message that was typed that short ago.
const MAX_WAIT: SignedDuration = SignedDuration::from_hours(1);

/// The position of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePosition {
    pub line: u64,
    pub offset: u64,
    /// The node that the line would become.
    pub next: u32,
}

/// How an operation changes which lines carry messages.
#[derive(Debug, Default)]
pub(super) struct CarrierChange {
    /// Nodes that no longer carry their message.
    pub released_nodes: Vec<u32>,
    /// The line that carries the message from now on, as the next node.
    pub new_carrier: Option<LinePosition>,
}

/// A message that was typed.
#[derive(Debug)]
struct QueuedMessage {
    text_hash: u64,
    length: usize,
    at: LinePosition,
    /// The node that carries the message. `NO_NODE` if an ordinary line does, or none.
    node: u32,
    is_waiting: bool,
    /// The time at which it was typed, if the line says that.
    typed_at: Option<Timestamp>,
    /// An attachment line has the message.
    attached: bool,
    /// The message may still appear as an ordinary line.
    may_be_sent: bool,
    taken_back: bool,
}

/// The messages typed so far. Texts are stored as hashes with random keys.
#[derive(Debug, Default)]
pub(super) struct QueuedMessages {
    messages: Vec<QueuedMessage>,
    by_text: HashMap<u64, VecDeque<u32>>,
    /// The messages in the queue, oldest first, among them some that have left it.
    waiting: VecDeque<u32>,
    /// Messages that left the queue since the last ordinary line, to become one or to be edited.
    dequeued: Vec<u32>,
    /// Messages that got an attachment since the last ordinary line.
    newly_attached: Vec<u32>,
    hasher: RandomState,
}

impl QueuedMessages {
    /// Applies an operation on the queue.
    pub(super) fn apply_operation(&mut self, operation: QueueOperation<'_>, at: LinePosition) -> CarrierChange {
        match operation {
            QueueOperation::Enqueue(talk) => {
                let text = talk.as_ref().and_then(|talk| first_text(&talk.content)).unwrap_or_default();
                let message = self.add(text, at);
                match &talk {
                    Some(talk) => self.messages[message as usize].typed_at = talk.timestamp,
                    None => self.messages[message as usize].node = NO_NODE,
                }
                self.waiting.push_back(message);
                CarrierChange { new_carrier: talk.map(|_| at), ..CarrierChange::default() }
            }
            QueueOperation::Dequeue => {
                if let Some(first) = self.first_waiting() {
                    self.messages[first as usize].is_waiting = false;
                    self.dequeued.push(first);
                }
                CarrierChange::default()
            }
            QueueOperation::Remove { content, absorbed } => {
                let named = content.as_ref().and_then(first_text).map(|text| self.hasher.hash_one(text));
                let message = match named {
                    Some(text) => self.find(text, |message| message.is_waiting),
                    None => self.first_waiting(),
                };
                message.map_or_else(CarrierChange::default, |message| self.remove_message(message, absorbed, at))
            }
            QueueOperation::TakeBack => {
                let mut change = CarrierChange::default();
                for number in std::mem::take(&mut self.waiting) {
                    let message = &mut self.messages[number as usize];
                    if std::mem::take(&mut message.is_waiting) && !message.attached && message.node != NO_NODE {
                        message.taken_back = true;
                        change.released_nodes.push(std::mem::replace(&mut message.node, NO_NODE));
                        self.dequeued.push(number);
                    }
                }
                change
            }
        }
    }

    fn remove_message(&mut self, message: u32, absorbed: bool, at: LinePosition) -> CarrierChange {
        let message = &mut self.messages[message as usize];
        message.is_waiting = false;
        message.may_be_sent &= !absorbed && !message.attached;
        if message.attached || message.node == NO_NODE {
            return CarrierChange::default();
        }
        // The model received the message here.
        let before = std::mem::replace(&mut message.node, at.next);
        CarrierChange { released_nodes: vec![before], new_carrier: Some(LinePosition { next: at.next, ..message.at }) }
    }

    /// Adds an attachment, which is the node `node`. Returns the node that carried the message until now.
    pub(super) fn add_attachment(&mut self, talk: &TranscriptMessage<'_>, node: u32) -> Option<u32> {
        let said = first_text(&talk.content).unwrap_or_default();
        let hash = self.hasher.hash_one(said);
        let known = self.find(hash, |message| !message.attached && (message.may_be_sent || message.node != NO_NODE));
        let message = known.unwrap_or_else(|| self.add(said, LinePosition { line: 0, offset: 0, next: node }));
        self.newly_attached.push(message);
        let message = &mut self.messages[message as usize];
        (message.attached, message.taken_back) = (true, false);
        message.is_waiting &= known.is_some();
        let before = std::mem::replace(&mut message.node, node);
        (before != node && before != NO_NODE).then_some(before)
    }

    /// Matches an ordinary user's line with the queue. Returns the nodes that carried its messages until now.
    pub(super) fn match_user_line(&mut self, talk: &TranscriptMessage<'_>) -> Vec<u32> {
        let mut sent = Vec::new();
        if talk.content.result_ids().next().is_some() {
            return sent;
        }
        for said in talk.content.texts().map(str::trim) {
            let whole = self.find(self.hasher.hash_one(said), |message| message.may_be_sent);
            let whole = whole.or_else(|| {
                let typed = command_as_typed(said)?;
                let with_mark = self.hasher.hash_one(format!("!{typed}"));
                let find = |text| self.find(text, |message| message.may_be_sent);
                find(self.hasher.hash_one(&*typed)).or_else(|| find(with_mark))
            });
            match whole {
                Some(message) => sent.extend(self.mark_sent(message)),
                None => sent.extend(self.match_merged_messages(said)),
            }
        }
        if !talk.by_person {
            return sent;
        }
        self.dequeued.clear();
        for message in self.newly_attached.drain(..) {
            // A later message with the same text is another message.
            self.messages[message as usize].may_be_sent = false;
        }
        sent
    }

    /// Matches messages that were sent together as one, each on one or more lines of it.
    fn match_merged_messages(&mut self, mut said: &str) -> Vec<u32> {
        while self.waiting.front().is_some_and(|message| !self.messages[*message as usize].is_waiting) {
            self.waiting.pop_front();
        }
        let candidates: Vec<u32> =
            self.dequeued.iter().chain(&self.waiting).copied().take(MAX_MERGED_CANDIDATES).collect();
        let mut sent = Vec::new();
        for number in candidates {
            let message = &self.messages[number as usize];
            let Some((part, rest)) = said.split_at_checked(message.length).filter(|_| message.may_be_sent) else {
                continue;
            };
            let ends = rest.is_empty() || rest.starts_with('\n');
            if ends && message.length > 0 && self.hasher.hash_one(part) == message.text_hash {
                said = rest.trim_start();
                sent.extend(self.mark_sent(number));
            }
        }
        sent
    }

    fn mark_sent(&mut self, message: u32) -> Option<u32> {
        let message = &mut self.messages[message as usize];
        (message.may_be_sent, message.is_waiting, message.taken_back) = (false, false, false);
        Some(std::mem::replace(&mut message.node, NO_NODE)).filter(|node| *node != NO_NODE)
    }

    /// Returns the lines of messages that were taken back and not sent unchanged.
    pub(super) fn taken_back(&self) -> impl Iterator<Item = u64> {
        self.messages.iter().filter(|message| message.taken_back).map(|message| message.at.line)
    }

    /// Takes out the messages that the program has yet to send, because their place in the conversation is not known before.
    /// Returns the line and the node of each.
    pub(super) fn take_unsent(&mut self, now: Timestamp) -> Vec<(u64, u32)> {
        let Self { messages, dequeued, .. } = self;
        let mut unsent = Vec::new();
        for (number, message) in (0..).zip(messages) {
            let is_recent = message.typed_at.is_some_and(|at| now.duration_since(at) < MAX_WAIT);
            let is_unsent = is_recent && !message.attached && message.node != NO_NODE;
            if is_unsent && (message.is_waiting || dequeued.contains(&number)) {
                unsent.push((message.at.line, std::mem::replace(&mut message.node, NO_NODE)));
            }
        }
        unsent
    }

    fn add(&mut self, text: &str, at: LinePosition) -> u32 {
        let number = self.messages.len() as u32;
        let (length, text) = (text.len(), self.hasher.hash_one(text));
        let (waits, attached, open, taken_back) = (true, false, true, false);
        self.messages.push(QueuedMessage {
            text_hash: text,
            length,
            at,
            node: at.next,
            is_waiting: waits,
            typed_at: None,
            attached,
            may_be_sent: open,
            taken_back,
        });
        let alike = self.by_text.entry(text).or_default();
        if alike.len() == MAX_SAME_TEXT {
            alike.pop_front();
        }
        alike.push_back(number);
        number
    }

    /// Returns the oldest message with that text for which `holds` returns true.
    fn find(&self, text: u64, holds: impl Fn(&QueuedMessage) -> bool) -> Option<u32> {
        let of_text = self.by_text.get(&text)?;
        of_text.iter().copied().find(|message| holds(&self.messages[*message as usize]))
    }

    fn first_waiting(&mut self) -> Option<u32> {
        std::iter::from_fn(|| self.waiting.pop_front()).find(|message| self.messages[*message as usize].is_waiting)
    }
}

/// Returns the first text of a message that is not blank.
fn first_text<'c>(content: &'c Content<'_>) -> Option<&'c str> {
    content.texts().map(str::trim).find(|text| !text.is_empty())
}
