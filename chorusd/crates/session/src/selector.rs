//! Parses the words with which a user selects a session.

use uuid::Uuid;

/// A session as the user named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// `latest` is 0; `latest~N` is the Nth session before it.
    Latest(u64),
    /// One to four digits: a number that `history` printed, or else the start of a name. Holds the digits as typed,
    /// too.
    Number(u64, String),
    /// A complete UUID with hyphens.
    Id(Uuid),
    /// `@`: the session that the live context was saved as or restored from.
    Live,
    /// `@NAME`: as `@`, for the conversation with this name.
    LiveOf(String),
    /// `-`: the newest session that is not the live one.
    Previous,
    /// `tag:NAME` or `#NAME`: the session with this tag.
    Tag(String),
    /// A session_id, or the start of one, of its slug or of a UUID, or words of a title.
    Text(String),
}

/// Length of the shortest prefix of a name or UUID that selects a session.
pub const MIN_PREFIX: usize = 4;

/// Length of the shortest part of a slug or title that selects a session.
pub const MIN_WORD: usize = 3;

impl Selector {
    /// Parses `text`. Anything without a special form is a name or the start of one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        if text == "latest" {
            return Self::Latest(0);
        }
        match text {
            "@" => return Self::Live,
            "-" => return Self::Previous,
            _ => {}
        }
        if let Some(name) = text.strip_prefix('@') {
            return Self::LiveOf(name.to_owned());
        }
        if let Some(tag) = text.strip_prefix("tag:").or_else(|| text.strip_prefix('#')) {
            return Self::Tag(tag.to_owned());
        }
        if let Some(n) = text.strip_prefix("latest~").and_then(|n| n.parse().ok()) {
            return Self::Latest(n);
        }
        if (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()) {
            return Self::Number(text.parse().unwrap_or(0), text.to_owned());
        }
        // Only the hyphenated form counts: 32 digits without hyphens are never printed.
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
        assert_eq!((Selector::parse("@"), Selector::parse(" - ")), (Selector::Live, Selector::Previous));
        assert_eq!(Selector::parse("@review"), Selector::LiveOf("review".into()));
        assert_eq!(Selector::parse("tag:billing"), Selector::Tag("billing".into()));
        assert_eq!(Selector::parse("#billing"), Selector::Tag("billing".into()));
        let id = Uuid::new_v4();
        assert_eq!(Selector::parse(&id.to_string()), Selector::Id(id));
    }
}
