//! The options that select messages of a conversation: `--last`, `--at` and `--around`.

use chorus_proto::Message;
use chorus_proto::error::exit;
use chorus_proto::shell_word::shell_word;

use crate::commands::transcript::TranscriptPrinter;
use crate::error::Error;
use crate::ui::Stdout;
use crate::ui::units::pluralize;

/// Messages before and after the one of `--around`.
const NEIGHBOURS: u64 = 3;

/// Which messages to show.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct MessageRange {
    /// Show only the last N messages
    #[arg(long, value_name = "N")]
    pub last: Option<u64>,
    /// Show only message N, in full
    #[arg(long, value_name = "N", conflicts_with = "last", value_parser = clap::value_parser!(u64).range(1..))]
    pub at: Option<u64>,
    /// Show message N, marked, with three messages before and after it
    #[arg(long, value_name = "N", conflicts_with_all = ["last", "at"], value_parser = clap::value_parser!(u64).range(1..))]
    pub around: Option<u64>,
}

/// A part of a conversation: the messages around one of them, or only that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the message, from 1.
    pub number: u64,
    /// Number of messages before the first that is shown.
    pub offset: u64,
    /// Limit on messages.
    pub limit: u64,
}

impl MessageRange {
    /// Returns true if no message is left out.
    #[must_use]
    pub fn is_all(self) -> bool {
        self.last.is_none() && self.excerpt().is_none()
    }

    /// Returns the part that --at or --around selects.
    #[must_use]
    pub fn excerpt(self) -> Option<Excerpt> {
        if let Some(number) = self.at {
            return Some(Excerpt { number, offset: number - 1, limit: 1 });
        }
        let number = self.around?;
        let offset = (number - 1).saturating_sub(NEIGHBOURS);
        Some(Excerpt { number, offset, limit: number - offset + NEIGHBOURS })
    }
}

impl Excerpt {
    /// Prints its messages, of a conversation of `count`: only one in full, several with the one of `number` marked. `named` is
    /// what the user called the conversation, if not the live one.
    pub fn print(self, out: &mut Stdout, messages: &[Message], count: u64, named: Option<&str>) -> Result<(), Error> {
        if self.number > count || messages.is_empty() {
            return Err(no_message_error(self.number, count, named));
        }
        let printer = TranscriptPrinter::new(self.offset);
        let mut printer = if self.limit == 1 { printer.in_full() } else { printer.marking(self.number) };
        messages.iter().try_for_each(|message| printer.print_message(out, message))
    }
}

/// Returns the error for a message number that the conversation does not have.
#[must_use]
fn no_message_error(number: u64, count: u64, named: Option<&str>) -> Error {
    let named = named.map_or_else(String::new, |named| format!(" {}", shell_word(named)));
    Error::new(exit::NOT_FOUND, format!("no message {number}: the conversation has {}", pluralize(count, "message")))
        .with_hint(format!("list the messages with their numbers: chorusctl show{named}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_around_one_start_with_the_first() {
        let excerpt = |at, around| {
            let excerpt = MessageRange { last: None, at, around }.excerpt();
            excerpt.map(|excerpt| (excerpt.offset, excerpt.limit))
        };
        assert_eq!(excerpt(Some(16), None), Some((15, 1)));
        assert_eq!(excerpt(None, Some(16)), Some((12, 7)));
        assert_eq!(
            [excerpt(None, Some(1)), excerpt(None, Some(3)), excerpt(None, None)],
            [Some((0, 4)), Some((0, 6)), None]
        );
        assert!(excerpt(None, Some(u64::MAX)).is_some());
    }
}
