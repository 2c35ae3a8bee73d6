//! `chorusctl session`: one module per subcommand.

use clap::Subcommand;

use crate::app::App;
use crate::error::Error;

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

/// Look at saved conversations, take them out, and bring others along
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
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

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    match args.verb {
        Verb::Show(args) => show::run(args, app),
        Verb::Tag(args) => tag::run(args, app),
        Verb::Untag(args) => untag::run(args, app),
        Verb::Tree(args) => tree::run(args, app),
        Verb::Branch(args) => branch::run(args, app),
        Verb::Diff(args) => diff::run(args, app),
        Verb::Merge(args) => merge::run(args, app),
        Verb::Export(args) => export::run(args, app),
        Verb::Import(args) => import::run(args, app),
        Verb::Delete(args) => delete::run(args, app),
        Verb::Expire(args) => expire::run(args, app),
        Verb::Purge(args) => purge::run(args, app),
    }
}
