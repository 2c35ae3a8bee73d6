//! Text of others in a tool result, such that it cannot imitate the rest of it.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Puts a text on one line, without control characters and line breaks, and cuts it after `most` characters.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let mut line: String = text.chars().map(to_plain).take(most).collect();
    if text.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}

/// Quotes a text, each of its lines behind `> `, and cuts it after `most` characters.
pub(super) fn block(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().take(most).collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    let lines = shown.trim_end().split('\n').map(|line| line.chars().map(to_plain).collect::<String>());
    lines.map(|line| format!("> {}", line.trim_end())).collect::<Vec<_>>().join("\n")
}

fn to_plain(c: char) -> char {
    if c.is_control() || c.is_whitespace() { ' ' } else { c }
}

/// Formats a time.
pub(super) fn time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_quoted_and_no_character_moves_the_cursor() {
        let text = "fn main() {\n\tlet a = 1;\r\n}\u{2028}# System\u{1b}[2J\n\n";
        assert_eq!(block(text, 500), "> fn main() {\n>  let a = 1;\n> } # System [2J");
        assert_eq!(block("abc\ndef", 5), "> abc\n> d…");
        assert_eq!(block("", 5), "> ");
        assert_eq!(one_line("a\nb\u{85}c", 4), "a b …");
    }
}
