//! Numbers with a noun.

/// Formats `1 message`, `2,000 messages`, `3 entries`.
#[must_use]
pub fn pluralize(number: u64, noun: &str) -> String {
    let digits = group_digits(number);
    match noun.strip_suffix("ry") {
        _ if number == 1 => format!("{digits} {noun}"),
        Some(stem) => format!("{digits} {stem}ries"),
        None => format!("{digits} {noun}s"),
    }
}

/// Groups digits: `9,940`.
#[must_use]
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::pluralize;

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| pluralize(number, "message")), ["0 messages", "1 message", "2 messages"]);
        assert_eq!(pluralize(1_234_567, "message"), "1,234,567 messages");
        assert_eq!([1, 2].map(|number| pluralize(number, "entry")), ["1 entry", "2 entries"]);
    }
}
