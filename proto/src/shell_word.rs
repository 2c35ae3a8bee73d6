//! Words of commands that a message suggests.

use std::borrow::Cow;

/// Returns `text` as one word of a POSIX shell: unchanged if it contains only letters, digits and `._:/@-`, otherwise in
/// single quotes.
#[must_use]
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:/@-".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_a_shell_needs() {
        for (text, word) in [
            ("local/qwen3:8b", "local/qwen3:8b"),
            ("a/b@1.0-x_y", "a/b@1.0-x_y"),
            ("local/my model", "'local/my model'"),
            ("a/$(id)", "'a/$(id)'"),
            ("a/it's", r"'a/it'\''s'"),
            ("-x", "'-x'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
