//! A bounded sample of a conversation, from which a summary is made.

use std::collections::VecDeque;

use chorus_proto::{Message, Role, SourceKind};

/// Number of messages kept from the start.
const MAX_FIRST_MESSAGES: usize = 100;
/// Number of messages kept from the end.
const MAX_LAST_MESSAGES: usize = 200;
/// Bytes kept from the start and from the end of a text.
const MAX_START_BYTES: usize = 4096;
const MAX_END_BYTES: usize = 2048;

/// The first and last messages of a conversation. The middle of long texts is left out.
#[derive(Debug, Clone, Default)]
pub struct ConversationSample {
    first: Vec<SampledMessage>,
    last: VecDeque<SampledMessage>,
    chars: usize,
    /// A person has written something.
    has_person: bool,
}

/// A message of a sample.
#[derive(Debug, Clone)]
pub(super) struct SampledMessage {
    pub role: Role,
    pub text: String,
    /// A program wrote it in the user's name.
    by_program: bool,
}

impl ConversationSample {
    /// Creates an empty sample.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next message. Tool results and messages that Chorus generated count, but their text is left out. So is what a program wrote
    /// in the user's name, such as instructions and the output of hooks, unless no person has written anything.
    pub fn push(&mut self, message: &Message) {
        let by_program = is_by_program(message);
        let by_person = message.role == Role::User && !by_program && !message.generated;
        if by_person && !self.has_person && !message.content.trim().is_empty() {
            self.has_person = true;
            for earlier in self.first.iter_mut().chain(&mut self.last).filter(|earlier| earlier.by_program) {
                self.chars -= earlier.text.chars().count();
                earlier.text.clear();
            }
        }
        let silent = message.generated || message.role == Role::ToolResult || by_program && self.has_person;
        let text = if silent { String::new() } else { head_and_tail(&message.content, MAX_START_BYTES, MAX_END_BYTES) };
        self.chars += text.chars().count();
        let said = SampledMessage { role: message.role, text, by_program };
        if self.first.len() < MAX_FIRST_MESSAGES {
            self.first.push(said);
            return;
        }
        if self.last.len() == MAX_LAST_MESSAGES {
            self.last.pop_front();
        }
        self.last.push_back(said);
    }

    /// Returns which of `total` messages a sample keeps. A caller with random access needs to push only these.
    pub fn selected_indices(total: usize) -> impl Iterator<Item = usize> {
        let head = total.min(MAX_FIRST_MESSAGES);
        (0..head).chain(total.saturating_sub(MAX_LAST_MESSAGES).max(head)..total)
    }

    /// Iterates over the sampled messages in order.
    pub(super) fn messages(&self) -> impl DoubleEndedIterator<Item = &SampledMessage> {
        self.first.iter().chain(&self.last)
    }

    /// Returns the number of characters in all texts. No summary is longer.
    pub(super) fn chars(&self) -> usize {
        self.chars
    }
}

/// Returns true if another program wrote the message in the user's name.
fn is_by_program(message: &Message) -> bool {
    let of = message.source.as_ref();
    message.role == Role::User && of.is_some_and(|of| of.kind == SourceKind::Agent && of.format.is_some())
}

/// Returns the start and the end of a text, up to the given number of bytes of each.
pub(super) fn head_and_tail(text: &str, start: usize, finish: usize) -> String {
    if text.len() <= start + finish {
        return text.to_owned();
    }
    let (start, rest) = split_at_char(text, start);
    let (_, finish) = split_at_char(rest, rest.len() - finish);
    // The gap ends a paragraph, so that no sentence spans it.
    format!("{start}\n\n{finish}")
}

/// Splits before the character that contains the byte.
pub(super) fn split_at_char(text: &str, byte: usize) -> (&str, &str) {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.split_at(at)
}

#[cfg(test)]
mod tests {
    use chorus_proto::NewMessage;

    use super::*;

    fn message(content: &str) -> Message {
        NewMessage::text(Role::User, content).complete(String::new, jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn indices_are_what_pushing_all_would_keep() {
        for total in [0, 1, 99, 100, 101, 299, 300, 301, 1000] {
            let mut all = ConversationSample::new();
            (0..total).for_each(|number| all.push(&message(&number.to_string())));
            let kept: Vec<_> = all.messages().map(|said| said.text.parse::<usize>().unwrap()).collect();
            assert_eq!(kept, ConversationSample::selected_indices(total).collect::<Vec<_>>(), "{total}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut digest = ConversationSample::new();
        digest.push(&message(&"é".repeat(50_000)));
        assert!(digest.messages().next().unwrap().text.len() <= MAX_START_BYTES + MAX_END_BYTES + 8);
    }
}
