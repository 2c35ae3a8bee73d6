//! Characters that a reader does not see, or takes for others.

/// Whether a character hides: control characters but for tab and newline, spaces that are no spaces to a shell, marks
/// of direction, joiners, tags and the like.
#[must_use]
pub fn hidden(c: char) -> bool {
    match c {
        '\t' | '\n' | ' '..='~' => false,
        _ if c.is_control() || c.is_whitespace() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}
