//! `chorusctl web`: the pages of Chorus in a browser, on loopback, in a process of its own. Conversations as they continue, search as one
//! types, the tree, usage, approvals, and a box to answer in.
//!
//! Invariant: it is an ordinary client of the daemon, and trusts nobody else: each request needs the cookie of the link that was
//! printed, a path that nobody else knows, our own host, and, where it changes or follows something, our own origin (`guard.rs`). Text of messages is never markup.
//! The pages are complete without a script; the script only fetches parts of them again.
//!
//! Absent on purpose: the store, the engine, any start of the daemon; an address that is not loopback; TLS; templates in the browser.

#![warn(unreachable_pub)]

mod actions;
mod app;
mod browser;
mod chart;
mod extract;
mod failure_page;
mod guard;
mod hub;
mod layout;
mod login;
mod pages;
mod prefix;
mod routes;
mod server;
mod strangers;
mod stream;
mod text;
mod write_limit;

use chorus_base::error::{Error, Result};
use chorus_proto::paths::InstancePaths;

/// Settings of the pages, from the command line.
#[derive(Debug)]
pub struct Options {
    pub places: InstancePaths,
    /// The port to listen on; 0 for a free one.
    pub port: u16,
    /// Nothing can be sent, answered or cancelled.
    pub is_read_only: bool,
    /// Open the browser, if there is one on this machine.
    pub opens_browser: bool,
}

/// Serves the pages until a signal ends the process.
///
/// # Errors
/// The port cannot be used.
pub fn run(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("cannot start a runtime", &e))?;
    let ended = runtime.block_on(server::run(options));
    runtime.shutdown_background();
    ended
}
