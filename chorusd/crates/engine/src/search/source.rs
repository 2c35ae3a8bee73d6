//! Describes sessions and live contexts as sources of the search index.

use chorus_catalog::SessionRow;
use chorus_search::{SearchIndex, Source, SourceId, SourceKind};
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};
use chorus_session::stored_message::{ContextNo, StoredMessage};
use sha2::{Digest as _, Sha256};

use super::message_text;
use crate::agent::agent_index::AgentIndex;
use crate::agent::registry::LiveHead;

/// Returns the source of a saved session whose file has messages with that hash.
#[must_use]
pub(super) fn of_session(row: &SessionRow, sha256: &str, agents: &AgentIndex) -> Source {
    let header = &row.header;
    let title = header.description.as_ref().or(header.summary.as_ref()).cloned().unwrap_or_default();
    let summary = header.summary.as_ref().filter(|_| header.description.is_some());
    let project = agents.by_id(header.agent_id).and_then(|agent| agent.settings.project.clone());
    let directory = header.source.as_ref().and_then(|source| source.project.as_deref());
    let project = project.or_else(|| directory.and_then(|path| path.rsplit('/').next()).map(str::to_owned));
    let conversation = header.conversation.as_ref();
    let texts = summary.cloned().into_iter().chain(project).chain(conversation.map(|named| named.name.clone()));
    Source {
        id: SourceId::from(header.id),
        kind: SourceKind::Session,
        agent: header.agent_id,
        conversation: conversation.map(|named| named.id),
        name: header.session_id.clone(),
        title,
        texts: texts.collect(),
        tags: header.tags.clone(),
        model: header.model.clone(),
        at: header.held_at(),
        stamp: sha256.to_owned(),
        header_stamp: row.file_stamp.clone(),
    }
}

/// Returns the id of the source of a live context.
#[must_use]
pub(crate) fn live_id(key: ConversationKey) -> SourceId {
    let hash = Sha256::new().chain_update(b"live").chain_update(key.agent).chain_update(key.id).finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&hash[..16]);
    SourceId::from(uuid::Uuid::from_bytes(id))
}

/// Returns the source of a live context whose last indexed message is `last`.
#[must_use]
pub(super) fn of_context(
    key: ConversationKey,
    head: &LiveHead,
    agents: &AgentIndex,
    last: Option<&StoredMessage>,
) -> Source {
    let row = agents.conversations.get(key);
    Source {
        id: live_id(key),
        kind: SourceKind::Live,
        agent: key.agent,
        conversation: (!key.is_main()).then_some(key.id),
        name: row.as_ref().map_or_else(|| MAIN_CONVERSATION.to_owned(), |row| row.name.clone()),
        title: row.as_ref().and_then(|row| row.title.clone()).unwrap_or_default(),
        texts: Vec::new(),
        tags: Vec::new(),
        model: None,
        at: head.last_activity_at,
        stamp: live_stamp(head, last),
        header_stamp: String::new(),
    }
}

/// Identifies the indexed part of a live context: if a rewind replaced messages, the last one is another.
#[must_use]
pub(super) fn live_stamp(head: &LiveHead, last: Option<&StoredMessage>) -> String {
    let last = last.map(|message| u128::from_le_bytes(message_text::key(message))).unwrap_or_default();
    format!("{}-{last:032x}", head.context.0)
}

/// Returns true if the index has a live context of the conversation other than `context`, which has ended.
#[must_use]
pub(crate) fn is_of_earlier_context(index: &SearchIndex, key: ConversationKey, context: ContextNo) -> bool {
    let indexed = index.source(live_id(key)).ok().flatten();
    indexed.is_some_and(|source| source.stamp.split_once('-').is_none_or(|(of, _)| of != context.0.to_string()))
}
