//! Connections to the daemon of the programs beside it, `chorusctl top` and `chorusctl web`: events and conversations that are followed
//! until nobody listens any more, and errors in words.
//!
//! Invariant: an ordinary client of the socket. A connection that ends is tried again, with longer and longer waits.
//!
//! Absent on purpose: any start of the daemon; what is shown, and how.

#![warn(unreachable_pub)]

mod conversation;
mod events;
mod failure;
mod retry;

pub use conversation::{ConversationFeed, follow_conversation};
pub use events::{EventFeed, follow_events};
pub use failure::Failure;
