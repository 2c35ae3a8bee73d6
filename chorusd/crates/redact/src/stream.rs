//! Redacts a text that arrives in pieces. Holds back what may become a secret until that is decided, and passes on
//! everything else immediately.

use std::sync::Arc;

use super::alphabet::{is_base64, is_base64url_or_dot};
use super::normalized_text::{LineStart, View, line_mark};
use super::redactor::{Redactor, into_string_lossy};
use super::scanner::{Automaton, ScanResult};

/// Largest number of bytes that are held back. A longer secret is replaced as far as it has arrived, and its
/// continuation is dropped.
const MAX_HELD_BYTES: usize = 16 << 10;

/// Bytes of emitted text that are kept, as context that may show that a secret follows.
const CONTEXT_BYTES: usize = 64;

/// The state of one stream.
#[derive(Debug)]
pub struct StreamRedactor {
    redactor: Arc<Redactor>,
    automaton: Arc<Automaton>,
    /// The text that was emitted last and, from `emitted` on, the text that is held back.
    text: Vec<u8>,
    emitted: usize,
    /// The mark at the start of the line in whose middle `text` begins.
    line_start: LineStart,
    /// The end of the last secret. No match begins before it.
    search_start: usize,
    /// A secret was too long; its continuation is dropped.
    skips_rest: bool,
}

impl StreamRedactor {
    pub(super) fn new(redactor: Arc<Redactor>) -> Self {
        let automaton = redactor.automaton();
        Self { redactor, automaton, text: Vec::new(), emitted: 0, line_start: None, search_start: 0, skips_rest: false }
    }

    /// Adds a piece. Returns the text that can be passed on.
    #[must_use]
    pub fn push(&mut self, piece: String) -> String {
        let held = self.text.len() > self.emitted;
        self.text.extend_from_slice(piece.as_bytes());
        if !held
            && !self.skips_rest
            && self.next_secret(&View::new(&self.text, false, self.line_start)) == ScanResult::Nothing
        {
            self.emitted = self.text.len();
            self.drop_emitted();
            return piece;
        }
        let mut out = Vec::new();
        self.advance(false, &mut out);
        into_string_lossy(out)
    }

    /// As [`StreamRedactor::push`], for bytes that need not be valid UTF-8.
    pub fn push_bytes(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.text.extend_from_slice(piece);
        self.advance(false, out);
    }

    /// Returns the text that was held back. `cut` means that the text was truncated, so that a partial secret at its
    /// end is replaced, too.
    #[must_use]
    pub fn finish(&mut self, cut: bool) -> String {
        let mut out = Vec::new();
        self.finish_bytes(cut, &mut out);
        into_string_lossy(out)
    }

    /// As [`StreamRedactor::finish`], for bytes.
    pub fn finish_bytes(&mut self, cut: bool, out: &mut Vec<u8>) {
        self.advance(true, out);
        if cut {
            let view = View::new(&self.text, false, self.line_start);
            if let Some(found) = self.automaton.find_truncated(&view, self.emitted) {
                out.extend_from_slice(&self.text[self.emitted..found.text_range.start]);
                self.redactor.write_placeholder(&self.automaton, &found, &view, out);
                self.emitted = found.text_range.end;
            }
        }
        out.extend_from_slice(&self.text[self.emitted..]);
        self.emitted = self.text.len();
        self.drop_emitted();
    }

    fn next_secret(&self, view: &View<'_>) -> ScanResult {
        self.automaton.next_secret(
            view,
            self.emitted.saturating_sub(CONTEXT_BYTES).max(self.search_start),
            self.emitted,
        )
    }

    /// Emits what can be passed on. If `last` is true, also what was held back.
    fn advance(&mut self, last: bool, out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.text);
        let mut forced = last;
        let mut view = View::new(&text, forced, self.line_start);
        loop {
            if self.skips_rest {
                let rest = &text[self.emitted..];
                let more = rest.iter().position(|byte| !may_continue_secret(*byte) && !byte.is_ascii_whitespace());
                self.emitted += more.unwrap_or(rest.len());
                if more.is_none() {
                    break;
                }
                self.skips_rest = false;
            }
            if view.is_complete != forced {
                view = View::new(&text, forced, self.line_start);
            }
            match self.next_secret(&view) {
                ScanResult::Secret(found) => {
                    out.extend_from_slice(&text[self.emitted..found.text_range.start]);
                    self.redactor.write_placeholder(&self.automaton, &found, &view, out);
                    self.emitted = found.text_range.end;
                    self.search_start = self.emitted;
                    self.skips_rest = forced && !last && self.emitted == text.len();
                    forced = last;
                }
                ScanResult::Incomplete(from) => {
                    out.extend_from_slice(&text[self.emitted..from]);
                    self.emitted = from;
                    let rest = &text[from..];
                    if rest.last().is_some_and(u8::is_ascii_whitespace) && rest.trim_ascii_end().len() <= 2 {
                        // White space after a word of at most two letters: no token is broken so near its start.
                        out.extend_from_slice(&text[from..]);
                        self.emitted = text.len();
                        break;
                    }
                    if text.len() - from <= MAX_HELD_BYTES {
                        break;
                    }
                    forced = true;
                }
                ScanResult::Nothing if last => break,
                ScanResult::Nothing => {
                    out.extend_from_slice(&text[self.emitted..]);
                    self.emitted = text.len();
                    break;
                }
            }
        }
        self.text = text;
        self.drop_emitted();
    }

    fn drop_emitted(&mut self) {
        if self.emitted > 2 * CONTEXT_BYTES {
            let gone = self.emitted - CONTEXT_BYTES;
            self.line_start = match memchr::memrchr(b'\n', &self.text[..gone]) {
                Some(end) if end + 1 == gone => None,
                Some(end) => Some(line_mark(&self.text, end + 1)),
                None => Some(self.line_start.unwrap_or_else(|| line_mark(&self.text, 0))),
            };
            self.text.drain(..gone);
            self.emitted = CONTEXT_BYTES;
            self.search_start = self.search_start.saturating_sub(gone);
        }
    }
}

/// Returns whether a secret that was cut off may continue with `byte`.
fn may_continue_secret(byte: u8) -> bool {
    is_base64url_or_dot(byte) || is_base64(byte)
}
