//! `session.import.*`, and taking stock of session files that are there already.

use std::io::{BufReader, Seek as _};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::methods::import::{AddParams, AddResult, BeginParams, BeginResult, CommitParams, CommitResult};
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{Session, SessionHeader, SummarySource, Trigger};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::agent::Facts;
use crate::agent::save::{Place, write};
use crate::clock::new_id;
use crate::failure::{Failure, Result};
use crate::ops::import_sink::{Collector, Imported, spool};
use crate::ops::spools::{Spool, Transcript};
use crate::ops::{Ops, blocking, select, view};
use crate::session::{import, slug};
use crate::store::catalog::Order;
use crate::store::session_files;
use crate::summary;

/// So many skipped lines are named where nothing came in.
const TOLD: usize = 3;

/// Hears how many bytes of how many were read.
pub type OnProgress = Box<dyn FnMut(u64, u64) + Send>;

/// Opens an import on a connection.
///
/// # Errors
/// `agent_not_found`, `busy`, `disk_full`.
pub async fn begin(ops: &Ops, connection: u64, params: BeginParams) -> Result<BeginResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let dir = ops.home.join("db");
    let spool = blocking(move || spool(&dir).map_err(|e| Failure::io("cannot begin an import", &e))).await?;
    let transcript = Transcript {
        agent: agent.facts.id,
        format: params.from,
        file: params.file.unwrap_or_else(|| "the file".into()),
    };
    Ok(BeginResult { import: ops.transcripts.open(connection, transcript, spool)? })
}

/// Takes the next bytes.
///
/// # Errors
/// `not_found`, `invalid_params`, `disk_full`.
pub async fn add(ops: &Arc<Ops>, connection: u64, params: AddParams) -> Result<AddResult> {
    let bytes = match (params.data, params.data_base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(text)) => STANDARD.decode(text).map_err(|e| {
            Failure::invalid(format!("`data_base64` is not base64: {e}")).hint("the standard alphabet, with padding")
        })?,
        _ => return Err(Failure::invalid("give either `data` or `data_base64`")),
    };
    let ops = ops.clone();
    let received = blocking(move || ops.transcripts.add(connection, params.import, &bytes)).await?;
    Ok(AddResult { received })
}

/// Reads what came and saves it. What cannot be read is skipped and told; one message that came in is enough.
///
/// # Errors
/// `invalid_params` where nothing could be read, `disk_full`, `storage_failed`.
pub async fn commit(
    ops: &Ops,
    connection: u64,
    params: CommitParams,
    mut progress: OnProgress,
) -> Result<CommitResult> {
    let Spool { of: Transcript { agent, format, file }, file: mut spool, received } =
        ops.transcripts.take(connection, params.import)?;
    let name = facts(ops, agent)?.name.clone();
    let (done, mut complete) = mpsc::channel(2);
    let (dir, now) = (ops.home.join("db"), ops.clock.now());
    let secrets = (ops.models.redactor().clone(), params.redact);
    let reading = tokio::task::spawn_blocking(move || {
        let mut collector = Collector::new(dir, done, Box::new(move |read| progress(read, received)), secrets);
        spool.rewind().map_err(import::ImportError::Io)?;
        let mut source = BufReader::with_capacity(1 << 20, spool);
        let mut new_id = || new_id().to_string();
        let read = import::import(&mut source, format, now, &mut new_id, &mut collector);
        Ok::<_, import::ImportError>((read, collector.result()))
    });
    let mut sessions = Vec::new();
    let (mut failed, mut main) = (None, None);
    while let Some(mut imported) = complete.recv().await {
        let side_chain = imported.about.side_chain;
        if side_chain {
            // The main conversation may have got another id here than it has in the file.
            imported.about.parent_id = main.or(imported.about.parent_id);
        }
        match keep(ops, agent, imported).await {
            Ok(session) => {
                main = if side_chain { main } else { Some(session.header.id) };
                sessions.push(session);
            }
            Err(failure) => {
                // Dropping the receiver ends the reader.
                failed = Some(failure);
                break;
            }
        }
    }
    drop(complete);
    match (failed, reading.await) {
        (Some(failure), _) => {
            undo(ops, sessions).await;
            Err(failure)
        }
        (None, Err(error)) => {
            undo(ops, sessions).await;
            Err(Failure::internal(error.to_string()))
        }
        (None, Ok(Err(error))) => {
            undo(ops, sessions).await;
            Err(unreadable(&file, &error))
        }
        (None, Ok(Ok((Err(error), found)))) => {
            undo(ops, sessions).await;
            let failure = unreadable(&file, &error);
            Err(if matches!(error, import::ImportError::NoMessages) { told(failure, &found) } else { failure })
        }
        (None, Ok(Ok((Ok(_), result)))) => {
            // A rename may have moved those that came before it.
            let _stays = ops.sessions_lock.read().await;
            for session in &mut sessions {
                if let Ok(path) = view::path(ops, &session.header).await {
                    session.file_path = path.to_string_lossy().into_owned();
                }
            }
            tracing::info!(agent = %name, sessions = sessions.len(), skipped_total = result.skipped_total, "imported");
            Ok(CommitResult { sessions, ..result })
        }
    }
}

/// The failure with the first lines that were skipped: there is no result that could name them.
fn told(failure: Failure, found: &CommitResult) -> Failure {
    if found.skipped.is_empty() {
        return failure;
    }
    let lines = found.skipped.iter().take(TOLD).map(|skipped| format!("line {}: {}", skipped.line, skipped.reason));
    let mut lines: Vec<_> = lines.collect();
    if let Some(more) = found.skipped_total.checked_sub(TOLD as u64).filter(|more| *more > 0) {
        lines.push(format!("{more} more"));
    }
    failure.hint(format!("{}. Where the format was guessed wrong, name it with --from", lines.join("; ")))
}

fn unreadable(file: &str, error: &import::ImportError) -> Failure {
    if let import::ImportError::Io(e) = error {
        return Failure::io(format_args!("cannot import {file}"), e);
    }
    let failure = Failure::invalid(format!("cannot import {file}: {error}"));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn facts(ops: &Ops, agent: Uuid) -> Result<Arc<Facts>> {
    let entry = ops.directory.by_id(agent);
    entry.map(|entry| entry.facts.clone()).ok_or_else(Failure::destroyed)
}

/// Takes sessions back that came before a failure: an import is whole or nothing.
async fn undo(ops: &Ops, sessions: Vec<Session>) {
    for Session { header, file_path, .. } in sessions {
        // The directory may be another by now.
        let _stays = ops.sessions_lock.read().await;
        let path = view::path(ops, &header).await.unwrap_or_else(|_| file_path.into());
        let _ = ops.store.catalog.take_back(header).await;
        let _ = blocking(move || {
            let _ = std::fs::remove_file(&path);
            Ok(())
        })
        .await;
    }
}

async fn keep(ops: &Ops, agent: Uuid, imported: Imported) -> Result<Session> {
    // Only while one session is written: a rename need not wait for the whole import.
    let _stays = ops.sessions_lock.read().await;
    let facts = &facts(ops, agent)?;
    let Imported { about, body, totals, digest, content_slug, first_at } = imported;
    // Kept until the row is there: of many imports of one file that run at once, one gets its id.
    let reserved = about.id.and_then(|id| ops.store.files.ids.take(id));
    let id = match reserved.as_ref().map(|id| *id.key()) {
        Some(id) if ops.store.catalog.session(id).await?.is_none() => id,
        _ => Uuid::new_v4(),
    };
    // A session of Chorus's own keeps its time; a foreign transcript becomes a session now, and is the latest.
    let own = about.session_id.is_some();
    let dated = about.saved_at.filter(|_| own);
    let saved_at = dated.unwrap_or_else(|| ops.clock.now());
    let dated = dated.is_some();
    let wanted = about.session_id.filter(|name| is_session_id(name)).unwrap_or_else(|| {
        let slug = about.description.as_deref().and_then(slug::of_description).unwrap_or(content_slug);
        slug::session_id(saved_at, &slug)
    });
    let of = facts.clone();
    let make = move |dir: &std::path::Path, session_id: &str| {
        let extract = summary::extract(&digest);
        let (given, found) = (about.summary.is_some(), extract.source());
        let header = SessionHeader {
            schema: SESSION_SCHEMA,
            id,
            session_id: session_id.to_owned(),
            agent_id: of.id,
            agent_name: of.name.clone(),
            description: about.description.or(extract.title),
            summary_source: match about.summary_source {
                Some(source) if given => source,
                _ if given => SummarySource::Given,
                _ => found,
            },
            summary: about.summary.or(extract.summary),
            saved_at,
            started_at: about.started_at.unwrap_or(first_at),
            trigger: Trigger::Import,
            model: about.model,
            message_count: totals.messages,
            query_count: totals.queries,
            token_estimate: totals.tokens(),
            restoration_tokens: about.restoration_tokens.unwrap_or_default(),
            parent_id: about.parent_id,
            workspace_commit: None,
            tags: about.tags,
            working_set: about.working_set.unwrap_or_default(),
        };
        let filled = session_files::write_body(dir, &header, body)?;
        Ok((header, filled))
    };
    let known = ops.store.catalog.names_like(facts.id, wanted.clone()).await?;
    let order = if dated { Order::AsPlaced } else { Order::Last };
    let place = Place { wanted, known, together: false, summary: None, order };
    let written = write(&ops.store, facts, place, make, || async { Ok(()) }).await;
    drop(reserved);
    let written = written?;
    if dated {
        // It is as old as it says, and used now.
        if let Err(failure) = ops.store.catalog.touch_session(written.header.id, ops.clock.now()).await {
            tracing::warn!(session = %written.header.session_id, %failure, "a new session counts as unused since its time");
        }
    }
    Ok(written)
}

/// Whether a name that came from elsewhere may name a file here: `<YYYY-MM-DD>_<slug>`.
fn is_session_id(name: &str) -> bool {
    let Some((date, slug)) = name.split_once('_') else { return false };
    date.len() == 10
        && date.parse::<jiff::civil::Date>().is_ok()
        && !slug.is_empty()
        && slug.len() <= 64
        && slug.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::is_session_id;

    #[test]
    fn only_our_own_form_names_a_file() {
        assert!(is_session_id("2026-02-12_auth-refactor-2"));
        for bad in
            ["x", "2026-02-12_", "2026-02-12_../x", "2026-02-12_a/b", "2026-02-31_a", "20260212__a", "2026-02-12_A"]
        {
            assert!(!is_session_id(bad), "{bad}");
        }
    }
}
