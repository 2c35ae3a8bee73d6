//! A conversation out of a file or a pipe: one message a line.

use std::io::{self, BufRead as _, Read as _};

use chorus_proto::frame::MAX_FRAME;

use crate::app::App;
use crate::commands::given;
use crate::commands::send::cancel::Interrupts;
use crate::commands::send::turn::{self, Ended, How};
use crate::error::Failure;

/// Sends line by line.
///
/// # Errors
/// That of the first turn that failed: what comes after it was said in view of its reply.
pub fn run(app: &mut App, interrupts: &Interrupts, thinking: bool) -> Result<(), Failure> {
    let mut stdin = io::stdin().lock();
    let how = How { stream: true, thinking, gone: turn::LOOK_AGAIN };
    let (mut line, mut before) = (Vec::new(), 0);
    loop {
        line.clear();
        let most = MAX_FRAME as u64 + 1;
        let length =
            stdin.by_ref().take(most).read_until(b'\n', &mut line).map_err(|error| given::unreadable(&error))?;
        if length == 0 {
            return Ok(());
        }
        if length > MAX_FRAME {
            return Err(Failure::usage("a line is longer than 16 MiB, the most that one request holds")
                .hint("send it in parts: each line is a message"));
        }
        let text = std::str::from_utf8(&line).map_err(|error| given::not_text(before + error.valid_up_to()))?;
        before += length;
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            continue;
        }
        let params = turn::keyed(app.agent(), text.to_owned());
        if let Ended::Cancelled(wanted) = turn::run(app, interrupts, &params, how)? {
            return Err(Failure::failed(wanted.as_str()));
        }
    }
}
