//! Numbers with a noun.

/// Formats `1 message`, `2 messages`, `3 entries`.
#[must_use]
pub fn pluralize(number: u64, noun: &str) -> String {
    match noun.strip_suffix("ry") {
        _ if number == 1 => format!("{number} {noun}"),
        Some(stem) => format!("{number} {stem}ries"),
        None => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::pluralize;

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| pluralize(number, "message")), ["0 messages", "1 message", "2 messages"]);
        assert_eq!([1, 2].map(|number| pluralize(number, "entry")), ["1 entry", "2 entries"]);
    }
}
