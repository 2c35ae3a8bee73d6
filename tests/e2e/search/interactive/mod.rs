//! `chorusctl search` without a query, on a terminal.

mod continuing;
mod leaving;
mod screen;
mod typing;

use std::process::Command;

use chorus_tests::fake_daemon::FakeRequest;
use chorus_tests::{Home, InteractiveCommand};

use crate::send::cli::{Calls, daemon};

const SIZE: (u16, u16) = (80, 24);

/// `chorusctl search` with these arguments, without a pager.
fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(home.bins.chorusctl);
    command.arg("search").args(args);
    command
}

/// Runs `chorusctl search` on a terminal of 80x24 until it can be typed into.
fn start(home: &Home, args: &[&str]) -> InteractiveCommand {
    start_command(&command(home, args))
}

fn start_command(command: &Command) -> InteractiveCommand {
    let running = InteractiveCommand::on_terminal_of(command, SIZE.0, SIZE.1);
    wait_for_row(&running, "type words to find");
    running
}

/// Waits until a row contains `text`; returns all rows.
fn wait_for_row(running: &InteractiveCommand, text: &str) -> Vec<String> {
    running.wait_for_rows(SIZE, 0, text, |rows| rows.iter().any(|row| row.contains(text)))
}

/// Types a text and waits until a row contains `shown`; returns all rows.
fn type_until(running: &mut InteractiveCommand, text: &str, shown: &str) -> Vec<String> {
    running.type_text(text);
    wait_for_row(running, shown)
}

/// Leaves by Esc. Returns everything that the terminal was sent.
fn leave(mut running: InteractiveCommand) -> String {
    running.type_text("\u{1b}");
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{output:?}");
    output
}

/// A daemon of which only searches are asked.
fn searches(home: &Home, search: impl Fn(FakeRequest<'_>) + Send + Sync + 'static) -> Calls {
    daemon(
        home,
        |asked| panic!("{} was asked", asked.method),
        move |asked| match &*asked.method {
            "search" => search(asked),
            method => panic!("{method} was asked"),
        },
    )
}
