//! A text that comes in pieces: what may become a secret is held back until that can be told, and all else goes on at once.

use std::sync::Arc;

use super::find::{Needles, Next};
use super::look::{Bytes, goes_on};
use super::redactor::{Redactor, into_text};

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
    /// A secret was too long: what goes on with it is left out.
    swallows: bool,
}

impl Flow {
    pub(super) fn new(redactor: Arc<Redactor>) -> Self {
        let needles = redactor.needles();
        Self { redactor, needles, text: Vec::new(), done: 0, swallows: false }
    }

    /// Takes a piece; gives what can go on.
    #[must_use]
    pub fn push(&mut self, piece: String) -> String {
        let held = self.text.len() > self.done;
        self.text.extend_from_slice(piece.as_bytes());
        if !held && !self.swallows && self.next(false) == Next::Nothing {
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
        if cut && let Some(found) = self.needles.piece(&self.text, self.done) {
            out.extend_from_slice(&self.text[self.done..found.part.start]);
            self.redactor.mark(&self.needles, &found, &self.text[found.part.clone()], out);
            self.done = found.part.end;
        }
        out.extend_from_slice(&self.text[self.done..]);
        self.done = self.text.len();
        self.forget();
    }

    fn next(&self, whole: bool) -> Next {
        let text = Bytes { all: &self.text, whole };
        self.needles.next(&text, self.done.saturating_sub(BEFORE), self.done)
    }

    /// Hands out what can go on; at the end of all, secrets that end with it.
    fn run(&mut self, last: bool, out: &mut Vec<u8>) {
        let mut forced = last;
        loop {
            if self.swallows {
                let rest = &self.text[self.done..];
                let more = rest.iter().position(|byte| !goes_on(*byte) && !byte.is_ascii_whitespace());
                self.done += more.unwrap_or(rest.len());
                if more.is_none() {
                    break;
                }
                self.swallows = false;
            }
            match self.next(forced) {
                Next::Secret(found) => {
                    out.extend_from_slice(&self.text[self.done..found.part.start]);
                    self.redactor.mark(&self.needles, &found, &self.text[found.part.clone()], out);
                    self.done = found.part.end;
                    self.swallows = forced && !last && self.done == self.text.len();
                    forced = last;
                }
                Next::Open(from) => {
                    out.extend_from_slice(&self.text[self.done..from]);
                    self.done = from;
                    if self.text.len() - from <= HELD {
                        break;
                    }
                    forced = true;
                }
                Next::Nothing if last => break,
                Next::Nothing => {
                    out.extend_from_slice(&self.text[self.done..]);
                    self.done = self.text.len();
                    break;
                }
            }
        }
        self.forget();
    }

    fn forget(&mut self) {
        if self.done > 4 * BEFORE {
            self.text.drain(..self.done - BEFORE);
            self.done = BEFORE;
        }
    }
}
