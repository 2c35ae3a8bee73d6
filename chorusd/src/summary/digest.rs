//! The part of a conversation that a summary is made from.

use std::collections::VecDeque;

use chorus_proto::{Message, Role};

/// Messages kept from the beginning.
const HEAD: usize = 100;
/// Messages kept from the end.
const TAIL: usize = 200;
/// Bytes kept from the beginning and from the end of a text.
const START: usize = 4096;
const FINISH: usize = 2048;

/// A bounded selection of a conversation: its first and last messages, long texts cut in the middle.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    first: Vec<Said>,
    last: VecDeque<Said>,
    chars: usize,
}

/// One message of a digest.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub role: Role,
    pub text: String,
}

impl Digest {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next message, in order. Tool results and what Chorus wrote itself leave only their place.
    pub fn push(&mut self, message: &Message) {
        let silent = message.generated || message.role == Role::ToolResult;
        let text = if silent { String::new() } else { ends(&message.content, START, FINISH) };
        self.chars += text.chars().count();
        let said = Said { role: message.role, text };
        if self.first.len() < HEAD {
            self.first.push(said);
            return;
        }
        if self.last.len() == TAIL {
            self.last.pop_front();
        }
        self.last.push_back(said);
    }

    /// Which of `total` messages a digest keeps: whoever can pick need push only these.
    pub fn indices(total: usize) -> impl Iterator<Item = usize> {
        let head = total.min(HEAD);
        (0..head).chain(total.saturating_sub(TAIL).max(head)..total)
    }

    /// What is kept, in order.
    pub(super) fn said(&self) -> impl DoubleEndedIterator<Item = &Said> {
        self.first.iter().chain(&self.last)
    }

    /// Characters of all texts: no summary is longer.
    pub(super) fn chars(&self) -> usize {
        self.chars
    }
}

/// The beginning and the end of a text, up to so many bytes of each.
pub(super) fn ends(text: &str, start: usize, finish: usize) -> String {
    if text.len() <= start + finish {
        return text.to_owned();
    }
    let (start, rest) = at_char(text, start);
    let (_, finish) = at_char(rest, rest.len() - finish);
    // The gap ends a paragraph, so that no sentence is made of both sides.
    format!("{start}\n\n{finish}")
}

/// Splits before the character that contains the byte.
pub(super) fn at_char(text: &str, byte: usize) -> (&str, &str) {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.split_at(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_proto::NewMessage;

    fn message(content: &str) -> Message {
        NewMessage::text(Role::User, content).complete(String::new, jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn indices_are_what_pushing_all_would_keep() {
        for total in [0, 1, 99, 100, 101, 299, 300, 301, 1000] {
            let mut all = Digest::new();
            (0..total).for_each(|number| all.push(&message(&number.to_string())));
            let kept: Vec<_> = all.said().map(|said| said.text.parse::<usize>().unwrap()).collect();
            assert_eq!(kept, Digest::indices(total).collect::<Vec<_>>(), "{total}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut digest = Digest::new();
        digest.push(&message(&"é".repeat(50_000)));
        assert!(digest.said().next().unwrap().text.len() <= START + FINISH + 8);
    }
}
