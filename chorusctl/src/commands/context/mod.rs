//! `chorusctl context`: one module per subcommand.

use clap::Subcommand;

use crate::app::App;
use crate::error::Error;

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

/// Work with an agent's live conversation
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

impl From<history::Args> for Args {
    fn from(args: history::Args) -> Self {
        Self { verb: Verb::History(args) }
    }
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
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

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    match args.verb {
        Verb::Append(args) => append::run(args, app),
        Verb::Show(args) => show::run(args, app),
        Verb::Save(args) => save::run(args, app),
        Verb::Clear(args) => clear::run(args, app),
        Verb::History(args) => history::run(args, app),
        Verb::Restore(args) => restore::run(args, app),
        Verb::Resume(args) => resume::run(args, app),
        Verb::Compact(args) => compact::run(args, app),
        Verb::Rewind(args) => rewind::run(args, app),
        Verb::Pin(args) => pin::run(args, app),
        Verb::Unpin(args) => unpin::run(args, app),
    }
}
