//! The conversations of an agent: finding the one that a request means, and the operations `conversations.*`.

pub mod attach;
mod attach_resumed;
pub mod close;
mod describe;
pub mod list;
pub mod merge;
pub mod new;
pub mod recovery;
pub mod rename;
pub mod session_scope;
mod target;
pub mod use_;
mod worktrees;
mod write_target;

pub use chorus_journal::ConversationRow;
pub use chorus_session::conversation::ConversationKey;
pub use describe::describe_live;
pub use new::Opener;
pub use session_scope::SessionScope;
pub use target::{ConversationTarget, SELECTED, find};
pub use worktrees::{WorktreeRemoval, directory_of};
pub use write_target::StartingConversations;
