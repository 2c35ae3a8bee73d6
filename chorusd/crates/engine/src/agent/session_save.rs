//! Writes sessions: first the file, then the row of the catalog, then the reply.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::effect::SessionDraft;
use chorus_agent_core::event::WrittenSession;
use chorus_base::error::{Error, Result};
use chorus_base::parallel::run_parallel;
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{Session, SessionHeader, SummarySource, Trigger};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use chorus_session::summary::{ConversationSample, ExtractiveSummary};
use chorus_session::{MessageHash, notes, slug, summary};
use chorus_store::catalog::{ImportedUsage, PendingSummary, SessionPlacement, SessionRow, place_of};
use chorus_store::session_files::StagedFile;
use chorus_store::{Store, session_files};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::checkpoint_on_save::Checkpoint;
use super::summaries::Summaries;

/// Saves a live context as a session and records that in the journal, together with the summary that a model is to
/// make. `checkpoint` commits the workspace; it starts only if a session is written. If anything fails, there is no
/// session.
pub(super) async fn save(
    store: &Arc<Store>,
    summaries: &Summaries,
    mut draft: SessionDraft,
    checkpoint: impl Future<Output = Checkpoint>,
) -> Result<WrittenSession> {
    inherit_title(store, &mut draft).await?;
    let (settings, summary) = (draft.settings.clone(), summaries.requested_summary(&draft).await);
    let (context, count, id) = (draft.context, draft.totals.messages, Uuid::new_v4());
    let conversation = draft.conversation.as_ref().map(|conversation| conversation.id);
    let conversation = ConversationKey::from_stored(settings.id, conversation);
    let wanted = wanted_name(&draft);
    // If the journal is poisoned it cannot record a save, so do not make one.
    store.journal.ensure_healthy()?;
    let (newest, known) = store.catalog.sessions.newest_and_names(conversation, wanted.clone()).await?;
    let identical = find_identical_session(store, &draft, newest).await?;
    let (identical, unchanged_since) = match draft.trigger {
        // A save that a user asked for always writes.
        Trigger::ManualSave => (None, identical.map(Box::new)),
        _ => (identical, None),
    };
    if let Some(session) = identical {
        let unfinished = summary.filter(|_| has_no_model_summary(&session.header));
        if let Some(wanted) = unfinished {
            let described = wanted.described || session.header.description != extract_summary(&draft.messages).title;
            store.catalog.summary_queue.push(session.header.id, PendingSummary { described }).await?;
        }
        if !draft.ends_context {
            store.journal.mark_saved(context, count, session.header.id).await?;
        }
        return Ok(WrittenSession {
            session: Box::new(session),
            summarise_with: unfinished.map(|_| settings),
            unchanged_since: None,
            warning: None,
        });
    }
    let Checkpoint { commit, warning } = checkpoint.await;
    let ends = draft.ends_context;
    // Contexts may expire by the thousand: sync their files together.
    let together = draft.trigger == Trigger::IdleTimeout;
    let make = move |dir: &Path, session_id: &str| {
        let bytes = draft.messages.iter().map(|message| message.json().len()).sum();
        let (sha256, header) =
            run_parallel(bytes, || hash_messages(&draft.messages), || build_header(&draft, id, session_id, commit));
        let filled = session_files::stage(dir, &header, &draft.messages, sha256)?;
        Ok((header, filled))
    };
    // The journal comes last. It must not refer to a session that was rolled back.
    let mark = || async move { if ends { Ok(()) } else { store.journal.mark_saved(context, count, id).await } };
    let session = write_session(
        store,
        &settings,
        SessionTarget {
            name: wanted,
            taken_names: known,
            batched: together,
            summary_request: summary,
            order: SessionPlacement::Last,
            usage: None,
        },
        make,
        mark,
    )
    .await?;
    let summarise_with = summary.map(|_| settings);
    Ok(WrittenSession { session: Box::new(session), summarise_with, unchanged_since, warning })
}

/// Gives a draft without a description the title of the session that it continues, if a person or an import gave that
/// session its title.
pub async fn inherit_title(store: &Store, draft: &mut SessionDraft) -> Result<()> {
    if draft.description.is_some() {
        return Ok(());
    }
    let Some(previous) = draft.saved_session.or(draft.parent) else { return Ok(()) };
    if let Some(row) = store.catalog.sessions.get(previous).await?
        && is_title_given(&row.header, draft)
    {
        draft.description = row.header.description;
    }
    Ok(())
}

/// Returns true if the title of the session that `draft` continues was given: then the session is named after it.
fn is_title_given(header: &SessionHeader, draft: &SessionDraft) -> bool {
    let Some(title) = header.description.as_deref() else { return false };
    let slug = header.session_id.split_once('_').map_or("", |(_, slug)| slug);
    match slug::from_description(title) {
        Some(base) => slug::is_numbered(slug, &base, Some(title)),
        // Nothing of the title fits into a name, for example if it is Chinese.
        None if draft.saved_session != Some(header.id) || header.summary_source == SummarySource::Llm => false,
        None => {
            let held = usize::try_from(header.message_count).unwrap_or(usize::MAX).min(draft.messages.len());
            extract_summary(&draft.messages[..held]).title.as_deref() != Some(title)
        }
    }
}

/// Returns the name that a session wants; it may be taken.
#[must_use]
pub fn wanted_name(draft: &SessionDraft) -> String {
    let given = draft.description.as_deref().and_then(slug::from_description);
    slug::session_id(draft.now, &given.unwrap_or_else(|| slug::from_content(&first_content(&draft.messages))))
}

/// Whether a session has no summary by a model or a person.
fn has_no_model_summary(header: &SessionHeader) -> bool {
    matches!(header.summary_source, SummarySource::Extractive | SummarySource::None)
}

/// Returns the newest session if it holds exactly these messages and notes: nothing has changed since, or a crash
/// interrupted a save before it was recorded.
async fn find_identical_session(
    store: &Arc<Store>,
    draft: &SessionDraft,
    newest: Option<SessionRow>,
) -> Result<Option<Session>> {
    let Some(row) = newest.filter(|row| row.corrupt.is_none() && row.header.message_count == draft.totals.messages)
    else {
        return Ok(None);
    };
    let path = session_files::path_of(&draft.settings.dir, &row.header.session_id);
    let untouched = path.metadata().is_ok_and(|metadata| session_files::stamp(&metadata) == row.file_stamp);
    if !untouched || hash_messages(&draft.messages) != row.sha256 || !has_same_notes(path.clone(), draft).await? {
        return Ok(None);
    }
    let short_id = store.catalog.sessions.short_ids(vec![row.header.id]).await?.pop().unwrap_or_default();
    let file_path = path.to_string_lossy().into_owned();
    Ok(Some(Session { header: row.header, short_id, unique_prefix: None, file_path, available: true, corrupt: None }))
}

/// Whether the file has the same notes; they are not in the catalog.
async fn has_same_notes(path: PathBuf, draft: &SessionDraft) -> Result<bool> {
    let found = run_blocking(move || session_files::read(&path)).await?;
    let header = found.file.ok().map(|file| file.header);
    Ok(header.is_some_and(|header| notes::has_same_notes(&header.working_set, &draft.working_set)))
}

/// Where a session is written and how.
#[derive(Debug)]
pub struct SessionTarget {
    /// The name of the session; if it is taken, a suffix makes it unique.
    pub name: String,
    /// Similar names that the catalog has.
    pub taken_names: Vec<String>,
    /// Whether its sync is batched with others that wait.
    pub batched: bool,
    /// Set if a model is to summarise it.
    pub summary_request: Option<PendingSummary>,
    /// Its position in the order of sessions.
    pub order: SessionPlacement,
    /// The usage of an imported conversation.
    pub usage: Option<Arc<ImportedUsage>>,
}

/// Writes a session: `make` writes the file, which moves to its final name; then the row is inserted and `after` runs.
/// If any of them fails, row and file are removed and there is no session.
pub async fn write_session<After: Future<Output = Result<()>>>(
    store: &Arc<Store>,
    settings: &Arc<AgentSettings>,
    place: SessionTarget,
    make: impl FnOnce(&Path, &str) -> Result<(SessionHeader, StagedFile)> + Send + 'static,
    after: impl FnOnce() -> After,
) -> Result<Session> {
    let (files, of) = (store.clone(), settings.clone());
    let SessionTarget { name: wanted, taken_names: known, batched: together, summary_request: summary, order, usage } =
        place;
    let fill = move || {
        let name = files.files.reserve_name(of.id, &of.dir, &wanted, &known);
        let (header, filled) = make(&of.dir, &name.key().1)?;
        Ok((header, name, filled))
    };
    let (header, name, written) = if together {
        let (answer, placed) = oneshot::channel();
        let files = store.clone();
        store.files.background_pool.spawn(move || match fill() {
            Ok((header, name, filled)) => {
                let done = move |written: Result<_>| _ = answer.send(written.map(|written| (header, name, written)));
                files.files.batch_sync.persist(filled, done);
            }
            Err(failure) => _ = answer.send(Err(failure)),
        });
        let placed = placed.await.unwrap_or_else(|_| Err(Error::internal("session save aborted")));
        store.escalate_fatal(placed)?
    } else {
        let placed = run_blocking(move || {
            let (header, name, filled) = fill()?;
            Ok((header, name, filled.persist()?))
        });
        store.escalate_fatal(placed.await)?
    };
    let row = SessionRow {
        last_used_at: header.saved_at,
        sha256: written.sha256.clone(),
        file_stamp: written.stamp.clone(),
        corrupt: None,
        place: place_of(&header),
        header: header.clone(),
    };
    let rowed = if together {
        let _permit = store.files.batch_sync.acquire_row_permit().await;
        store.catalog.sessions.insert_deferred(row, order, summary).await
    } else if let Some(usage) = usage {
        store.catalog.sessions.insert_imported(row, order, usage).await
    } else {
        store.catalog.sessions.insert(row, order, summary).await
    };
    let inserted = rowed.is_ok();
    let done = match rowed {
        Ok(short_id) => after().await.map(|()| short_id),
        Err(failure) => Err(failure),
    };
    drop(name);
    let file_path = written.path.to_string_lossy().into_owned();
    match done {
        Ok(short_id) => {
            Ok(Session { header, short_id, unique_prefix: None, file_path, available: true, corrupt: None })
        }
        Err(failure) => {
            if inserted {
                let _ = store.catalog.sessions.undo_insert(header).await;
            }
            let _ = run_blocking(move || {
                session_files::delete_written(&written);
                Ok(())
            })
            .await;
            Err(failure)
        }
    }
}

fn hash_messages(messages: &[StoredMessage]) -> String {
    MessageHash::from_messages(messages.iter().map(|message| &message.json()[..])).finish()
}

/// Returns the content of the first message, empty if there is none.
fn first_content(messages: &[StoredMessage]) -> String {
    messages.first().and_then(|m| m.to_message().ok()).map(|m| m.content).unwrap_or_default()
}

/// Builds the header of the session that is written from `draft`.
#[must_use]
pub fn build_header(
    draft: &SessionDraft,
    id: Uuid,
    session_id: &str,
    workspace_commit: Option<String>,
) -> SessionHeader {
    let extract = extract_summary(&draft.messages);
    let summary_source = extract.source();
    SessionHeader {
        schema: SESSION_SCHEMA,
        id,
        session_id: session_id.to_owned(),
        agent_id: draft.settings.id,
        agent_name: draft.settings.name.clone(),
        conversation: draft.conversation.clone(),
        source: None,
        description: draft.description.clone().or(extract.title),
        summary_source,
        summary: extract.summary,
        saved_at: draft.now,
        started_at: draft.started_at,
        trigger: draft.trigger,
        model: draft.settings.model.clone(),
        message_count: draft.totals.messages,
        query_count: draft.totals.queries,
        token_estimate: draft.totals.tokens(),
        restoration_tokens: draft.restoration,
        parent_id: draft.parent,
        workspace_commit,
        tags: draft.tags.clone(),
        working_set: draft.working_set.clone(),
    }
}

/// Returns the extractive title and summary. Parses only the messages that the digest samples.
fn extract_summary(messages: &[StoredMessage]) -> ExtractiveSummary {
    let mut digest = ConversationSample::new();
    for index in ConversationSample::selected_indices(messages.len()) {
        if let Ok(message) = messages[index].to_message() {
            digest.push(&message);
        }
    }
    summary::extract_summary(&digest)
}
