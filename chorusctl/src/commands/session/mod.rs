//! `chorusctl session`: one module per subcommand.

pub mod branch;
pub mod delete;
pub mod diff;
pub mod expire;
pub mod export;
pub mod import;
mod import_chunks;
pub mod merge;
pub mod purge;
pub mod show;
pub mod tag;
pub mod tree;
pub mod untag;

group! {
    /// Look at saved conversations, take them out, and bring others along
    enum Verb {
        /// Show a saved conversation
        Show(show::Args),
        /// Put tags on a saved conversation
        Tag(tag::Args),
        /// Take tags off a saved conversation
        Untag(untag::Args),
        /// Draw saved conversations as a tree: what goes on from what
        Tree(tree::Args),
        /// Go on from a saved conversation in a second line of work
        Branch(branch::Args),
        /// Show where two saved conversations part, and what each says from there on
        Diff(diff::Args),
        /// Bring two lines of work together in a new live conversation
        Merge(merge::Args),
        /// Write saved conversations to standard output or into files
        Export(export::Args),
        /// Save conversations of other programs as sessions
        Import(import::Args),
        /// Move a saved conversation to the trash
        Delete(delete::Args),
        /// Move saved conversations that nobody used for long to the trash
        Expire(expire::Args),
        /// Forget a saved conversation for good
        Purge(purge::Args),
    }
}
