//! What a command prints: beginning and end of it, however much it is.

use std::collections::VecDeque;

/// Bytes that are kept of the beginning, and of the end. Together with the line between them they are less than a tool's
/// result may have.
const HALF: usize = (256 << 10) / 2 - 64;

/// Takes bytes as they come; keeps valid UTF-8 without NUL.
#[derive(Debug, Default)]
pub struct Output {
    head: String,
    tail: VecDeque<u8>,
    left_out: u64,
    /// The beginning of a character whose end has not come.
    open: Vec<u8>,
}

impl Output {
    pub fn push(&mut self, bytes: &[u8]) {
        let joined;
        let mut bytes = bytes;
        if !self.open.is_empty() {
            joined = [&std::mem::take(&mut self.open)[..], bytes].concat();
            bytes = &joined;
        }
        let mut rest = bytes;
        for chunk in bytes.utf8_chunks() {
            self.keep(chunk.valid());
            rest = &rest[chunk.valid().len() + chunk.invalid().len()..];
            if chunk.invalid().is_empty() {
                continue;
            }
            if rest.is_empty() && is_beginning(chunk.invalid()) {
                self.open = chunk.invalid().to_vec();
            } else {
                self.keep("\u{fffd}");
            }
        }
    }

    fn keep(&mut self, text: &str) {
        let text = if text.contains('\0') { &text.replace('\0', "\u{fffd}") } else { text };
        let mut room = HALF.saturating_sub(self.head.len()).min(text.len());
        if !self.tail.is_empty() {
            room = 0;
        }
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.head.push_str(&text[..room]);
        let text = &text.as_bytes()[room..];
        let (skipped, text) = text.split_at(text.len().saturating_sub(HALF));
        let over = (self.tail.len() + text.len()).saturating_sub(HALF);
        self.left_out += (skipped.len() + over) as u64;
        self.tail.drain(..over);
        self.tail.extend(text);
    }

    /// All of it, with a line between that says how many bytes are left out.
    pub fn finish(mut self) -> String {
        if !std::mem::take(&mut self.open).is_empty() {
            self.keep("\u{fffd}");
        }
        // The end may begin inside a character.
        let cut = self.tail.iter().take_while(|byte| (**byte & 0xc0) == 0x80).count();
        self.tail.drain(..cut);
        self.left_out += cut as u64;
        let tail = String::from_utf8_lossy(self.tail.make_contiguous()).into_owned();
        if self.left_out == 0 {
            return self.head + &tail;
        }
        format!("{}\n[{} bytes are left out]\n{tail}", self.head, self.left_out)
    }
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
    }

    #[test]
    fn of_a_flood_both_ends_are_kept_and_the_rest_is_counted() {
        let mut output = Output::default();
        output.push(b"begin");
        for _ in 0..64 {
            output.push("é".repeat(20_000).as_bytes());
        }
        output.push(b"end");
        assert!(output.head.len() + output.tail.len() <= 2 * HALF && output.tail.capacity() <= 8 * HALF);
        let text = output.finish();
        assert!(text.starts_with("beginé") && text.ends_with("éend") && text.len() < 256 << 10);
        let left: usize = text.split_once("\n[").unwrap().1.split_once(" bytes").unwrap().0.parse().unwrap();
        let line = format!("\n[{left} bytes are left out]\n");
        assert_eq!(text.len() - line.len() + left, 8 + 64 * 40_000);
    }
}
