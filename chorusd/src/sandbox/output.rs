//! What a command prints: beginning and end of it, however much it is.

use std::sync::Arc;

use crate::redact::{Flow, Redactor};

/// Bytes that are kept of the beginning, and of the end. Together with the line between them they are less than a tool's
/// result may have.
const HALF: usize = (256 << 10) / 2 - 64;
/// Bytes of the end that are gathered before the older ones are let go.
const GATHERED: usize = 4 * HALF;

/// Takes bytes as they come.
#[derive(Debug, Default)]
pub struct Output {
    head: Vec<u8>,
    tail: Vec<u8>,
    left_out: usize,
    /// Takes secrets out before anything is left out: half of one is none that could be found.
    flow: Option<Flow>,
}

impl Output {
    /// `redactor`: what takes secrets out of it.
    pub fn new(redactor: Option<&Arc<Redactor>>) -> Self {
        Self { flow: redactor.map(Redactor::flow), ..Self::default() }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.flow {
            None => self.keep(bytes),
            Some(flow) => {
                let mut clean = Vec::with_capacity(bytes.len());
                flow.push_bytes(bytes, &mut clean);
                self.keep(&clean);
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(HALF - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > GATHERED {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..over);
        self.left_out += over;
    }

    /// All of it as text without NUL, with a line between that says how many bytes are left out.
    pub fn finish(mut self) -> String {
        if let Some(mut flow) = self.flow.take() {
            let mut last = Vec::new();
            // It may have been ended in the middle of one.
            flow.end_bytes(true, &mut last);
            self.keep(&last);
        }
        self.cut();
        if self.left_out == 0 {
            self.head.append(&mut self.tail);
            let whole = text(&self.head);
            if whole.len() <= 2 * HALF {
                return whole;
            }
            // What is no text takes more room than it had.
            let middle = floor(&whole, whole.len() / 2);
            return join(&whole[..middle], &whole[middle..], 0);
        }
        // Neither end is cut inside a character.
        let open = self.head.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        let open = if open < 4 && is_beginning(&self.head[self.head.len() - open..]) { open } else { 0 };
        let rest = self.tail.iter().take(3).take_while(|byte| (**byte & 0xc0) == 0x80).count();
        let (head, tail) = (text(&self.head[..self.head.len() - open]), text(&self.tail[rest..]));
        join(&head, &tail, self.left_out + open + rest)
    }
}

/// At most `HALF` of each.
fn join(head: &str, tail: &str, left_out: usize) -> String {
    let kept = &head[..floor(head, HALF.min(head.len()))];
    let mut from = tail.len().saturating_sub(HALF);
    while !tail.is_char_boundary(from) {
        from += 1;
    }
    let left_out = left_out + (head.len() - kept.len()) + from;
    format!("{kept}\n[{left_out} bytes are left out]\n{}", &tail[from..])
}

/// The beginning of the character at `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.into_owned() }
}

/// Whether more bytes could make a character of it.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[u8]]) -> String {
        let mut output = Output::default();
        parts.iter().for_each(|part| output.push(part));
        output.finish()
    }

    #[test]
    fn short_output_is_kept_as_it_is_and_bytes_that_are_no_text_are_replaced() {
        assert_eq!(of(&[b"a\x1b[31m", b"b\n"]), "a\x1b[31mb\n");
        assert_eq!(of(&["é".as_bytes()[..1].into(), "é".as_bytes()[1..].into()]), "é");
        assert_eq!(of(&[b"a\0b\xff", b"c\xe2\x82"]), "a\u{fffd}b\u{fffd}c\u{fffd}");
        assert!(of(&[&[0xff; HALF], &[0; HALF]]).len() < 256 << 10);
    }

    #[test]
    fn no_secret_is_cut_in_half_by_what_is_left_out() {
        let redactor = Arc::new(Redactor::new(|| [1; 32]));
        let key = "own-key-0123456789-abcdefghij";
        redactor.learn(&crate::config::Secret::new(key.into()));
        for room in 0..key.len() {
            let mut output = Output::new(Some(&redactor));
            output.push("x".repeat(HALF - room).as_bytes());
            output.push(key[..room / 2].as_bytes());
            output.push(key[room / 2..].as_bytes());
            output.push(" ".repeat(9 * HALF).as_bytes());
            output.push(key.as_bytes());
            output.push(" ".repeat(HALF - room).as_bytes());
            let text = output.finish();
            assert!(!text.contains("own-key") && !text.contains("abcdefghij"), "{room}");
        }
    }

    #[test]
    fn of_a_flood_both_ends_are_kept_and_the_rest_is_counted() {
        for first in ["begin", "begi"] {
            let mut output = Output::default();
            output.push(first.as_bytes());
            for _ in 0..64 {
                output.push("é".repeat(20_000).as_bytes());
            }
            output.push(b"end");
            assert!(output.tail.capacity() <= 3 * GATHERED);
            let text = output.finish();
            assert!(text.starts_with(&format!("{first}é")) && text.ends_with("éend") && text.len() < 256 << 10);
            let left: usize = text.split_once("\n[").unwrap().1.split_once(" bytes").unwrap().0.parse().unwrap();
            let line = format!("\n[{left} bytes are left out]\n");
            assert_eq!(text.len() - line.len() + left, first.len() + 3 + 64 * 40_000);
            assert!(!text.contains('\u{fffd}'));
        }
    }
}
