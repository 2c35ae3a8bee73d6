//! Finds sessions by fields of their headers.

use chorus_base::scripts::is_unspaced;
use std::borrow::Cow;

use chorus_proto::Trigger;
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use crate::SessionQuery;

/// The fields of a header by which sessions are found. To parse all of it takes several times as long.
#[derive(Debug, Deserialize)]
pub struct HeaderFields<'a> {
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    #[serde(borrow)]
    summary: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tags: Vec<Cow<'a, str>>,
    #[serde(borrow, default)]
    conversation: Option<ConversationName<'a>>,
    #[serde(default)]
    source: Option<SourceTime>,
    saved_at: Timestamp,
    started_at: Timestamp,
    trigger: Trigger,
}

/// The time of an imported conversation.
#[derive(Debug, Deserialize)]
struct SourceTime {
    ended_at: Timestamp,
}

/// The conversation of a session, with the name that it had when the session was saved.
#[derive(Debug, Deserialize)]
struct ConversationName<'a> {
    id: Uuid,
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl<'a> HeaderFields<'a> {
    /// Parses the fields of a header; `None` if it has none of them.
    #[must_use]
    pub fn parse(header: &'a str) -> Option<Self> {
        serde_json::from_str(header).ok()
    }

    /// Returns the title in lowercase letters.
    #[must_use]
    pub fn lower_title(&self) -> Option<String> {
        self.description.as_ref().map(|title| title.to_lowercase())
    }

    /// Returns when the conversation was held: an import that does not say when it ended counts by its start.
    #[must_use]
    pub fn held_at(&self) -> Timestamp {
        match &self.source {
            Some(source) => source.ended_at,
            None if self.trigger == Trigger::Import => self.started_at,
            None => self.saved_at,
        }
    }

    /// Returns the text that the words of a query are searched in, in lowercase letters: the name `session_id`, the title,
    /// the conversation and the tags, one per line.
    #[must_use]
    pub fn search_text(&self, session_id: &str) -> String {
        self.lower_text(session_id, None)
    }

    fn lower_text(&self, session_id: &str, conversation_now: Option<&str>) -> String {
        // Without a title, the summary is shown in its place.
        let title = self.description.as_ref().or(self.summary.as_ref()).map_or("", |title| &**title);
        let conversation = self.conversation.as_ref().map(|conversation| &*conversation.name);
        let called = conversation.into_iter().chain(conversation_now);
        let parts = [session_id, title].into_iter().chain(called).chain(self.tags.iter().map(|tag| &**tag));
        parts.collect::<Vec<_>>().join("\n").to_lowercase()
    }

    /// Returns true if the session, which has the name `session_id`, has the time and the words that `listing` asks for;
    /// `words` are those in lowercase letters.
    #[must_use]
    pub fn matches(&self, session_id: &str, listing: &SessionQuery, words: &[String]) -> bool {
        if listing.since.is_some_and(|since| self.held_at() < since) {
            return false;
        }
        if listing.until.is_some_and(|until| self.held_at() >= until) {
            return false;
        }
        if words.is_empty() {
            return true;
        }
        let conversation = self.conversation.as_ref();
        let now = conversation.and_then(|conversation| listing.conversation_texts.get(&conversation.id));
        let text = self.lower_text(session_id, now.map(|text| &**text));
        words.iter().all(|word| text.contains(&**word))
    }
}

/// Returns true if `words` occur in `title` and are not a part of longer words there. In scripts without spaces between words, each
/// letter is one.
#[must_use]
pub fn has_words(title: &str, words: &str) -> bool {
    let continues = |outside: Option<char>, edge: Option<char>| {
        outside.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c)) && !edge.is_some_and(is_unspaced)
    };
    title.match_indices(words).any(|(at, found)| {
        let before = title[..at].chars().next_back();
        let after = title[at + found.len()..].chars().next();
        !continues(before, found.chars().next()) && !continues(after, found.chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(header: &str, words: &[&str], since: Option<&str>) -> bool {
        let listing = SessionQuery {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            since: since.map(|at| at.parse().unwrap()),
            ..SessionQuery::default()
        };
        HeaderFields::parse(header).unwrap().matches("2026-01-02_slug", &listing, &listing.lower_words())
    }

    #[test]
    fn words_are_found_in_any_script_and_case_and_with_characters_that_json_escapes() {
        let header = r#"{"description":"Größe \"ÄRGER\" C:\\x \u00e9t\u00e9","summary":"not shown","tags":["Übung"],
            "saved_at":"2026-01-02T03:04:05Z",
            "started_at":"2026-01-02T03:04:05Z","trigger":"manual_save","working_set":{"description":"inner"}}"#;
        for word in ["GRÖSSE", "GRÖßE", "ärger", "\"ärger\"", "c:\\X", "ÉTÉ", "übung", "SLUG", "2026-01"] {
            assert_eq!(matches(header, &[word], None), word != "GRÖSSE", "{word}");
        }
        for word in ["shown", "inner", "manual_save", "description"] {
            assert!(!matches(header, &[word], None), "{word}");
        }
        assert!(matches(header, &["größe", "slug"], None) && !matches(header, &["größe", "nothing"], None));
    }

    #[test]
    fn words_of_a_title_are_whole_unless_its_script_has_no_spaces() {
        for (title, words, found) in [
            ("a refactoring", "refactor", false),
            ("a refactor.", "refactor", true),
            ("数据库迁移计划", "迁移", true),
            ("数据库迁移计划", "计划", true),
            ("迁移postgres数据库", "postgres", true),
            ("迁移postgresql数据库", "postgres", false),
            ("데이터베이스를 옮기기", "데이터베이스", true),
            ("größen", "größe", false),
        ] {
            assert_eq!(has_words(title, words), found, "{words} in {title}");
        }
    }

    #[test]
    fn an_imported_conversation_has_the_time_of_its_end() {
        let header = r#"{"description":null,"summary":"a b","saved_at":"2026-03-01T00:00:00Z",
            "started_at":"2026-01-02T03:04:05Z","trigger":"import"}"#;
        // An import of an earlier version says only when it began.
        assert!(matches(header, &["A"], Some("2026-01-02T00:00:00Z")));
        assert!(!matches(header, &[], Some("2026-01-03T00:00:00Z")));
        let ended = header.replace("\"saved_at", "\"source\":{\"ended_at\":\"2026-01-04T00:00:00Z\"},\"saved_at");
        assert!(matches(&ended, &[], Some("2026-01-03T00:00:00Z")));
        assert!(!matches(&ended, &[], Some("2026-01-05T00:00:00Z")));
        // The time of any other session is that of its save.
        let saved = header.replace("\"import", "\"manual_save");
        assert!(matches(&saved, &[], Some("2026-02-03T00:00:00Z")));
        assert!(!matches(&saved, &[], Some("2026-03-03T00:00:00Z")));
    }
}
