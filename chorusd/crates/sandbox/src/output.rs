//! Captures the output of a command: all of it, or the beginning and end if it is long.

use std::sync::Arc;

use chorus_redact::{HeadTail, OutputTail, Redactor};

/// Limit on the bytes kept of the beginning, and of the end. With the line between them they stay below the limit on a
/// tool's result.
const MAX_HALF_LEN: usize = (256 << 10) / 2 - 64;

/// Collects output bytes as they arrive.
#[derive(Debug)]
pub(crate) struct OutputCapture {
    head: Vec<u8>,
    head_tail: HeadTail,
}

impl OutputCapture {
    /// `redactor` replaces secrets before anything is left out.
    pub(crate) fn new(redactor: Option<&Arc<Redactor>>) -> Self {
        Self { head: Vec::new(), head_tail: HeadTail::new(redactor, MAX_HALF_LEN as u64, MAX_HALF_LEN) }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.head_tail.push(bytes, &mut self.head);
    }

    /// Returns the output as text without NUL. If bytes were left out, a line in the middle says how many.
    pub(crate) fn finish(mut self) -> String {
        let OutputTail { left_out, end: mut tail } = self.head_tail.finish(&mut self.head);
        let left_out = usize::try_from(left_out).unwrap_or(usize::MAX);
        if left_out == 0 {
            self.head.append(&mut tail);
            let whole = to_text(&self.head);
            if whole.len() <= 2 * MAX_HALF_LEN {
                return whole;
            }
            // Replacing invalid bytes made the text longer than the output was.
            let middle = floor_char_boundary(&whole, whole.len() / 2);
            return join_halves(&whole[..middle], &whole[middle..], 0);
        }
        // Neither part may be cut inside a character.
        let open = self.head.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        let open = if open < 4 && is_incomplete_char(&self.head[self.head.len() - open..]) { open } else { 0 };
        let rest = tail.iter().take(3).take_while(|byte| (**byte & 0xc0) == 0x80).count();
        let (head, tail) = (to_text(&self.head[..self.head.len() - open]), to_text(&tail[rest..]));
        join_halves(&head, &tail, left_out + open + rest)
    }
}

/// Joins both parts, each truncated to [`MAX_HALF_LEN`].
fn join_halves(head: &str, tail: &str, left_out: usize) -> String {
    let kept = &head[..floor_char_boundary(head, MAX_HALF_LEN.min(head.len()))];
    let mut from = tail.len().saturating_sub(MAX_HALF_LEN);
    while !tail.is_char_boundary(from) {
        from += 1;
    }
    let left_out = left_out + (head.len() - kept.len()) + from;
    format!("{kept}\n[{left_out} bytes omitted]\n{}", &tail[from..])
}

/// Returns the start of the character at `at`.
fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn to_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text.into_owned() }
}

/// Returns true if more bytes could complete these to a character.
fn is_incomplete_char(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[u8]]) -> String {
        let mut output = OutputCapture::new(None);
        parts.iter().for_each(|part| output.push(part));
        output.finish()
    }

    #[test]
    fn short_output_is_kept_as_it_is_and_bytes_that_are_no_text_are_replaced() {
        assert_eq!(of(&[b"a\x1b[31m", b"b\n"]), "a\x1b[31mb\n");
        assert_eq!(of(&["é".as_bytes()[..1].into(), "é".as_bytes()[1..].into()]), "é");
        assert_eq!(of(&[b"a\0b\xff", b"c\xe2\x82"]), "a\u{fffd}b\u{fffd}c\u{fffd}");
        assert!(of(&[&[0xff; MAX_HALF_LEN], &[0; MAX_HALF_LEN]]).len() < 256 << 10);
    }

    #[test]
    fn of_a_flood_both_ends_are_kept_and_the_rest_is_counted() {
        for first in ["begin", "begi"] {
            let mut output = OutputCapture::new(None);
            output.push(first.as_bytes());
            for _ in 0..64 {
                output.push("é".repeat(20_000).as_bytes());
            }
            output.push(b"end");
            let text = output.finish();
            assert!(text.starts_with(&format!("{first}é")) && text.ends_with("éend") && text.len() < 256 << 10);
            let left: usize = text.split_once("\n[").unwrap().1.split_once(" bytes").unwrap().0.parse().unwrap();
            let line = format!("\n[{left} bytes omitted]\n");
            assert_eq!(text.len() - line.len() + left, first.len() + 3 + 64 * 40_000);
            assert!(!text.contains('\u{fffd}'));
        }
    }
}
