//! Confirmation of destructive commands.

use std::io::{self, Write as _};

use super::{sanitize, terminal, text};
use crate::error::Error;

/// Asks a yes/no question on the terminal.
///
/// # Errors
/// There is no terminal, or the answer is not yes (exit status 6).
pub fn ask(command: &str, question: &str) -> Result<(), Error> {
    ask_about(command, &[], question)
}

/// Prints what a question is about, an entry per line, and asks it on the terminal.
///
/// # Errors
/// There is no terminal, or the answer is not yes (exit status 6).
pub fn ask_about(command: &str, list: &[String], question: &str) -> Result<(), Error> {
    if !terminal::can_prompt() {
        return Err(no_terminal_error(command));
    }
    let mut stderr = io::stderr().lock();
    let columns = terminal::columns(&stderr);
    for entry in list {
        let _ = writeln!(stderr, "{}", text::wrap_sentence(&sanitize::one_line(entry), columns));
    }
    let question = format!("{} [y/N]", sanitize::one_line(question));
    // The answer is typed after it.
    let question = text::wrap_sentence(&question, columns.saturating_sub(2));
    let asked = write!(stderr, "{question} ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = asked.and_then(|()| io::stdin().read_line(&mut answer));
    match (read, answer.trim().to_ascii_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        (Ok(0), _) => {
            let _ = writeln!(stderr);
            Err(Error::cancelled())
        }
        _ => Err(Error::cancelled()),
    }
}

/// The error if there is no terminal to ask on.
#[must_use]
pub fn no_terminal_error(command: &str) -> Error {
    Error::refused(format!("{command} needs confirmation, and this is not a terminal"))
        .with_hint("pass --yes to confirm")
}
