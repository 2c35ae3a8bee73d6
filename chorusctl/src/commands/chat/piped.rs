//! Chat from a file or a pipe: each line is a message.

use std::io::{self, BufRead as _, Read as _};

use chorus_proto::frame::MAX_FRAME;

use crate::app::App;
use crate::commands::send::interrupt::InterruptHandler;
use crate::commands::send::turn::{self, DisplayOptions, TurnOutcome};
use crate::commands::text_input;
use crate::error::Error;

/// Returns how turns are displayed if there is no terminal.
pub(super) fn display_options(thinking: bool) -> DisplayOptions {
    DisplayOptions {
        stream: true,
        thinking,
        daemon_gone_hint: turn::DAEMON_GONE_HINT,
        show_command: turn::SHOW_COMMAND,
    }
}

/// Sends standard input line by line. Stops at the first turn that fails, because later lines were written in view of
/// its reply.
pub(super) fn run(app: &mut App, interrupts: &InterruptHandler, thinking: bool) -> Result<(), Error> {
    let mut stdin = io::stdin().lock();
    let how = display_options(thinking);
    let (mut line, mut before) = (Vec::new(), 0);
    loop {
        line.clear();
        let most = MAX_FRAME as u64 + 1;
        let length =
            stdin.by_ref().take(most).read_until(b'\n', &mut line).map_err(|error| text_input::stdin_error(&error))?;
        if length == 0 {
            return Ok(());
        }
        if length > MAX_FRAME {
            return Err(Error::usage("a line is larger than 16 MiB, the limit of one request")
                .with_hint("split it: each line is sent as one message"));
        }
        let text =
            std::str::from_utf8(&line).map_err(|error| text_input::not_utf8_error(before + error.valid_up_to()))?;
        before += length;
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            continue;
        }
        let params = turn::keyed_params(app, text.to_owned());
        if let TurnOutcome::Cancelled(wanted) = turn::run(app, interrupts, &params, how)? {
            return Err(Error::failed(wanted.as_str()));
        }
    }
}
