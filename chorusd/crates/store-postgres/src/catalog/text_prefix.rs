//! Ranges of texts with the same prefix, in the order of bytes.

/// Returns the first text after all with this prefix; `None` if every text from the prefix on has it.
pub(crate) fn prefix_end(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The range leaves out the surrogates.
        if let Some(next) = (last..=char::MAX).nth(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_follows_all_texts_that_begin_with_it() {
        for (prefix, end) in [
            ("", None),
            ("a", Some("b")),
            ("approval:", Some("approval;")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
        ] {
            assert_eq!(prefix_end(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
