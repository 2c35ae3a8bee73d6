//! Salvages contexts from damaged journals: turns everything that can still be read into sessions, and restores those
//! as live contexts.

use std::path::Path;

use chorus_agent_core::event::Restore;
use chorus_base::error::{Error, Result};
use chorus_catalog::SessionPlacement;
use chorus_journal::ContextRow;
use chorus_proto::methods::doctor::Salvaged;
use chorus_proto::pluralize::pluralize;
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{ConversationRef, ErrorKind, Session, SessionHeader, Trigger, WorkingSet};
use chorus_runtime::run_blocking;
use chorus_session::stored_message::{StoredMessage, Totals};
use chorus_session::summary::ConversationSample;
use chorus_session::{MessageHash, slug, summary};
use chorus_store::journal::SalvagedContent;
use chorus_store::recovery::{Incident, SalvagedJournal, list_incidents, salvage_journal};
use chorus_store::{DB_DIR, JOURNAL_FILE, integrity, session_files};
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::Ops;
use crate::agent::command;
use crate::agent::session_save::{SessionTarget, write_session};
use crate::ops::conversations::recovery::ensure_row;

/// The tag of salvaged sessions.
const SALVAGED_TAG: &str = "salvaged";

/// Reads what is left of contexts that the journal cannot read back, and of journals that were set aside. Each context
/// becomes a session of its agent and, unless the agent has continued since, its live context again. The damaged files
/// are kept as they are. A journal that cannot be read does not prevent the others from being read.
///
/// # Errors
/// The catalog cannot be read, or the disk cannot store the copies. What was salvaged until then stays.
pub fn salvage<'a>(ops: &'a Ops) -> BoxFuture<'a, Result<Salvaged>> {
    Box::pin(async move {
        ops.store.require_sqlite("a salvage")?;
        // Keeps agents from being created, renamed or destroyed.
        let _alone = ops.agent_resolver.lock.lock().await;
        let mut done = Salvaged::default();
        let db = ops.home.join(DB_DIR);
        let of = db.clone();
        for mut incident in run_blocking(move || Ok(list_incidents(&of))).await? {
            if incident.facts.salvaged {
                continue;
            }
            incident.facts.salvaged = salvage_incident(ops, &mut incident, &mut done).await?;
            run_blocking(move || incident.save()).await?;
        }
        let journal = db.join(JOURNAL_FILE);
        let of = journal.clone();
        let found = run_blocking(move || integrity::salvage_contexts(&of, true)).await?;
        if !found.is_empty() {
            let mut incident = copy_journal_aside(ops, &journal, found.len()).await?;
            done.set_aside.push(path_text(&incident.dir));
            let before = done.unreadable;
            for (head, all) in found {
                salvage_context(ops, &head, all, RestoreMode::Replace, &mut done).await?;
            }
            incident.facts.incomplete = done.unreadable > before;
            run_blocking(move || incident.save()).await?;
        }
        tracing::info!(sessions = done.sessions, messages = done.messages, unreadable = done.unreadable, "salvaged");
        Ok(done)
    })
}

/// Salvages a journal that was set aside. Returns false if nothing of it can be read, so that a later release tries
/// again.
async fn salvage_incident(ops: &Ops, incident: &mut Incident, done: &mut Salvaged) -> Result<bool> {
    if incident.facts.catalog {
        // The start has recovered what it could of a catalog. What is lost stays lost, and has now been reported.
        incident.facts.incomplete = incident.facts.lost;
        return Ok(true);
    }
    let dir = incident.dir.clone();
    let found = match run_blocking(move || salvage_journal(&dir)).await {
        Ok(found) => found,
        Err(failure) if failure.kind == ErrorKind::DiskFull => return Err(failure),
        Err(failure) => {
            tracing::warn!(%failure, dir = %incident.dir.display(), "cannot read a journal copy");
            SalvagedJournal { has_files: true, ..SalvagedJournal::default() }
        }
    };
    if !found.has_files {
        return Ok(true);
    }
    let (before, readable) = (done.unreadable, !found.contexts.is_empty());
    done.unreadable += found.lost;
    for (head, all) in found.contexts {
        if has_whole_context(ops, &head).await? {
            continue;
        }
        // Rewinds are ignored, so the records have at least as many messages as were counted.
        let has = all.messages.len() as u64 + all.session.map_or(0, |(_, messages)| messages) + all.unreadable;
        done.unreadable += head.totals.messages.saturating_sub(has);
        // A context that the current journal has ended since must not become live again.
        let live = if incident.facts.continued { RestoreMode::Never } else { RestoreMode::IfIdle };
        salvage_context(ops, &head, all, live, done).await?;
    }
    incident.facts.incomplete = done.unreadable > before || !found.has_readable || (!readable && incident.facts.lost);
    done.set_aside.push(path_text(&incident.dir));
    if !readable && incident.facts.incomplete {
        done.nothing_readable.push(path_text(&incident.dir));
    }
    Ok(readable || !incident.facts.incomplete)
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns true if the current journal has the whole context. It is identified by several fields because a new journal
/// assigns the numbers of the old one again.
async fn has_whole_context(ops: &Ops, lost: &ContextRow) -> Result<bool> {
    let same = |head: &ContextRow| {
        (head.context, head.conversation, head.started_at) == (lost.context, lost.conversation, lost.started_at)
    };
    let heads = ops.store.journal.live_contexts().await?;
    Ok(heads.iter().any(|head| same(head) && head.totals.messages >= lost.totals.messages))
}

/// Copies the journal as it is into a new incident.
async fn copy_journal_aside(ops: &Ops, journal: &Path, contexts: usize) -> Result<Incident> {
    let what = format!("{}: cannot read {}", journal.display(), pluralize(contexts as u64, "context"));
    let mut incident = Incident::begin(journal.parent().unwrap_or(journal), ops.clock.now(), what)?;
    ops.store.require_sqlite("a salvage")?.copy_journal_to(incident.dir.join(JOURNAL_FILE)).await?;
    // Until everything was read.
    (incident.facts.salvaged, incident.facts.incomplete) = (true, true);
    let noted = incident.clone();
    run_blocking(move || noted.save()).await?;
    Ok(incident)
}

/// Decides if a salvaged context becomes the live context of its agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RestoreMode {
    /// Replaces the live one, which is broken.
    Replace,
    /// Only if the agent has no live context.
    IfIdle,
    Never,
}

/// Turns a context into a session, and restores it according to `live`.
fn salvage_context<'a>(
    ops: &'a Ops,
    head: &'a ContextRow,
    all: SalvagedContent,
    live: RestoreMode,
    done: &'a mut Salvaged,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let broken = live == RestoreMode::Replace;
        let (conversation, expected) = (head.conversation, head.totals.messages);
        let agent = conversation.agent;
        let SalvagedContent { session, mut messages, working_set, unreadable, unchained: outside } = all;
        done.unreadable += unreadable;
        done.expected = Some(done.expected.unwrap_or(0) + expected);
        if let Some((id, count)) = session {
            match session_prefix(ops, id, count).await {
                Ok(mut first) => {
                    first.append(&mut messages);
                    messages = first;
                }
                Err(failure) => {
                    tracing::warn!(session = %id, %failure, "cannot read the start of a salvaged context");
                    done.unreadable += count;
                }
            }
        }
        let Some(entry) = ops.agents.by_id(agent) else {
            tracing::warn!(%agent, messages = messages.len(), "skipped a context: its agent does not exist");
            done.unreadable += messages.len() as u64;
            return Ok(());
        };
        if messages.is_empty() {
            if broken {
                ops.registry.ask(conversation, command::clear(false)).await?;
            }
            return Ok(());
        }
        let _stays = ops.sessions_lock.read().await;
        ensure_row(&ops.store, &ops.agents.conversations, conversation, ops.clock.now()).await?;
        let of = ops.agents.conversations.reference(conversation);
        let session = write_salvaged(ops, &entry.settings, of, messages.clone(), working_set.clone()).await?;
        done.sessions += 1;
        done.messages += messages.len() as u64;
        tracing::info!(agent = %entry.settings.name, session = %session.header.session_id, messages = messages.len(), expected, "salvaged a session");
        if live == RestoreMode::Never
            || (live == RestoreMode::IfIdle && ops.registry.context_info(conversation).is_some())
        {
            return Ok(());
        }
        if broken {
            // Both the session and the copy that was set aside have them.
            ops.store.require_sqlite("a salvage")?.delete_unchained_records(outside).await?;
        }
        let restore = |discard| {
            command::restore(Restore {
                session: session.header.id,
                session_id: session.header.session_id.clone(),
                messages: messages.clone(),
                appended: Vec::new(),
                working_set: working_set.clone(),
                restoration: session.header.restoration_tokens,
                discard,
            })
        };
        // A live context that is complete in memory is saved first; an incomplete one cannot be saved, and is discarded.
        if ops.registry.ask(conversation, restore(false)).await.is_err() {
            ops.registry.ask(conversation, restore(true)).await?;
        }
        done.restored.push(entry.settings.name.clone());
        Ok(())
    })
}

/// Returns the first `count` messages of a session.
async fn session_prefix(ops: &Ops, id: Uuid, count: u64) -> Result<Vec<StoredMessage>> {
    let row = ops.store.catalog.sessions.get(id).await?;
    let row = row.ok_or_else(|| Error::internal(format!("session {id} is not in the catalog")))?;
    let (mut file, _) = ops.sessions.read_file(&row).await?;
    file.messages.truncate(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(file.messages)
}

/// Writes the session.
async fn write_salvaged(
    ops: &Ops,
    settings: &std::sync::Arc<chorus_agent_core::AgentSettings>,
    conversation: Option<ConversationRef>,
    messages: Vec<StoredMessage>,
    mut working_set: WorkingSet,
) -> Result<Session> {
    working_set.clear_recalled_texts();
    let now = ops.clock.now();
    let parsed = |index: usize| messages.get(index).and_then(|message: &StoredMessage| message.to_message().ok());
    let mut digest = ConversationSample::new();
    ConversationSample::selected_indices(messages.len()).filter_map(parsed).for_each(|message| digest.push(&message));
    let extract = summary::extract_summary(&digest);
    let first = parsed(0);
    let content = first.as_ref().map_or("", |message| message.content.as_str());
    let wanted = slug::session_id(now, &slug::from_content(content));
    let started_at = first.map_or(now, |message| message.timestamp);
    let (of, totals, id) = (settings.clone(), Totals::count(&messages), Uuid::new_v4());
    let make = move |dir: &Path, session_id: &str| {
        let header = SessionHeader {
            schema: SESSION_SCHEMA,
            id,
            session_id: session_id.to_owned(),
            agent_id: of.id,
            agent_name: of.name.clone(),
            conversation: conversation.clone(),
            source: None,
            summary_source: extract.source(),
            description: extract.title,
            summary: extract.summary,
            saved_at: now,
            started_at,
            trigger: Trigger::Import,
            model: of.model.clone(),
            message_count: totals.messages,
            query_count: totals.queries,
            token_estimate: totals.tokens(),
            restoration_tokens: chorus_proto::TokenPair::default(),
            parent_id: None,
            workspace_commit: None,
            tags: vec![SALVAGED_TAG.to_owned()],
            working_set,
        };
        let sha256 = MessageHash::from_messages(messages.iter().map(|message| &message.json()[..])).finish();
        let filled = session_files::stage(dir, &header, &messages, sha256)?;
        Ok((header, filled))
    };
    let taken_names = ops.store.catalog.sessions.names_with_base(settings.id, wanted.clone()).await?;
    write_session(
        &ops.store,
        settings,
        SessionTarget {
            name: wanted,
            taken_names,
            batched: false,
            summary_request: None,
            order: SessionPlacement::Last,
            usage: None,
        },
        make,
        || async { Ok(()) },
    )
    .await
}
