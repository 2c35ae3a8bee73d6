//! A text that comes in pieces: what may become a secret is held back until that can be told, and all else goes on at once.

use std::sync::Arc;

use super::alphabet::{base64, dotted};
use super::find::{Needles, Next};
use super::redactor::{Redactor, into_text};
use super::view::{Line, View, mark};

/// Bytes that are held back at most. A secret that is longer is taken for one as far as it has come, and what goes on with it
/// is left out.
const HELD: usize = 16 << 10;

/// Bytes of what has gone on that are remembered: as much as says that what follows is a secret.
const BEFORE: usize = 64;

/// One text on its way.
#[derive(Debug)]
pub struct Flow {
    redactor: Arc<Redactor>,
    needles: Arc<Needles>,
    /// What went on last, and behind `done` what is held back.
    text: Vec<u8>,
    done: usize,
    /// How the line that `text` begins in the middle of begins.
    line: Line,
    /// The end of what is gone already: nothing begins before it.
    sealed: usize,
    /// A secret was too long: what goes on with it is left out.
    swallows: bool,
}

impl Flow {
    pub(super) fn new(redactor: Arc<Redactor>) -> Self {
        let needles = redactor.needles();
        Self { redactor, needles, text: Vec::new(), done: 0, line: None, sealed: 0, swallows: false }
    }

    /// Takes a piece; gives what can go on.
    #[must_use]
    pub fn push(&mut self, piece: String) -> String {
        let held = self.text.len() > self.done;
        self.text.extend_from_slice(piece.as_bytes());
        if !held && !self.swallows && self.next(&View::new(&self.text, false, self.line)) == Next::Nothing {
            self.done = self.text.len();
            self.forget();
            return piece;
        }
        let mut out = Vec::new();
        self.run(false, &mut out);
        into_text(out)
    }

    /// As [`Flow::push`], for bytes that need not be text.
    pub fn push_bytes(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.text.extend_from_slice(piece);
        self.run(false, out);
    }

    /// What was held back. `cut`: the text is not whole, and a piece of a secret at its end is one.
    #[must_use]
    pub fn end(&mut self, cut: bool) -> String {
        let mut out = Vec::new();
        self.end_bytes(cut, &mut out);
        into_text(out)
    }

    /// As [`Flow::end`].
    pub fn end_bytes(&mut self, cut: bool, out: &mut Vec<u8>) {
        self.run(true, out);
        if cut {
            let view = View::new(&self.text, false, self.line);
            if let Some(found) = self.needles.piece(&view, self.done) {
                out.extend_from_slice(&self.text[self.done..found.part.start]);
                self.redactor.mark(&self.needles, &found, &view, out);
                self.done = found.part.end;
            }
        }
        out.extend_from_slice(&self.text[self.done..]);
        self.done = self.text.len();
        self.forget();
    }

    fn next(&self, view: &View<'_>) -> Next {
        self.needles.next(view, self.done.saturating_sub(BEFORE).max(self.sealed), self.done)
    }

    /// Hands out what can go on; at the end of all, secrets that end with it.
    fn run(&mut self, last: bool, out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.text);
        let mut forced = last;
        let mut view = View::new(&text, forced, self.line);
        loop {
            if self.swallows {
                let rest = &text[self.done..];
                let more = rest.iter().position(|byte| !goes_on(*byte) && !byte.is_ascii_whitespace());
                self.done += more.unwrap_or(rest.len());
                if more.is_none() {
                    break;
                }
                self.swallows = false;
            }
            if view.whole != forced {
                view = View::new(&text, forced, self.line);
            }
            match self.next(&view) {
                Next::Secret(found) => {
                    out.extend_from_slice(&text[self.done..found.part.start]);
                    self.redactor.mark(&self.needles, &found, &view, out);
                    self.done = found.part.end;
                    self.sealed = self.done;
                    self.swallows = forced && !last && self.done == text.len();
                    forced = last;
                }
                Next::Open(from) => {
                    out.extend_from_slice(&text[self.done..from]);
                    self.done = from;
                    let rest = &text[from..];
                    if rest.last().is_some_and(u8::is_ascii_whitespace) && rest.trim_ascii_end().len() <= 2 {
                        // A blank or the end of a line behind a word of two letters: no token is broken so near its beginning.
                        out.extend_from_slice(&text[from..]);
                        self.done = text.len();
                        break;
                    }
                    if text.len() - from <= HELD {
                        break;
                    }
                    forced = true;
                }
                Next::Nothing if last => break,
                Next::Nothing => {
                    out.extend_from_slice(&text[self.done..]);
                    self.done = text.len();
                    break;
                }
            }
        }
        self.text = text;
        self.forget();
    }

    fn forget(&mut self) {
        if self.done > 2 * BEFORE {
            let gone = self.done - BEFORE;
            self.line = match memchr::memrchr(b'\n', &self.text[..gone]) {
                Some(end) if end + 1 == gone => None,
                Some(end) => Some(mark(&self.text, end + 1)),
                None => Some(self.line.unwrap_or_else(|| mark(&self.text, 0))),
            };
            self.text.drain(..gone);
            self.done = BEFORE;
            self.sealed = self.sealed.saturating_sub(gone);
        }
    }
}

/// Returns true if more of a secret may follow a byte at which it ended: for what was cut off.
fn goes_on(byte: u8) -> bool {
    dotted(byte) || base64(byte)
}
