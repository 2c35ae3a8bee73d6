//! Loads live contexts from the journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_agent_core::compaction_extraction;
use chorus_agent_core::context::{Context, Deadline};
use chorus_agent_core::event::Event;
use chorus_agent_core::state::State;
use chorus_agent_core::turn::OpenTurn;
use chorus_agent_core::unmatched_calls::calls_without_result;
use chorus_agent_core::window::INTERRUPTED_RESULT;
use chorus_base::error::{Error, Result};
use chorus_catalog::SessionRow;
use chorus_journal::{ContextRow, DecodedRecord, RecordCursor, unreadable_record};
use chorus_proto::pluralize::pluralize;
use chorus_proto::{Role, TokenPair, WorkingSet};
use chorus_session::notes;
use chorus_session::stored_message::{StoredMessage, Totals};
use chorus_store::{Store, session_files};
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use uuid::Uuid;

use super::registry::Registry;
use crate::tools::tool_result_message;

/// Contexts with at least so many messages are used before all of their messages are loaded.
const MIN_LARGE_CONTEXT_MESSAGES: u64 = 10_000;

/// Loads the whole of a large context.
pub(super) type RemainingLoad = BoxFuture<'static, Result<Context>>;

/// Loads the context of `head`, which expires at `deadline`. If its messages cannot be loaded, the state carries the
/// error and the context can only be cleared or replaced; the journal keeps it. Of a large context, loads only the last
/// messages and returns the future that loads all of it, unless `whole` is set.
pub(super) async fn load_state(
    store: &Arc<Store>,
    home: &Path,
    head: &ContextRow,
    deadline: Option<Deadline>,
    now: Timestamp,
    whole: bool,
) -> (State, Option<RemainingLoad>) {
    let context = Context { deadline, ..context_from_head(head) };
    let newest = store.journal.newest_records(head.context).await;
    let last = newest.as_ref().ok().and_then(|(newest, _)| newest.last());
    let next_record = last.map_or(0, |(number, _)| number + 1);
    let loaded = match newest {
        // A turn that a crash left open is closed before anything else, which needs all messages.
        Ok((newest, Some(cursor)))
            if !whole && head.totals.messages >= MIN_LARGE_CONTEXT_MESSAGES && head.turn.is_none() =>
        {
            let (tail, set_known) = replay_tail(head, context.clone(), &newest, next_record);
            let (store, home, head) = (store.clone(), home.to_owned(), head.clone());
            let remaining = async move { replay_records(&store, &home, &head, context, newest, Some(cursor)).await };
            return (State::partially_loaded(tail, next_record, set_known), Some(remaining.boxed()));
        }
        Ok((newest, cursor)) => replay_records(store, home, head, context.clone(), newest, cursor).await,
        Err(failure) => Err(failure),
    };
    let state = match loaded {
        Ok(context) => {
            let left = head.turn.map(|turn| OpenTurn { turn, results: missing_results(&context.messages, now) });
            State::recovered(context, next_record, left)
        }
        Err(failure) => {
            log_load_error(head, &failure);
            State::unreadable(context, failure)
        }
    };
    (state, None)
}

/// Reads the messages of the context of `head`, without loading it for anything else.
pub(super) async fn read_messages(store: &Store, home: &Path, head: &ContextRow) -> Result<Vec<StoredMessage>> {
    let (newest, cursor) = store.journal.newest_records(head.context).await?;
    let context = replay_records(store, home, head, context_from_head(head), newest, cursor).await?;
    Ok(Arc::unwrap_or_clone(context.messages))
}

/// Runs `remaining` and returns the event with its result.
pub(super) fn finish_loading(
    registry: Arc<Registry>,
    head: ContextRow,
    remaining: RemainingLoad,
) -> impl Future<Output = Event> + Send {
    // In a task of its own, so that replaying so many records does not block the actor.
    let task = chorus_runtime::spawn(remaining);
    async move {
        let result = task.await.unwrap_or_else(|e| Err(Error::internal(e.to_string())));
        if let Err(failure) = &result {
            log_load_error(&head, failure);
        }
        registry.set_damaged(head.context, result.is_err());
        Event::ContextLoaded(Box::new(result))
    }
}

/// Logs why a context cannot be loaded.
fn log_load_error(head: &ContextRow, failure: &Error) {
    tracing::error!(agent = %head.conversation.agent, %failure, "cannot load a live context");
}

/// Replays the newest records of a context: returns the context with its last messages, and whether these records
/// determine the working set.
fn replay_tail(
    head: &ContextRow,
    mut context: Context,
    newest: &[(u32, DecodedRecord)],
    next_record: u32,
) -> (Context, bool) {
    // With as many records as messages, and no reference to a session, every record is a message.
    let mut set_known = head.base_session.is_none() && u64::from(next_record) == head.totals.messages;
    let mut messages = Vec::with_capacity(newest.len());
    let mut replayed = context.clone();
    for (_, entry) in newest {
        match entry {
            DecodedRecord::Message(message) => messages.push(message.clone()),
            DecodedRecord::WorkingSet(set) => {
                if !set_known {
                    replayed.compactions.clear();
                }
                replayed.working_set = (**set).clone();
                set_known = true;
            }
            DecodedRecord::Notes(changes) if set_known => replayed.edit_notes(changes),
            DecodedRecord::Compact(json) => match serde_json::from_slice(json) {
                Ok(compaction) => replayed.compact(compaction),
                Err(_) => set_known = false,
            },
            DecodedRecord::Uncompact => set_known &= replayed.uncompact().is_some(),
            DecodedRecord::Rewind { .. } | DecodedRecord::Unrewind | DecodedRecord::Session { .. } => {
                messages.clear();
                replayed.compactions.clear();
                set_known = false;
            }
            DecodedRecord::Notes(_) => set_known = false,
            DecodedRecord::Restoration { .. } | DecodedRecord::Compacted(_) => {}
        }
    }
    context.messages = Arc::new(messages);
    context.working_set = replayed.working_set;
    context.restoration = head.restoration;
    (context, set_known)
}

/// Returns a result for each call that has none, if the conversation ends with such calls.
fn missing_results(messages: &[StoredMessage], now: Timestamp) -> Vec<StoredMessage> {
    let results = messages.iter().rev().take_while(|message| message.role() == Role::ToolResult).count();
    let (before, results) = messages.split_at(messages.len() - results);
    let Some(Ok(caller)) = before.last().filter(|last| last.role() == Role::Assistant).map(StoredMessage::to_message)
    else {
        return Vec::new();
    };
    let open = calls_without_result(caller.tool_calls, results).into_iter();
    open.filter_map(|call| tool_result_message(&call, INTERRUPTED_RESULT.to_owned(), true, now).ok()).collect()
}

fn context_from_head(head: &ContextRow) -> Context {
    Context {
        number: head.context,
        started_at: head.started_at,
        last_activity_at: head.last_activity_at,
        deadline: None,
        parent: head.parent,
        messages: Arc::default(),
        totals: head.totals,
        saved: head.saved_messages,
        saved_session: head.saved_session,
        saved_pins: Vec::new(),
        has_unsaved_notes: false,
        base_session: head.base_session,
        working_set: WorkingSet::default(),
        set_revision: 0,
        changes_since_call: Vec::new(),
        begun_by_compaction: None,
        rewound: Vec::new(),
        compactions: Vec::new(),
        no_auto_compaction_below: 0,
        restoration: TokenPair::default(),
    }
}

/// Replays all records into `context`: the `newest`, and those from `cursor` back to the first.
async fn replay_records(
    store: &Store,
    home: &Path,
    head: &ContextRow,
    mut context: Context,
    newest: Vec<(u32, DecodedRecord)>,
    cursor: Option<RecordCursor>,
) -> Result<Context> {
    let mut records = match cursor {
        Some(cursor) => store.journal.records_before(head.context, cursor).await?,
        None => Vec::new(),
    };
    records.push(newest);
    Arc::make_mut(&mut context.messages).reserve(usize::try_from(head.totals.messages).unwrap_or(0).min(1 << 20));
    for (_, entry) in records.into_iter().flatten() {
        match entry {
            DecodedRecord::Message(message) => {
                Arc::make_mut(&mut context.messages).push(message);
                context.rewound.clear();
            }
            DecodedRecord::Session { id, messages: count } => {
                Arc::make_mut(&mut context.messages).extend(load_session_messages(store, home, id, count).await?);
            }
            DecodedRecord::WorkingSet(set) => {
                if let Some(done) = context.compactions.last_mut() {
                    compaction_extraction::restore_notes(&mut done.compaction, &context.working_set, &set);
                }
                context.working_set = *set;
            }
            DecodedRecord::Rewind { keep, saved } => {
                context.saved = saved;
                context.rewind(usize::try_from(keep).unwrap_or(usize::MAX));
            }
            DecodedRecord::Unrewind => {
                context.unrewind();
            }
            DecodedRecord::Compact(json) => {
                let compaction = serde_json::from_slice(&json);
                let mut compaction =
                    compaction.map_err(|e| unreadable_record(format_args!("invalid compaction record: {e}")))?;
                compaction_extraction::mark_notes_lost(&mut compaction);
                context.compact(compaction);
            }
            DecodedRecord::Uncompact => {
                context.uncompact();
            }
            DecodedRecord::Restoration { input, output } => context.restoration = TokenPair { input, output },
            DecodedRecord::Notes(changes) => context.edit_notes(&changes),
            // Without it, the compaction by hand cannot be undone.
            DecodedRecord::Compacted(json) => context.begun_by_compaction = serde_json::from_slice(&json).ok(),
        }
    }
    context.changes_since_call.clear();
    // The head has the current number of saved messages; a replayed rewind has set an older one.
    context.saved = head.saved_messages;
    if let (Some(session), false) = (head.saved_session, context.rewound.is_empty()) {
        // The save may have come after the rewind. A session that is shorter does not hold what the rewind dropped.
        let held = store.catalog.sessions.get(session).await?.map_or(0, |row| row.header.message_count);
        for rewound in &mut context.rewound {
            rewound.saved = rewound.saved.min(held);
        }
    }
    load_saved_notes(store, home, &mut context).await?;
    context.totals = Totals::count(&context.messages);
    let messages = &context.messages;
    if messages.len() as u64 != head.totals.messages {
        return Err(unreadable_record(format_args!(
            "expected {} messages, found {}",
            head.totals.messages,
            messages.len()
        )));
    }
    Ok(context)
}

/// Compares the notes with those of the session that holds the context or that it continues from. If that session cannot
/// be read, the notes count as edited since, so that they are saved once more.
async fn load_saved_notes(store: &Store, home: &Path, context: &mut Context) -> Result<()> {
    let session = context.saved_session.or(context.parent);
    let has_notes = context.has_unsaved_notes || notes::has_notes(&context.working_set);
    let Some(id) = session.filter(|_| has_notes) else { return Ok(()) };
    let Some((row, dir)) = find_session(store, home, id).await? else { return Ok(()) };
    let Ok(path) = store.local_file(&row, &dir).await else { return Ok(()) };
    let found = chorus_runtime::spawn_blocking(move || session_files::read(&path))
        .await
        .map_err(|e| Error::internal(e.to_string()))?;
    if let Some(file) = found.ok().and_then(|found| found.file.ok()) {
        let saved = file.header.working_set;
        context.has_unsaved_notes = !notes::has_same_notes(&saved, &context.working_set);
        context.saved_pins = saved.pinned_facts;
    }
    Ok(())
}

/// Returns the row of a session and the directory of its agent, or `None` if the catalog does not have the session or its
/// agent.
async fn find_session(store: &Store, home: &Path, id: Uuid) -> Result<Option<(SessionRow, PathBuf)>> {
    let Some(row) = store.catalog.sessions.get(id).await? else { return Ok(None) };
    let Some(agent) = store.catalog.agents.list_by_id(vec![row.header.agent_id]).await?.pop() else { return Ok(None) };
    Ok(Some((row, home.join(agent.dir))))
}

async fn load_session_messages(store: &Store, home: &Path, id: Uuid, count: u64) -> Result<Vec<StoredMessage>> {
    let gone = |reason: String| {
        Error::new(
            chorus_proto::ErrorKind::CorruptSession,
            format!("the live context starts with session {id}, which {reason}"),
        )
        .hint("restore the session's file, or discard the context: chorusctl context clear --yes")
    };
    let placed = find_session(store, home, id).await?;
    let (row, dir) = placed.ok_or_else(|| gone("is not in the catalog, or has no agent".into()))?;
    let path = store.local_file(&row, &dir).await.map_err(|e| gone(format!("cannot be fetched: {e}")))?;
    let found = chorus_runtime::spawn_blocking(move || session_files::read(&path))
        .await
        .map_err(|e| Error::internal(e.to_string()))?
        .map_err(|e| gone(format!("cannot be read: {e}")))?;
    let file = found.file.map_err(|e| gone(format!("is unusable: its file {e}")))?;
    if !row.has_saved(&file.header, &file.sha256) {
        tracing::warn!(session = %id, "the file of a restored session was changed after it was saved");
    }
    let mut messages = file.messages;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if messages.len() < count {
        return Err(gone(format!("has only {} of its {}", messages.len(), pluralize(count as u64, "message"))));
    }
    messages.truncate(count);
    Ok(messages)
}
