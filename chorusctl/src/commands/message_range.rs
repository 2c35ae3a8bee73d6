//! The options that select messages of a conversation: `--last` and `--at`.

use chorus_proto::error::exit;

use crate::error::Error;
use crate::ui::units::pluralize;

/// Which messages to show.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct MessageRange {
    /// Show only the last N messages
    #[arg(long, value_name = "N")]
    pub last: Option<u64>,
    /// Show only message N, in full
    #[arg(long, value_name = "N", conflicts_with = "last", value_parser = clap::value_parser!(u64).range(1..))]
    pub at: Option<u64>,
}

impl MessageRange {
    /// Returns true if no message is left out.
    #[must_use]
    pub fn is_all(self) -> bool {
        self.last.is_none() && self.at.is_none()
    }
}

/// Returns the error for a message number that the conversation does not have.
#[must_use]
pub fn no_message_error(number: u64, count: u64) -> Error {
    Error::new(exit::NOT_FOUND, format!("no message {number}: the conversation has {}", pluralize(count, "message")))
        .with_hint("list the messages with their numbers: chorusctl show")
}
