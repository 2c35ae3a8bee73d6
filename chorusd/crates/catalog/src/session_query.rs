//! The query for a page of sessions.

use std::collections::HashMap;

use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use uuid::Uuid;

use crate::ProjectFilter;

/// Query for a page of sessions, newest first: by their places, the highest first, and those with the same place in the
/// order of their rows, the newest row first.
#[derive(Debug, Clone, Default)]
pub struct SessionQuery {
    /// `None` means all agents.
    pub agent: Option<Uuid>,
    /// Agents whose sessions are listed as well, if `agent` is given.
    pub also: Vec<Uuid>,
    /// Of `agent`, only the sessions of this conversation.
    pub conversation: Option<ConversationKey>,
    /// Conversations of `agent` whose sessions are left out.
    pub hidden: Vec<Uuid>,
    /// Only imported conversations of this program.
    pub source: Option<String>,
    /// Only sessions of this project.
    pub project: Option<ProjectFilter>,
    /// Only conversations since then: by the time of the save, or of an imported one by its end.
    pub since: Option<Timestamp>,
    /// Only conversations before then, by the same time.
    pub until: Option<Timestamp>,
    pub tag: Option<String>,
    /// Words that the title, the name, the tags or the conversation contain, each of them, in any case.
    pub words: Vec<String>,
    /// The names and titles that conversations have now, in lowercase letters, by id; those without any of `words` may be
    /// missing.
    pub conversation_texts: HashMap<Uuid, String>,
    pub offset: u64,
    pub limit: u64,
}

impl SessionQuery {
    /// Returns the words in lowercase letters.
    #[must_use]
    pub fn lower_words(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_lowercase()).collect()
    }
}
