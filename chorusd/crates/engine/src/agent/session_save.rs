//! Writes sessions: first the file, then the row of the catalog, then the reply.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use chorus_agent_core::AgentSettings;
use chorus_agent_core::effect::SessionDraft;
use chorus_agent_core::event::WrittenSession;
use chorus_base::error::{Error, Result};
use chorus_catalog::{ImportedUsage, NewSession, PendingSummary, SessionPlacement, SessionRow, place_of};
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{Session, SessionHeader, SummarySource, Trigger};
use chorus_runtime::run_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use chorus_session::summary::{ConversationSample, ExtractiveSummary};
use chorus_session::{notes, slug, summary};
use chorus_store::session_files::StagedFile;
use chorus_store::{AgentDir, Store, session_files, session_form};
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
    // Of an agent in the trash, they are not in this directory.
    let files = AgentDir { agent: settings.id, name: settings.name.clone(), dir: settings.dir.clone() };
    store.try_store_file_edits(files).await;
    let (context, count, id) = (draft.context, draft.totals.messages, Uuid::new_v4());
    let conversation = draft.conversation.as_ref().map(|conversation| conversation.id);
    let conversation = ConversationKey::from_stored(settings.id, conversation);
    let wanted = wanted_name(&draft);
    // If the journal is poisoned it cannot record a save, so do not make one.
    store.journal.ensure_healthy()?;
    let (newest, known) = store.catalog.sessions.newest_and_names(conversation, wanted.clone()).await?;
    let (mut same_notes, newest_sha256) = match find_similar_session(store, &draft, newest).await? {
        Some((session, sha256)) => (Some(session), sha256),
        None => (None, String::new()),
    };
    // A save that a user asked for always writes, and hashes meanwhile.
    let manual = draft.trigger == Trigger::ManualSave;
    let sha256 = if manual || same_notes.is_none() { None } else { Some(hash_in_background(&draft).await?) };
    if sha256.as_ref() == Some(&newest_sha256)
        && let Some(similar) = &same_notes
        && !has_messages(&similar.file_path, &newest_sha256).await
    {
        tracing::warn!(session = %similar.header.session_id, "the file of the session is damaged; saving again");
        same_notes = None;
    }
    if let Some(session) = same_notes.clone()
        && sha256.as_ref() == Some(&newest_sha256)
    {
        let unfinished = summary.filter(|_| has_no_model_summary(&session.header));
        if let Some(wanted) = unfinished {
            let described = wanted.described || session.header.description != extract_summary(&draft.messages).title;
            store.catalog.summary_queue.push(session.header.id, PendingSummary { described }).await?;
        }
        if !draft.ends_context {
            store.journal.mark_saved(context, count, session.header.id).await?;
        }
        return Ok(WrittenSession {
            session,
            summarise_with: unfinished.map(|_| settings),
            unchanged_since: None,
            warning: None,
        });
    }
    let Checkpoint { commit, warning } = checkpoint.await;
    let ends = draft.ends_context;
    // Contexts may expire by the thousand: sync their files together.
    let together = draft.trigger == Trigger::IdleTimeout;
    let written_sha256 = Arc::new(OnceLock::new());
    let hashed = written_sha256.clone();
    let make = move |dir: &Path, session_id: &str| {
        let header = || build_header(&draft, id, session_id, commit);
        let (header, filled) = if together {
            let header = header();
            let sha256 = sha256.unwrap_or_else(|| session_files::hash_messages(&draft.messages));
            let filled = session_files::stage(dir, &header, &draft.messages, sha256)?;
            (header, filled)
        } else {
            session_files::stage_and_sync(dir, &draft.messages, sha256, header)?
        };
        let _ = hashed.set(filled.sha256().to_owned());
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
    let unchanged_since = same_notes.filter(|_| written_sha256.get() == Some(&newest_sha256));
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

/// Returns the newest session, with the hash of its messages, if it holds as many messages and the same notes. If the hash is
/// that of the messages of `draft`, nothing has changed since, or a crash interrupted a save before it was recorded.
async fn find_similar_session(
    store: &Arc<Store>,
    draft: &SessionDraft,
    newest: Option<SessionRow>,
) -> Result<Option<(Box<Session>, String)>> {
    let Some(row) = newest.filter(|row| row.corrupt.is_none() && row.header.message_count == draft.totals.messages)
    else {
        return Ok(None);
    };
    let row = match store.with_local_file(row, &draft.settings.dir).await {
        Ok(row) => row,
        Err(failure) => {
            tracing::warn!(%failure, "the newest session cannot be compared; saving again");
            return Ok(None);
        }
    };
    let path = session_form::find(session_files::path_of(&draft.settings.dir, &row.header.session_id));
    let untouched = path.metadata().is_ok_and(|metadata| session_files::stamp(&metadata) == row.file_stamp);
    if !untouched || !has_same_notes(path.clone(), draft).await? {
        return Ok(None);
    }
    let short_id = store.catalog.sessions.short_ids(vec![row.header.id]).await?.pop().unwrap_or_default();
    let file_path = path.to_string_lossy().into_owned();
    let (header, sha256) = (row.header, row.sha256);
    let session = Session { header, short_id, unique_prefix: None, file_path, available: true, corrupt: None };
    Ok(Some((Box::new(session), sha256)))
}

/// Returns true if the file has the same notes; they are not in the catalog.
async fn has_same_notes(path: PathBuf, draft: &SessionDraft) -> Result<bool> {
    let header = run_blocking(move || session_files::read_header(&path)).await?;
    Ok(header.is_some_and(|header| notes::has_same_notes(&header.working_set, &draft.working_set)))
}

/// Returns true if the file has the messages with that hash. Its size and time say nothing about damage by the disk, and what it holds is
/// about to be the only copy.
async fn has_messages(path: &str, sha256: &str) -> bool {
    let path = PathBuf::from(path);
    let read = run_blocking(move || session_files::read(&path)).await;
    read.is_ok_and(|read| read.file.is_ok_and(|file| file.sha256 == sha256))
}

/// Hashes the messages on a thread where it delays no other request.
async fn hash_in_background(draft: &SessionDraft) -> Result<String> {
    let messages = draft.messages.clone();
    run_blocking(move || Ok(session_files::hash_messages(&messages))).await
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
        body: None,
    };
    let permit = if together { Some(store.files.batch_sync.acquire_row_permit().await) } else { None };
    let new = NewSession { row, placement: order, summary, usage, is_one_of_many: together };
    let rowed = store.catalog.sessions.insert(new).await;
    drop(permit);
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

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use chorus_proto::{NewMessage, Role};
    use jiff::Timestamp;

    use super::*;

    #[tokio::test]
    async fn a_damaged_file_has_no_messages_that_a_save_may_rely_on() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sessions")).unwrap();
        let message = NewMessage::text(Role::User, "one").complete(|| "1".to_owned(), Timestamp::UNIX_EPOCH);
        let messages = [StoredMessage::new(&message).unwrap()];
        let sha256 = session_files::hash_messages(&messages);
        let empty = r#"{"schema":2,"session_id":"2026-02-12_x","timestamp":"2026-02-12T14:30:00Z","messages":[]}"#;
        let header = chorus_session::file::parse(&empty.as_bytes().to_vec().into()).unwrap().header;
        let header = SessionHeader { message_count: 1, ..header };
        let written = session_files::stage(dir.path(), &header, &messages, sha256.clone()).unwrap().persist().unwrap();
        let path = written.path.to_str().unwrap();
        assert!(has_messages(path, &sha256).await);
        assert!(!has_messages(path, "another").await);
        let time = fs::metadata(path).unwrap().modified().unwrap();
        let text = fs::read_to_string(path).unwrap();
        for damage in ["\"two\"", "\"\0\0\0\""] {
            let damaged = text.replace("\"one\"", damage);
            assert_eq!(damaged.len(), text.len());
            fs::write(path, damaged).unwrap();
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
            assert_eq!(session_files::stamp(&fs::metadata(path).unwrap()), written.stamp);
            assert!(!has_messages(path, &sha256).await, "{damage}");
        }
        fs::write(path, text).unwrap();
        assert!(has_messages(path, &sha256).await);
        fs::remove_file(path).unwrap();
        assert!(!has_messages(path, &sha256).await);
    }
}
