//! A session on its way to the disk: the file first, then the row, then the answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{Session, SessionHeader, SummarySource, Trigger};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Facts;
use super::effect::Draft;
use super::event::Written;
use super::summaries::Summaries;
use super::workspace::Checkpoint;
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::session::beside::beside;
use crate::session::{MessageHash, slug};
use crate::store::catalog::{Order, SessionRow, Wanted};
use crate::store::journal::to_nanos;
use crate::store::session_files::Filled;
use crate::store::{Store, session_files};
use crate::summary::{self, Digest, Extract};

/// Writes the session of a live context and notes in the journal that it is saved; where a model is to summarise it, that is
/// noted with it. `checkpoint` is of the workspace, and begun only where a session is written.
///
/// # Errors
/// Whatever the disk says; then there is no session.
pub(super) async fn save(
    store: &Arc<Store>,
    summaries: &Summaries,
    draft: Draft,
    checkpoint: impl Future<Output = Checkpoint>,
) -> Result<Written> {
    let (facts, summary) = (draft.facts.clone(), summaries.wanted(&draft).await);
    let (context, count, id) = (draft.context, draft.totals.messages, Uuid::new_v4());
    let slug = draft
        .description
        .as_deref()
        .and_then(slug::of_description)
        .unwrap_or_else(|| slug::of_content(&first_content(&draft.messages)));
    let wanted = slug::session_id(draft.now, &slug);
    // A journal that can no longer be written takes no note of a save: then there is none.
    store.journal.sound()?;
    let (newest, known) = store.catalog.before_save(draft.facts.id, wanted.clone()).await?;
    if draft.trigger != Trigger::ManualSave
        && let Some(session) = held_already(store, &draft, newest).await?
    {
        let unfinished = summary.filter(|_| own_words(&session.header));
        if let Some(wanted) = unfinished {
            let described = wanted.described || session.header.description != extract_of(&draft.messages).title;
            store.catalog.want_summary(session.header.id, Wanted { described }).await?;
        }
        if !draft.ends {
            store.journal.saved(context, count, session.header.id).await?;
        }
        return Ok(Written { session: Box::new(session), summarise: unfinished.map(|_| facts), warning: None });
    }
    let Checkpoint { commit, warning } = checkpoint.await;
    let ends = draft.ends;
    // These may fall due by the thousand.
    let together = draft.trigger == Trigger::IdleTimeout;
    let make = move |dir: &Path, session_id: &str| {
        let bytes = draft.messages.iter().map(|message| message.json().len()).sum();
        let (sha256, header) = beside(bytes, || hash(&draft.messages), || header(&draft, id, session_id, commit));
        let filled = session_files::write(dir, &header, &draft.messages, sha256)?;
        Ok((header, filled))
    };
    // The mark comes last: it must not speak of a session that was taken back.
    let mark = || async move { if ends { Ok(()) } else { store.journal.saved(context, count, id).await } };
    let session =
        write(store, &facts, Place { wanted, known, together, summary, order: Order::Last }, make, mark).await?;
    Ok(Written { session: Box::new(session), summarise: summary.map(|_| facts), warning })
}

/// Whether a session has no summary but one in its own words, or none.
fn own_words(header: &SessionHeader) -> bool {
    matches!(header.summary_source, SummarySource::Extractive | SummarySource::None)
}

/// The newest session, where it holds just these messages and pinned facts: a save that a crash cut short before it was noted. An
/// explicit save always writes, the others do not save the same a second time.
async fn held_already(store: &Arc<Store>, draft: &Draft, newest: Option<SessionRow>) -> Result<Option<Session>> {
    let Some(row) = newest.filter(|row| row.corrupt.is_none() && row.header.message_count == draft.totals.messages)
    else {
        return Ok(None);
    };
    let path = session_files::path_of(&draft.facts.dir, &row.header.session_id);
    let untouched = path.metadata().is_ok_and(|metadata| session_files::stamp(&metadata) == row.file_stamp);
    if !untouched || hash(&draft.messages) != row.sha256 || !pins_are_held(path.clone(), draft).await? {
        return Ok(None);
    }
    let short_id = store.catalog.short_ids(vec![row.header.id]).await?.pop().unwrap_or_default();
    let file_path = path.to_string_lossy().into_owned();
    Ok(Some(Session { header: row.header, short_id, file_path, available: true, corrupt: None }))
}

/// Whether the file has the facts that are pinned: the catalog does not know them.
async fn pins_are_held(path: PathBuf, draft: &Draft) -> Result<bool> {
    let found = blocking(move || session_files::read(&path)).await?;
    let header = found.file.ok().map(|file| file.header);
    Ok(header.is_some_and(|header| header.working_set.pinned_facts == draft.working_set.pinned_facts))
}

/// Where a session file goes.
#[derive(Debug)]
pub struct Place {
    /// The name, or the first free one like it.
    pub wanted: String,
    /// The names like it that the catalog has.
    pub known: Vec<String>,
    /// Whether it is brought to the disk with others that wait.
    pub together: bool,
    /// Whether a model is to summarise it.
    pub summary: Option<Wanted>,
    /// Its place in the order of sessions.
    pub order: Order,
}

/// Writes a session: `make` writes the file, which goes to its place, the row follows, then whatever `after` does. Where
/// any of them fails, row and file are taken back.
///
/// # Errors
/// Whatever the disk says; then there is no session.
pub async fn write<After: Future<Output = Result<()>>>(
    store: &Arc<Store>,
    facts: &Arc<Facts>,
    place: Place,
    make: impl FnOnce(&Path, &str) -> Result<(SessionHeader, Filled)> + Send + 'static,
    after: impl FnOnce() -> After,
) -> Result<Session> {
    let (files, of) = (store.clone(), facts.clone());
    let Place { wanted, known, together, summary, order } = place;
    let fill = move || {
        let name = files.files.reserve(of.id, &of.dir, &wanted, &known);
        let (header, filled) = make(&of.dir, &name.key().1)?;
        Ok((header, name, filled))
    };
    let (header, name, written) = if together {
        let (answer, placed) = oneshot::channel();
        let files = store.clone();
        store.files.background.start(move || match fill() {
            Ok((header, name, filled)) => {
                let done = move |written: Result<_>| _ = answer.send(written.map(|written| (header, name, written)));
                files.files.together.place(filled, done);
            }
            Err(failure) => _ = answer.send(Err(failure)),
        });
        let placed = placed.await.unwrap_or_else(|_| Err(Failure::internal("a session on its way came to nothing")));
        store.judged(placed)?
    } else {
        let placed = blocking(move || {
            let (header, name, filled) = fill()?;
            Ok((header, name, filled.place()?))
        });
        store.judged(placed.await)?
    };
    let row = SessionRow {
        last_used_at: header.saved_at,
        sha256: written.sha256.clone(),
        file_stamp: written.stamp.clone(),
        corrupt: None,
        place: to_nanos(header.saved_at),
        header: header.clone(),
    };
    let turn = if together { store.files.together.turn_to_list().await } else { None };
    let rowed = store.catalog.add_session(row, order, summary).await;
    drop(turn);
    let inserted = rowed.is_ok();
    let done = match rowed {
        Ok(short_id) => after().await.map(|()| short_id),
        Err(failure) => Err(failure),
    };
    drop(name);
    let file_path = written.path.to_string_lossy().into_owned();
    match done {
        Ok(short_id) => Ok(Session { header, short_id, file_path, available: true, corrupt: None }),
        Err(failure) => {
            if inserted {
                let _ = store.catalog.take_back(header).await;
            }
            let _ = blocking(move || {
                session_files::unwrite(&written);
                Ok(())
            })
            .await;
            Err(failure)
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Failure::internal(e.to_string()))?
}

fn hash(messages: &[Stored]) -> String {
    MessageHash::of(messages.iter().map(|message| &message.json()[..])).finish()
}

/// Content of the first message, empty where there is none.
fn first_content(messages: &[Stored]) -> String {
    messages.first().and_then(|m| m.to_message().ok()).map(|m| m.content).unwrap_or_default()
}

fn header(draft: &Draft, id: Uuid, session_id: &str, workspace_commit: Option<String>) -> SessionHeader {
    let extract = extract_of(&draft.messages);
    let summary_source = extract.source();
    SessionHeader {
        schema: SESSION_SCHEMA,
        id,
        session_id: session_id.to_owned(),
        agent_id: draft.facts.id,
        agent_name: draft.facts.name.clone(),
        description: draft.description.clone().or(extract.title),
        summary_source,
        summary: extract.summary,
        saved_at: draft.now,
        started_at: draft.started_at,
        trigger: draft.trigger,
        model: draft.facts.model.clone(),
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

/// Title and summary in the conversation's own words; only the messages that a digest keeps are parsed.
fn extract_of(messages: &[Stored]) -> Extract {
    let mut digest = Digest::new();
    for index in Digest::indices(messages.len()) {
        if let Ok(message) = messages[index].to_message() {
            digest.push(&message);
        }
    }
    summary::extract(&digest)
}
