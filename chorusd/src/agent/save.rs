//! A session on its way to the disk: the file first, then the row, then the answer.

use std::sync::Arc;

use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{Session, SessionHeader, SummarySource, TokenPair, WorkingSet};
use uuid::Uuid;

use super::effect::Draft;
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::session::slug;
use crate::store::catalog::SessionRow;
use crate::store::{Store, session_files};
use crate::summary;

/// Writes the session of a live context and notes in the journal that it is saved.
///
/// # Errors
/// Whatever the disk says; then there is no session.
pub async fn save(store: &Arc<Store>, draft: Draft) -> Result<Session> {
    let context = draft.context;
    let count = draft.totals.messages;
    let id = Uuid::new_v4();
    let facts = draft.facts.clone();
    let slug = draft
        .description
        .as_deref()
        .and_then(slug::of_description)
        .unwrap_or_else(|| slug::of_content(&first_content(&draft.messages)));
    let wanted = slug::session_id(draft.now, &slug);
    let known = store.catalog.names_like(facts.id, wanted.clone()).await?;
    let files = store.clone();
    let (header, name, written) = tokio::task::spawn_blocking(move || {
        let name = files.files.reserve(draft.facts.id, &draft.facts.dir, &wanted, &known);
        let header = header(&draft, id, name.name());
        let written = session_files::write(&draft.facts.dir, &header, &draft.messages)?;
        Ok::<_, Failure>((header, name, written))
    })
    .await
    .map_err(|e| Failure::internal(e.to_string()))??;
    let row = SessionRow {
        last_used_at: header.saved_at,
        sha256: written.sha256.clone(),
        file_stamp: written.stamp.clone(),
        corrupt: None,
        header: header.clone(),
    };
    // The row and the mark go to two databases: their fsyncs overlap. A mark without its row is made good by the scan
    // at the next start, which finds the file.
    let (rowed, marked) = tokio::join!(store.catalog.add_session(row), store.journal.saved(context, count, id));
    drop(name);
    if let Err(failure) = rowed.and(marked) {
        let _ = tokio::task::spawn_blocking(move || session_files::unwrite(&written)).await;
        let _ = store.catalog.remove_session(id).await;
        return Err(failure);
    }
    let short_id = store.catalog.short_ids(vec![id]).await?.pop().unwrap_or_default();
    Ok(Session {
        header,
        short_id,
        file_path: written.path.to_string_lossy().into_owned(),
        available: true,
        corrupt: None,
    })
}

/// Content of the first message, empty where there is none.
fn first_content(messages: &[Stored]) -> String {
    messages.first().and_then(|m| m.to_message().ok()).map(|m| m.content).unwrap_or_default()
}

fn header(draft: &Draft, id: Uuid, session_id: &str) -> SessionHeader {
    let extract = summary::of_stored(&draft.messages);
    SessionHeader {
        schema: SESSION_SCHEMA,
        id,
        session_id: session_id.to_owned(),
        agent_id: draft.facts.id,
        agent_name: draft.facts.name.clone(),
        description: draft.description.clone().or(extract.title),
        summary_source: if extract.summary.is_some() { SummarySource::Extractive } else { SummarySource::None },
        summary: extract.summary,
        saved_at: draft.now,
        started_at: draft.started_at,
        trigger: draft.trigger,
        model: draft.facts.model.clone(),
        message_count: draft.totals.messages,
        query_count: draft.totals.queries,
        token_estimate: draft.totals.tokens(),
        restoration_tokens: TokenPair::default(),
        parent_id: draft.parent,
        tags: draft.tags.clone(),
        working_set: WorkingSet::default(),
    }
}
