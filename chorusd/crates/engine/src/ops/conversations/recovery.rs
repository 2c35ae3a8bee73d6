//! Loads the conversations at the start of the daemon.

use std::collections::HashSet;

use chorus_base::error::Result;
use chorus_journal::{ContextRow, ConversationRow};
use chorus_session::conversation::ConversationKey;
use chorus_store::Store;
use jiff::Timestamp;

use crate::agent::conversation_index::ConversationIndex;
use crate::ops::conversations::session_scope::RECOVERED_ORIGIN;

/// Loads all conversations into the index. Live contexts whose conversation is not in the journal, because damage took its
/// row, get one named after its id, so that they can be reached. It is private, because they may be of direct messages.
pub async fn load(store: &Store, index: &ConversationIndex, heads: &[ContextRow], now: Timestamp) -> Result<()> {
    let rows = store.journal.conversations().await?;
    let known: HashSet<_> = rows.iter().map(|row| row.key).collect();
    rows.into_iter().for_each(|row| index.insert(row));
    let lost: HashSet<_> = heads.iter().map(|head| head.conversation).collect();
    for key in lost.into_iter().filter(|key| !known.contains(key)) {
        ensure_row(store, index, key, now).await?;
    }
    Ok(())
}

/// Gives a conversation whose row is lost a private one that is named after its id, so that it can be reached.
pub async fn ensure_row(store: &Store, index: &ConversationIndex, key: ConversationKey, now: Timestamp) -> Result<()> {
    if key.is_main() || index.get(key).is_some() {
        return Ok(());
    }
    let short: String = key.id.simple().to_string().chars().rev().take(8).collect();
    let name = format!("recovered-{short}");
    tracing::warn!(agent = %key.agent, name, "a live context belongs to an unknown conversation; it gets a new name");
    let row = ConversationRow {
        key,
        name,
        origin: Some(format!("{RECOVERED_ORIGIN}{}", key.id)),
        title: None,
        created_at: now,
        closed_at: None,
        is_selected: false,
        worktree: None,
    };
    store.journal.store_conversation(row.clone()).await?;
    index.insert(row);
    Ok(())
}
