//! Questions before something goes away.

use std::io::{self, Write as _};

use super::{safe, terminal};
use crate::error::Failure;

/// Whether a destructive command may go on.
///
/// # Errors
/// [`Failure`] where nobody can be asked, or the answer is no.
pub fn confirm(command: &str, question: &str) -> Result<(), Failure> {
    if !terminal::interactive() {
        return Err(unasked(command));
    }
    let mut stderr = io::stderr().lock();
    let asked = write!(stderr, "{} [y/N] ", safe::one_line(question)).and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = asked.and_then(|()| io::stdin().read_line(&mut answer));
    match (read, answer.trim().to_ascii_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        (Ok(0), _) => {
            let _ = writeln!(stderr);
            Err(Failure::refused("not confirmed: nothing was changed"))
        }
        _ => Err(Failure::refused("not confirmed: nothing was changed")),
    }
}

/// The refusal where nobody can be asked.
#[must_use]
pub fn unasked(command: &str) -> Failure {
    Failure::refused(format!("{command} wants a confirmation and this is not a terminal")).hint("pass --yes")
}
