//! `chorusctl session`: one module per subcommand.

pub mod branch;
mod bulk_import;
pub mod cat;
mod databases;
pub mod delete;
pub mod diff;
pub mod expire;
pub mod export;
pub mod file_import;
pub mod import;
mod import_chunks;
mod import_totals;
mod imported_files;
pub mod merge;
pub mod purge;
pub mod scrub;
pub mod show;
pub mod tag;
mod task_files;
pub mod transcript_source;
mod transcripts;
pub mod tree;
pub mod untag;

use super::context::{history, restore, resume, save};

group! {
    /// Show, export, import and manage saved conversations
    enum Verb {
        /// List saved conversations, newest first
        #[command(visible_aliases = ["history", "ls"])]
        List(history::Args),
        /// Show a saved conversation
        Show(show::Args),
        /// Save a checkpoint (the conversation continues)
        Save(save::Args),
        /// Load a saved conversation
        Restore(restore::Args),
        /// Start a new conversation from a saved one's summary
        Resume(resume::Args),
        /// Add tags to a saved conversation
        Tag(tag::Args),
        /// Remove tags from a saved conversation
        Untag(untag::Args),
        /// Show saved conversations as a tree
        Tree(tree::Args),
        /// Start a branch from a saved conversation
        Branch(branch::Args),
        /// Show where two conversations diverge
        Diff(diff::Args),
        /// Merge two branches into a new conversation
        Merge(merge::Args),
        /// Export saved conversations to standard output or to files
        Export(export::Args),
        /// Print a saved conversation as JSON, for example for jq
        Cat(cat::Args),
        /// Import conversations from other programs
        Import(import::Args),
        /// Move a saved conversation to the trash
        #[command(visible_alias = "rm")]
        Delete(delete::Args),
        /// Move unused saved conversations to the trash
        Expire(expire::Args),
        /// Permanently delete a saved conversation
        Purge(purge::Args),
        /// Replace saved conversations by copies without secrets
        Scrub(scrub::Args),
    }
}
