//! Splits a line into words as a shell does: at white space, but not within quotation marks or after a backslash.

/// Returns the words, or `None` if a quotation mark is not closed.
#[must_use]
pub(super) fn split(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match (char, quote) {
            (_, Some(open)) if char == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (_, Some(_)) => word.get_or_insert_default().push(char),
            ('"' | '\'', None) => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (space, None) if space.is_whitespace() => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        let joined = |line: &str| split(line).map(|words| words.join("|"));
        assert_eq!(joined("  a  'b c' d\"e f\"g h\\ i '' ").as_deref(), Some("a|b c|de fg|h i|"));
        assert_eq!(joined("it\\'s \"a \\\" b\"").as_deref(), Some("it's|a \" b"));
        assert_eq!(joined("").as_deref(), Some(""));
        assert_eq!(joined("it's"), None);
    }
}
