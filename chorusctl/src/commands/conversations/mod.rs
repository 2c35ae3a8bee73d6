//! `chorusctl conversations`: one module per subcommand.

pub mod close;
pub mod list;
pub mod merge;
pub mod new;
pub mod rename;
pub mod use_;

use chorus_proto::methods::conversations::{Attached, Conversation};

use super::format;
use crate::ui::sanitize;

group! {
    /// List, create, close and select an agent's conversations
    ///
    /// An agent has the conversation main and any number of others, each with its own messages, turns and idle time. -C NAME selects one for
    /// a command, `conversations use` for all that follow.
    enum Verb or list {
        /// List an agent's conversations (default)
        List(list::Args),
        /// Create a conversation
        New(new::Args),
        /// Give a conversation another name
        Rename(rename::Args),
        /// Save and close a conversation
        Close(close::Args),
        /// Merge a conversation's git branch into the workspace
        Merge(merge::Args),
        /// Set the conversation that commands use
        Use(use_::Args),
    }
}

/// Formats `review: 3 messages, ~120 tokens, 3 unsaved; open in pts/3`.
#[must_use]
pub fn describe(conversation: &Conversation) -> String {
    let context = conversation.context.as_ref().map(format::context);
    let turn = conversation.turn.as_ref().map(format::turn);
    let open = Some(open_in(&conversation.attached)).filter(|open| !open.is_empty());
    let facts: Vec<String> = [context, turn, open].into_iter().flatten().collect();
    format!("{}: {}", sanitize::one_line(&conversation.name), facts.join("; "))
}

/// Formats `open in pts/3, pts/5`; empty if nobody has it open.
#[must_use]
pub fn open_in(attached: &[Attached]) -> String {
    let clients: Vec<String> = attached.iter().map(|attached| sanitize::one_line(&attached.client)).collect();
    if clients.is_empty() { String::new() } else { format!("open in {}", clients.join(", ")) }
}
