//! Formats lines with their numbers.

use std::fmt::Write as _;

/// Limit on the bytes shown of one line.
const MAX_LINE_LEN: usize = 2000;

/// A word up to this length is dropped whole if a line is cut inside it: the redactor would not recognise half a
/// secret.
const MAX_CUT_WORD_LEN: usize = 512;

/// Appends a line with its number. A line that is too long is cut, and the number of bytes left out is appended.
pub(super) fn push_numbered_line(text: &mut String, number: u64, line: &[u8]) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let shown = if line.len() > MAX_LINE_LEN { drop_cut_word(&line[..MAX_LINE_LEN]) } else { line };
    let _ = write!(text, "{number:>6}\t{}", String::from_utf8_lossy(shown));
    if shown.len() < line.len() {
        let _ = write!(text, " [{} more bytes in this line]", line.len() - shown.len());
    }
    text.push('\n');
}

fn drop_cut_word(cut: &[u8]) -> &[u8] {
    let word = cut.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
    if word <= MAX_CUT_WORD_LEN { &cut[..cut.len() - word] } else { cut }
}

/// Counts lines; text after the last newline is a line too.
#[must_use]
pub(super) fn count_lines(text: &[u8]) -> u64 {
    let newlines = memchr::memchr_iter(b'\n', text).count() as u64;
    newlines + u64::from(!text.is_empty() && !text.ends_with(b"\n"))
}

/// Returns the line number, counted from 1, of the byte at `at`.
#[must_use]
pub(super) fn line_number_at(text: &[u8], at: usize) -> u64 {
    memchr::memchr_iter(b'\n', &text[..at.min(text.len())]).count() as u64 + 1
}

/// Formats a count: `2 things`, or `1 thing`.
#[must_use]
pub(super) fn format_count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_cut() {
        assert_eq!(
            [count_lines(b""), count_lines(b"a"), count_lines(b"a\n"), count_lines(b"a\nb"), count_lines(b"\n\n")],
            [0, 1, 1, 2, 2]
        );
        assert_eq!([line_number_at(b"a\nb", 0), line_number_at(b"a\nb", 2), line_number_at(b"a", 9)], [1, 2, 1]);
        let mut text = String::new();
        push_numbered_line(&mut text, 7, b"a\r");
        push_numbered_line(&mut text, 8, &[b'x'; MAX_LINE_LEN + 3]);
        assert!(text.starts_with("     7\ta\n     8\txx") && text.ends_with("x [3 more bytes in this line]\n"));
        let mut text = String::new();
        push_numbered_line(&mut text, 9, format!("{} secret", "x".repeat(MAX_LINE_LEN - 4)).as_bytes());
        assert!(text.ends_with("x  [6 more bytes in this line]\n"), "{text}");
        assert_eq!([format_count(1, "line"), format_count(2, "line")], ["1 line", "2 lines"]);
    }
}
