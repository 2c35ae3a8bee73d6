//! `chorusctl top`: a screen with everything that happens, in a process of its own. One can open a conversation there, answer
//! approvals, search, restore.
//!
//! Invariant: it is an ordinary client of the daemon. What is shown is a pure function of a state (`state.rs`), which changes by what
//! happens and answers with effects. Text of models never reaches the terminal unsanitized.
//!
//! Absent on purpose: the store, the engine, and any start of the daemon: if it stops, the last picture stays, and the connection
//! is tried again.

#![warn(unreachable_pub)]

mod connection;
mod conversation;
mod daemon_link;
mod entries;
mod fleet;
mod line_editor;
mod outbox;
mod panels;
mod refresh;
mod requests;
mod shell;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

use chorus_base::error::{Error, Result};
use chorus_remote::DaemonAddress;

/// Settings of the screen, from the command line.
#[derive(Debug)]
pub struct Options {
    pub daemon: DaemonAddress,
    /// Show colors.
    pub has_color: bool,
    /// The agent that is selected first.
    pub agent: Option<String>,
    /// The name under which others see it in a conversation, for example `pts/3`.
    pub client: String,
}

/// Shows the screen until the user leaves it.
///
/// # Errors
/// Standard input or output is not a terminal that can show it, or it fails.
pub fn run(options: &Options) -> Result<()> {
    terminal::check()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start a runtime", &e))?;
    let result = runtime.block_on(shell::run(options));
    // The thread that reads keys ends with the process.
    runtime.shutdown_background();
    result
}

#[doc(hidden)]
pub mod bench {
    //! The measurements of the bench `top`: frames of a screen with many agents.

    pub use crate::view::{measure_conversation, measure_frames};
}
