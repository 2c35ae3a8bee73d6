//! What a person types to mean a session.

use uuid::Uuid;

/// A session as it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// `latest` is 0, `latest~N` is N sessions before it.
    Latest(u64),
    /// One to four digits: a number that `history` showed, or else the beginning of a name.
    Number(u64, String),
    /// A whole UUID.
    Id(Uuid),
    /// A session_id, or the beginning of one or of a UUID.
    Text(String),
}

/// Shortest beginning of a name that is taken.
pub const MIN_PREFIX: usize = 4;

impl Selector {
    /// Reads `text`; anything that has no special form is a name or its beginning.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if text == "latest" {
            return Self::Latest(0);
        }
        if let Some(n) = text.strip_prefix("latest~").and_then(|n| n.parse().ok()) {
            return Self::Latest(n);
        }
        if (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) {
            return Self::Number(text.parse().unwrap_or(0), text.to_owned());
        }
        // Only the hyphenated form: 32 plain digits may be the beginning of nothing else, but are never shown.
        match Uuid::try_parse(text) {
            Ok(id) if text.len() == 36 => Self::Id(id),
            _ => Self::Text(text.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(Selector::parse("latest"), Selector::Latest(0));
        assert_eq!(Selector::parse("latest~12"), Selector::Latest(12));
        assert_eq!(Selector::parse("latest~x"), Selector::Text("latest~x".into()));
        assert_eq!(Selector::parse("0042"), Selector::Number(42, "0042".into()));
        assert_eq!(Selector::parse("12345"), Selector::Text("12345".into()));
        assert_eq!(Selector::parse("1f3a9c02"), Selector::Text("1f3a9c02".into()));
        let id = Uuid::new_v4();
        assert_eq!(Selector::parse(&id.to_string()), Selector::Id(id));
    }
}
