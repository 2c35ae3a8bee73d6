//! Text with numbers before its lines.

use std::fmt::Write as _;

/// Bytes of one line that are shown.
const WIDEST: usize = 2000;

/// Bytes of a word that is left out whole where a line is cut in it: half a secret would be known for none.
const WORD: usize = 512;

/// Adds a line, without its end, under its number. What is too long of it is counted.
pub fn add(text: &mut String, number: u64, line: &[u8]) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let shown = if line.len() > WIDEST { whole_words(&line[..WIDEST]) } else { line };
    let _ = write!(text, "{number:>6}\t{}", String::from_utf8_lossy(shown));
    if shown.len() < line.len() {
        let _ = write!(text, " [{} more bytes in this line]", line.len() - shown.len());
    }
    text.push('\n');
}

fn whole_words(cut: &[u8]) -> &[u8] {
    let word = cut.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
    if word <= WORD { &cut[..cut.len() - word] } else { cut }
}

/// How many lines there are; what stands behind the last newline is one.
#[must_use]
pub fn count(text: &[u8]) -> u64 {
    let newlines = memchr::memchr_iter(b'\n', text).count() as u64;
    newlines + u64::from(!text.is_empty() && !text.ends_with(b"\n"))
}

/// The number, from 1, of the line that this byte is in.
#[must_use]
pub fn number_at(text: &[u8], at: usize) -> u64 {
    memchr::memchr_iter(b'\n', &text[..at.min(text.len())]).count() as u64 + 1
}

/// `n things`, or `1 thing`.
#[must_use]
pub fn of(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_cut() {
        assert_eq!([count(b""), count(b"a"), count(b"a\n"), count(b"a\nb"), count(b"\n\n")], [0, 1, 1, 2, 2]);
        assert_eq!([number_at(b"a\nb", 0), number_at(b"a\nb", 2), number_at(b"a", 9)], [1, 2, 1]);
        let mut text = String::new();
        add(&mut text, 7, b"a\r");
        add(&mut text, 8, &[b'x'; WIDEST + 3]);
        assert!(text.starts_with("     7\ta\n     8\txx") && text.ends_with("x [3 more bytes in this line]\n"));
        let mut text = String::new();
        add(&mut text, 9, format!("{} secret", "x".repeat(WIDEST - 4)).as_bytes());
        assert!(text.ends_with("x  [6 more bytes in this line]\n"), "{text}");
        assert_eq!([of(1, "line"), of(2, "line")], ["1 line", "2 lines"]);
    }
}
