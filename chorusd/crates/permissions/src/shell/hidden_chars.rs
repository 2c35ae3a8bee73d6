//! Characters that people cannot see or confuse with others.

use chorus_proto::visible_text::is_invisible;

/// Returns true for control characters (except tab and newline) and for characters that approval prompts replace by a
/// visible sign.
#[must_use]
pub(super) fn is_hidden(c: char) -> bool {
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
