//! Which line carries a message that was typed while the program worked: each comes in once.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use super::super::anthropic::content::Content;
use super::index::NONE;
use super::line::Talk;
use super::queue::{Operation, typed_command};

/// So many of the messages that wait are looked for in a line that may hold several.
const TOGETHER: usize = 16;

/// So many messages of one text are told apart; the older ones are long done with.
const ALIKE: usize = 32;

/// Where a line stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub line: u64,
    pub offset: u64,
    /// The node that it would become.
    pub next: u32,
}

/// What an operation changes.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Nodes that carry their message no more.
    pub carried_elsewhere: Vec<u32>,
    /// The line that carries it from here on, as the next node.
    pub new: Option<At>,
}

/// One message that was typed.
#[derive(Debug)]
struct Message {
    text: u64,
    length: usize,
    at: At,
    /// The node that carries it; none: the ordinary line does, or nobody.
    node: u32,
    waits: bool,
    /// It has an attachment.
    attached: bool,
    /// It may still come as an ordinary line.
    open: bool,
    taken_back: bool,
}

/// The messages that were typed so far. Texts are kept as hashes with random keys.
#[derive(Debug, Default)]
pub(super) struct Typed {
    messages: Vec<Message>,
    by_text: HashMap<u64, VecDeque<u32>>,
    /// Those that wait, the oldest first; some wait no more.
    waiting: VecDeque<u32>,
    /// Those that stopped waiting since the last ordinary line, to become one or to be edited.
    begun: Vec<u32>,
    /// Those that got an attachment since the last ordinary line.
    fresh: Vec<u32>,
    hasher: RandomState,
}

impl Typed {
    /// Takes an operation on the queue.
    pub fn take(&mut self, operation: Operation<'_>, at: At) -> Change {
        match operation {
            Operation::Enqueue(talk) => {
                let text = talk.as_ref().and_then(|talk| text(&talk.content)).unwrap_or_default();
                let message = self.add(text, at);
                if talk.is_none() {
                    self.messages[message as usize].node = NONE;
                }
                self.waiting.push_back(message);
                Change { new: talk.map(|_| at), ..Change::default() }
            }
            Operation::Dequeue => {
                if let Some(first) = self.first_waiting() {
                    self.messages[first as usize].waits = false;
                    self.begun.push(first);
                }
                Change::default()
            }
            Operation::Remove { content, absorbed } => {
                let named = content.as_ref().and_then(text).map(|text| self.hasher.hash_one(text));
                let message = match named {
                    Some(text) => self.find(text, |message| message.waits),
                    None => self.first_waiting(),
                };
                message.map_or_else(Change::default, |message| self.remove(message, absorbed, at))
            }
            Operation::TakeBack => {
                let mut change = Change::default();
                for number in std::mem::take(&mut self.waiting) {
                    let message = &mut self.messages[number as usize];
                    if std::mem::take(&mut message.waits) && !message.attached && message.node != NONE {
                        message.taken_back = true;
                        change.carried_elsewhere.push(std::mem::replace(&mut message.node, NONE));
                        self.begun.push(number);
                    }
                }
                change
            }
        }
    }

    fn remove(&mut self, message: u32, absorbed: bool, at: At) -> Change {
        let message = &mut self.messages[message as usize];
        message.waits = false;
        message.open &= !absorbed && !message.attached;
        if message.attached || message.node == NONE {
            return Change::default();
        }
        // Here the model got it.
        let before = std::mem::replace(&mut message.node, at.next);
        Change { carried_elsewhere: vec![before], new: Some(At { next: at.next, ..message.at }) }
    }

    /// Takes an attachment that is the node `node`. Gives the node that carried the message until now.
    pub fn attach(&mut self, talk: &Talk<'_>, node: u32) -> Option<u32> {
        let said = text(&talk.content).unwrap_or_default();
        let hash = self.hasher.hash_one(said);
        let known = self.find(hash, |message| !message.attached && (message.open || message.node != NONE));
        let message = known.unwrap_or_else(|| self.add(said, At { line: 0, offset: 0, next: node }));
        self.fresh.push(message);
        let message = &mut self.messages[message as usize];
        (message.attached, message.taken_back) = (true, false);
        message.waits &= known.is_some();
        let before = std::mem::replace(&mut message.node, node);
        (before != node && before != NONE).then_some(before)
    }

    /// Takes an ordinary line of the user. Gives the nodes whose message it is.
    pub fn send(&mut self, talk: &Talk<'_>) -> Vec<u32> {
        let mut sent = Vec::new();
        if talk.content.answers().next().is_some() {
            return sent;
        }
        for said in talk.content.texts().map(str::trim) {
            let whole = self.find(self.hasher.hash_one(said), |message| message.open);
            let whole = whole.or_else(|| {
                let typed = typed_command(said)?;
                let with_mark = self.hasher.hash_one(format!("!{typed}"));
                let find = |text| self.find(text, |message| message.open);
                find(self.hasher.hash_one(&*typed)).or_else(|| find(with_mark))
            });
            match whole {
                Some(message) => sent.extend(self.sent(message)),
                None => sent.extend(self.together(said)),
            }
        }
        if !talk.by_person {
            return sent;
        }
        self.begun.clear();
        for message in self.fresh.drain(..) {
            // What comes later and reads the same is another message.
            self.messages[message as usize].open = false;
        }
        sent
    }

    /// Messages that waited together may be sent as one, a line or more for each.
    fn together(&mut self, mut said: &str) -> Vec<u32> {
        while self.waiting.front().is_some_and(|message| !self.messages[*message as usize].waits) {
            self.waiting.pop_front();
        }
        let candidates: Vec<u32> = self.begun.iter().chain(&self.waiting).copied().take(TOGETHER).collect();
        let mut sent = Vec::new();
        for number in candidates {
            let message = &self.messages[number as usize];
            let Some((part, rest)) = said.split_at_checked(message.length).filter(|_| message.open) else { continue };
            let ends = rest.is_empty() || rest.starts_with('\n');
            if ends && message.length > 0 && self.hasher.hash_one(part) == message.text {
                said = rest.trim_start();
                sent.extend(self.sent(number));
            }
        }
        sent
    }

    fn sent(&mut self, message: u32) -> Option<u32> {
        let message = &mut self.messages[message as usize];
        (message.open, message.waits, message.taken_back) = (false, false, false);
        Some(std::mem::replace(&mut message.node, NONE)).filter(|node| *node != NONE)
    }

    /// Lines of messages that were taken back and not sent as they were.
    pub fn taken_back(&self) -> impl Iterator<Item = u64> {
        self.messages.iter().filter(|message| message.taken_back).map(|message| message.at.line)
    }

    fn add(&mut self, text: &str, at: At) -> u32 {
        let number = self.messages.len() as u32;
        let (length, text) = (text.len(), self.hasher.hash_one(text));
        let (waits, attached, open, taken_back) = (true, false, true, false);
        self.messages.push(Message { text, length, at, node: at.next, waits, attached, open, taken_back });
        let alike = self.by_text.entry(text).or_default();
        if alike.len() == ALIKE {
            alike.pop_front();
        }
        alike.push_back(number);
        number
    }

    /// The oldest message with that text for which it holds.
    fn find(&self, text: u64, holds: impl Fn(&Message) -> bool) -> Option<u32> {
        let of_text = self.by_text.get(&text)?;
        of_text.iter().copied().find(|message| holds(&self.messages[*message as usize]))
    }

    fn first_waiting(&mut self) -> Option<u32> {
        std::iter::from_fn(|| self.waiting.pop_front()).find(|message| self.messages[*message as usize].waits)
    }
}

/// The words of a message.
fn text<'c>(content: &'c Content<'_>) -> Option<&'c str> {
    content.texts().map(str::trim).find(|text| !text.is_empty())
}
