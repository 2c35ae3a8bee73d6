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
pub(super) mod show_window;
pub mod unpin;

use super::session::{branch, diff, merge, tree};

group! {
    /// Manage the live conversation
    enum Verb {
        /// Add messages without calling a model
        Append(append::Args),
        /// Show the live conversation
        Show(show::Args),
        /// Save a checkpoint (the conversation continues)
        Save(save::Args),
        /// Discard the live conversation
        Clear(clear::Args),
        /// List saved conversations, newest first
        #[command(visible_aliases = ["list", "ls"])]
        History(history::Args),
        /// Load a saved conversation
        Restore(restore::Args),
        /// Start a new conversation from a saved one's summary
        Resume(resume::Args),
        /// Save, then continue in a new conversation from its summary
        Compact(compact::Args),
        /// Undo the last turns
        Rewind(rewind::Args),
        /// Pin a fact that the model always sees
        Pin(pin::Args),
        /// Remove a pinned fact
        Unpin(unpin::Args),
        /// Start a branch from a saved conversation
        Branch(branch::Args),
        /// Show saved conversations as a tree
        Tree(tree::Args),
        /// Show where two conversations diverge
        Diff(diff::Args),
        /// Merge two branches into a new conversation
        Merge(merge::Args),
    }
}

impl From<history::Args> for Args {
    fn from(args: history::Args) -> Self {
        Self { verb: Verb::History(args) }
    }
}
