//! The command line of conversations.

mod attached;
mod chat;
mod commands;
mod hints;
mod into_new;
mod names;
mod older_daemon;
mod reopened;
mod selection;
mod shown;

use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};

/// A home with a daemon and the agent `api`, which has 2 messages in `main` and one in `review`.
fn with_review() -> (Home, Daemon) {
    let home = crate::home();
    let daemon = Daemon::start(&home);
    run(&home, &["agent", "init", "api"]);
    run(&home, &["context", "append", "the login is slow"]);
    run(&home, &["context", "append", "only on Mondays"]);
    run(&home, &["-C", "review", "context", "append", "please review the parser"]);
    (home, daemon)
}

/// Runs `chorusctl`, which must succeed, and returns its standard output.
fn run(home: &Home, args: &[&str]) -> String {
    chorusctl(home, args).expect_success()
}
