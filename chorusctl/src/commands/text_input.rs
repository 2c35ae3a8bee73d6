//! Text input of a command: an argument or standard input.

use std::io::{self, IsTerminal as _, Read as _};

use chorus_proto::frame::MAX_FRAME;

use crate::error::{Error, os_error_text};
use crate::ui::Stderr;

/// Returns the text of an argument; `None` if standard input is to be read (no argument, or `-`).
///
/// # Errors
/// The text looks like a mistyped option (exit status 2).
pub fn text_argument(text: Option<String>, command: &str, verb: &str) -> Result<Option<String>, Error> {
    match text.filter(|text| text != "-") {
        Some(text) if looks_like_option(&text) => Err(Error::usage(format!("unexpected option {text}"))
            .with_hint(format!("to {verb} it as text: chorusctl {command} -- {text}"))),
        text => Ok(text),
    }
}

/// Returns true for a single word with a leading `-` such as `--jsnol`, unless `--` was given. `- an item` is text.
fn looks_like_option(text: &str) -> bool {
    text.starts_with('-') && !text.contains(char::is_whitespace) && !std::env::args_os().any(|arg| arg == "--")
}

/// Reads standard input to its end, unchanged.
///
/// # Errors
/// It cannot be read, is longer than [`MAX_FRAME`] (16 MiB), or is not UTF-8.
pub fn read_stdin() -> Result<String, Error> {
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        // At a terminal, say what is expected instead of waiting silently.
        Stderr::new(Default::default()).line("type the message, then press Ctrl-D");
    }
    let mut bytes = Vec::new();
    let read = stdin.by_ref().take(MAX_FRAME as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| stdin_error(&error))?;
    if bytes.len() > MAX_FRAME {
        return Err(Error::usage("standard input is larger than 16 MiB, the limit of one request")
            .with_hint("add it in parts, or import a whole transcript: chorusctl import FILE"));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8_error(error.utf8_error().valid_up_to()))
}

/// Removes one newline at the end, which editors and `echo` add.
#[must_use]
pub fn strip_last_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.truncate(text.len() - if text.ends_with("\r\n") { 2 } else { 1 });
    }
    text
}

/// The error for a failed read of standard input.
#[must_use]
pub fn stdin_error(error: &io::Error) -> Error {
    Error::failed(format!("failed to read standard input: {}", os_error_text(error)))
}

/// The error for standard input that is not UTF-8 after `valid` bytes.
#[must_use]
pub fn not_utf8_error(valid: usize) -> Error {
    Error::usage(format!("standard input is not UTF-8 (byte {})", valid + 1))
        .with_hint("to import a transcript in another encoding: chorusctl import FILE")
}
