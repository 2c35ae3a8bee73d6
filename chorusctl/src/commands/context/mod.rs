//! `chorusctl context`: one module per subcommand.

pub mod append;
pub mod clear;
pub mod compact;
pub mod history;
pub mod pin;
pub mod restore;
pub mod resume;
pub mod rewind;
pub mod save;
pub mod show;
mod show_window;
pub mod unpin;

group! {
    /// Work with an agent's live conversation
    enum Verb {
        /// Add messages without calling a model
        Append(append::Args),
        /// Show the live conversation
        Show(show::Args),
        /// Save the conversation; it goes on
        Save(save::Args),
        /// Discard the live conversation
        Clear(clear::Args),
        /// List saved conversations, newest first
        History(history::Args),
        /// Put a saved conversation back as the live one
        Restore(restore::Args),
        /// Go on from a saved conversation's summary, in a fresh one
        Resume(resume::Args),
        /// Save the conversation, and go on from its summary in a fresh one
        Compact(compact::Args),
        /// Drop the last turns from the live conversation
        Rewind(rewind::Args),
        /// Pin a fact, so that it stays in view
        Pin(pin::Args),
        /// Take a pinned fact out
        Unpin(unpin::Args),
    }
}

impl From<history::Args> for Args {
    fn from(args: history::Args) -> Self {
        Self { verb: Verb::History(args) }
    }
}
