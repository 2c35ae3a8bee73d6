//! Splits text into sentences by the rules of Unicode, which take no tables for ASCII.

use unicode_segmentation::UnicodeSegmentation as _;

/// Splits `text` as [`UnicodeSegmentation::split_sentence_bounds`](unicode_segmentation::UnicodeSegmentation::split_sentence_bounds)
/// does.
pub(super) fn split_sentence_bounds(text: &str) -> impl Iterator<Item = &str> {
    let mut others = (!text.is_ascii()).then(|| text.split_sentence_bounds());
    let mut start = 0;
    std::iter::from_fn(move || match &mut others {
        Some(others) => others.next(),
        None => {
            let end = find_end(text.as_bytes(), start);
            let sentence = text.get(start..end).filter(|sentence| !sentence.is_empty());
            start = end;
            sentence
        }
    })
}

/// Returns the end of the sentence that begins at `start` of an ASCII text. The rules (`SB`) are those of Unicode's annex 29.
fn find_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(found) = text.get(at..).and_then(|rest| rest.iter().position(|byte| is_end_mark(*byte))) {
        let mark = at + found;
        at = mark + 1;
        let next = text.get(at).copied();
        match text[mark] {
            // SB3, SB4
            b'\r' if next == Some(b'\n') => return at + 1,
            b'\r' | b'\n' => return at,
            // SB6
            b'.' if next.is_some_and(|next| next.is_ascii_digit()) => continue,
            // SB7
            b'.' if next.is_some_and(|next| next.is_ascii_uppercase())
                && mark.checked_sub(1).is_some_and(|before| text[before].is_ascii_alphabetic()) =>
            {
                continue;
            }
            // SB8
            b'.' if goes_on_in_lower_case(&text[at..]) => continue,
            _ => {}
        }
        // SB9, SB10
        let closed = skip(text, at, is_closing_mark);
        let end = skip(text, closed, is_space);
        match text.get(end) {
            // SB8a
            Some(b',' | b'-' | b':' | b';' | b'.' | b'!' | b'?') => at = end,
            // The line ends after it.
            Some(b'\r' | b'\n') => at = end,
            // SB11
            _ => return end,
        }
    }
    text.len()
}

fn is_end_mark(byte: u8) -> bool {
    matches!(byte, b'.' | b'!' | b'?' | b'\n' | b'\r')
}

fn is_closing_mark(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'(' | b')' | b'[' | b']' | b'{' | b'}')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

/// Returns the first index from `at` on whose byte is not `skipped`.
fn skip(text: &[u8], at: usize, skipped: impl Fn(u8) -> bool) -> usize {
    text[at..].iter().position(|byte| !skipped(*byte)).map_or(text.len(), |found| at + found)
}

/// Returns whether a letter in lower case follows before any other letter, the end of the line, or the mark of another sentence.
fn goes_on_in_lower_case(text: &[u8]) -> bool {
    let next = text.iter().find(|byte| byte.is_ascii_alphabetic() || is_end_mark(**byte));
    next.is_some_and(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_same(text: &str) {
        let own: Vec<&str> = split_sentence_bounds(text).collect();
        assert_eq!(own, text.split_sentence_bounds().collect::<Vec<_>>(), "{text:?}");
    }

    #[test]
    fn ascii_is_split_as_the_rules_say() {
        for text in [
            "",
            " ",
            "One. Two! Three? four",
            "It took 3.5 s in v1.2.3 of main.py. \"Fine.\" (Yes.) No",
            "U.S.A. is. A.b. I.E.\r\n\r\nx.\r\ny.\n\nZ",
            "Wait... what?! - yes.  \t(no) \"a\" .",
        ] {
            assert_same(text);
        }
    }

    #[test]
    fn every_short_text_is_split_as_the_library_splits_it() {
        // One of each class, and two whose neighbours matter.
        let bytes = b"aB1.!\n\r \",$";
        for length in 1..=5_u32 {
            for number in 0..bytes.len().pow(length) {
                let text: String =
                    (0..length).map(|at| char::from(bytes[number / bytes.len().pow(at) % bytes.len()])).collect();
                assert_same(&text);
            }
        }
    }

    #[test]
    fn every_byte_of_ascii_has_the_class_of_the_library() {
        for byte in 0..=127_u8 {
            let byte = char::from(byte);
            for text in [
                "a.@",
                "a. @",
                "a.@ b",
                "a! @",
                "a!@B",
                "a!) @",
                "a.@1",
                "@.B",
                "@.b",
                "a.@\"B",
                "a.\"@ B",
                "@B@.@.@ B",
            ] {
                assert_same(&text.replace('@', &byte.to_string()));
            }
        }
    }
}
