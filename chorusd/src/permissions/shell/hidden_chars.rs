//! Characters that a reader does not see, or takes for others.

use chorus_proto::visible_text::is_invisible;

/// Whether a character hides: control characters but for tab and newline, and whatever is shown by a sign to whoever is asked
/// about it.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    match c {
        '\t' | '\n' | ' '..='~' => false,
        _ => c.is_control() || is_invisible(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_is_what_is_made_visible_and_every_space_of_another_kind_is_of_it() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| !matches!(c, '\t' | '\n' | ' ')) {
            let shown = chorus_proto::visible_text::make_visible(&c.to_string());
            assert_eq!(is_hidden(c), shown != c.to_string(), "{:04x}", c as u32);
            assert!(is_hidden(c) || !c.is_whitespace(), "{:04x}", c as u32);
        }
    }
}
