//! Errors about sessions that do not exist.

use chorus_base::error::Error;
use chorus_proto::ErrorKind;
use chorus_session::Selector;
use chorus_session::selector::MIN_PREFIX;
use chorus_store::trash::TrashItem;

use super::SessionReader;
use crate::agent::agent_index::AgentEntry;
use crate::ops::trash as ops_trash;

impl SessionReader {
    /// The error for the owner about a session that does not exist: it may be in the trash. `imported` is true if imported conversations
    /// were searched, too.
    pub(super) async fn missing_session_error(&self, agent: &AgentEntry, text: &str, imported: bool) -> Error {
        if let Some(error) = self.trashed_session_error(text).await {
            return error;
        }
        let error = unknown_session_error(&agent.settings.name, text);
        let is_named = matches!(Selector::parse(text), Selector::Text(_) | Selector::Id(_) | Selector::Number(..));
        if !imported || !is_named || self.imported_by_others(Some(agent.settings.id)).is_empty() {
            return error;
        }
        Error { message: format!("{} or among the imported ones", error.message), ..error }
    }

    /// The error about the only session in the trash that `text` names or whose id starts so.
    pub(super) async fn trashed_session_error(&self, text: &str) -> Option<Error> {
        let named = |entry: &TrashItem| {
            let note = entry.metadata.as_ref()?;
            let session = note.session.as_ref()?;
            let is_prefix = text.len() >= MIN_PREFIX && session.id.to_string().starts_with(text);
            (note.name == text || is_prefix).then(|| (session.agent_name.clone(), note.name.clone(), entry.id.clone()))
        };
        let mut found = ops_trash::list_entries(&self.home).await.ok()?.iter().filter_map(named).collect::<Vec<_>>();
        let (agent, name, entry) = found.pop().filter(|_| found.is_empty())?;
        let entry: String = entry.rsplit('_').next().unwrap_or_default().chars().take(8).collect();
        let what = format!("the session {name} of agent {agent} is in the trash");
        Some(Error::new(ErrorKind::SessionNotFound, what).hint(format!("restore it: chorusctl trash restore {entry}")))
    }
}

/// The error about a session that does not exist, or that somebody may not know of.
pub(super) fn unknown_session_error(agent: &str, text: &str) -> Error {
    let shown: String = text.chars().take(80).collect();
    Error::new(ErrorKind::SessionNotFound, format!("no session {shown:?} in agent {agent}"))
        .hint("list sessions: chorusctl history")
}

pub(super) fn not_saved_error(agent: &str, conversation: Option<&str>) -> Error {
    let named = conversation.map_or_else(String::new, |name| format!(" {name}"));
    Error::new(ErrorKind::SessionNotFound, format!("the live conversation{named} of {agent} is not saved"))
        .hint("save it: chorusctl save")
}
