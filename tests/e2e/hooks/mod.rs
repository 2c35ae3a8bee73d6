//! The hooks that Claude Code runs: in its settings, and when it runs them.

mod events;
mod install;

use std::fs;
use std::path::PathBuf;

use chorus_tests::Home;
use chorus_tests::ctl::{Output, run_command};

/// The user's home of a test.
fn user_home(home: &Home) -> PathBuf {
    let dir = home.temp_dir().join("user");
    fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Runs `chorusctl hooks` with this standard input.
fn hooks(home: &Home, args: &[&str], input: &str) -> Output {
    let mut command = home.command(home.bins.chorusctl);
    command.env("HOME", user_home(home)).arg("hooks").args(args);
    run_command(command, input.as_bytes())
}
