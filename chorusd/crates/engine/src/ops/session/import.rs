//! `session.import.*`: imports transcripts and session files as sessions of an agent.

use std::io::{BufReader, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_agent_core::AgentSettings;
use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_clock::Clock;
use chorus_proto::methods::import::{
    AddParams, AddResult, BeginParams, BeginResult, CommitParams, CommitResult, ImportFormat,
};
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{Session, SessionHeader, SummarySource, Trigger};
use chorus_redact::Redactor;
use chorus_runtime::run_blocking;
use chorus_session::{import, slug, summary};
use chorus_store::catalog::SessionPlacement;
use chorus_store::{Store, session_files};
use tokio::sync::{RwLock, mpsc};
use uuid::Uuid;

use super::SessionReader;
use crate::agent::agent_index::AgentIndex;
use crate::agent::session_save::{SessionTarget, write_session};
use crate::ops::agent::{AgentResolver, ImportAgents};
use crate::ops::import_sink::{ImportedSession, SessionCollector, create_spool};
use crate::ops::transfers::{AllTransfers, TranscriptUpload, Transfer};

/// The number of skipped lines that an error names if nothing could be imported.
const MAX_NAMED_SKIPS: usize = 3;

/// The services that save imported sessions.
#[derive(Debug)]
pub struct SessionImporter {
    pub store: Arc<Store>,
    pub agents: Arc<AgentIndex>,
    pub sessions: Arc<SessionReader>,
    pub redactor: Arc<Redactor>,
    /// Locked for reading while a session is written, so that its agent's directory stays where it is.
    pub sessions_lock: Arc<RwLock<()>>,
    pub clock: Clock,
    pub home: PathBuf,
    pub import_agents: ImportAgents,
}

/// Is called with the bytes read so far and the total.
pub type OnProgress = Box<dyn FnMut(u64, u64) + Send>;

/// Opens an import on a connection.
pub async fn begin(
    agents: &AgentResolver,
    transfers: &AllTransfers,
    home: &Path,
    connection: u64,
    params: BeginParams,
) -> Result<BeginResult> {
    let agent = match params.agent.as_deref() {
        Some(name) => Some(agents.resolve(Some(name)).await?.settings.id),
        None => None,
    };
    let dir = home.join("db");
    let spool = run_blocking(move || create_spool(&dir).map_err(|e| Error::io("cannot start an import", &e))).await?;
    let transcript =
        TranscriptUpload { agent, format: params.from, file: params.file.unwrap_or_else(|| "the file".into()) };
    Ok(BeginResult { import: transfers.transcript_uploads.open(connection, transcript, spool)? })
}

/// Receives the next bytes.
pub async fn add(transfers: &Arc<AllTransfers>, connection: u64, params: AddParams) -> Result<AddResult> {
    let bytes = match (params.data, params.data_base64) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(text)) => STANDARD.decode(text).map_err(|e| {
            Error::invalid(format!("`data_base64` is not base64: {e}"))
                .hint("use the standard base64 alphabet with padding")
        })?,
        _ => return Err(Error::invalid("set either `data` or `data_base64`")),
    };
    let transfers = transfers.clone();
    let received = run_blocking(move || transfers.transcript_uploads.append(connection, params.import, &bytes)).await?;
    Ok(AddResult { received })
}

/// Reads the received transcript and saves its sessions. Unreadable entries are skipped and reported; the import
/// succeeds if there is at least one message.
///
/// # Errors
/// `invalid_params` if nothing could be read, `disk_full`, `storage_failed`.
pub async fn commit(
    importer: &SessionImporter,
    transfers: &AllTransfers,
    connection: u64,
    params: CommitParams,
    mut progress: OnProgress,
) -> Result<CommitResult> {
    let Transfer { description: TranscriptUpload { agent, format, file }, file: mut spool, received } =
        transfers.transcript_uploads.remove(connection, params.import)?;
    // Known before the import, because it says whose conversations they are.
    let detected = run_blocking(move || {
        let detected = match format {
            ImportFormat::Auto => import::detect(&mut BufReader::new(&mut spool)),
            named => Ok(named),
        };
        Ok((detected, spool))
    });
    let (detected, mut spool) = detected.await?;
    let format = detected.map_err(|error| import_error(&file, &error))?;
    let mut owner = agent;
    let (done, mut complete) = mpsc::channel(2);
    let (dir, now) = (importer.home.join("db"), importer.clock.now());
    let secrets = (importer.redactor.clone(), params.redact);
    let reading = chorus_runtime::spawn_blocking(move || {
        let mut collector = SessionCollector::new(dir, done, Box::new(move |read| progress(read, received)), secrets);
        spool.rewind().map_err(import::ImportError::Io)?;
        let mut source = BufReader::with_capacity(1 << 20, spool);
        let mut new_id = || new_id().to_string();
        let read = import::import(&mut source, format, now, &mut new_id, &mut collector);
        Ok::<_, import::ImportError>((read, collector.into_result()))
    });
    let mut sessions = Vec::new();
    let (mut failed, mut main, mut known) = (None, None, 0);
    while let Some(mut imported) = complete.recv().await {
        let side_chain = imported.about.side_chain;
        if side_chain {
            // The main conversation may have another id here than in the file.
            imported.about.parent_id = main.or(imported.about.parent_id);
        }
        if params.skip_known && is_known(importer, &imported).await? {
            main = if side_chain { main } else { imported.about.id };
            known += 1;
            continue;
        }
        let saved = async {
            let agent = match owner {
                Some(agent) => agent,
                None => importer.import_agents.find_or_create(format).await?,
            };
            owner = Some(agent);
            save_imported(importer, agent, imported).await
        };
        match saved.await {
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
            delete_imported(importer, sessions).await;
            Err(failure)
        }
        (None, Err(error)) => {
            delete_imported(importer, sessions).await;
            Err(Error::internal(error.to_string()))
        }
        (None, Ok(Err(error))) => {
            delete_imported(importer, sessions).await;
            Err(import_error(&file, &error))
        }
        (None, Ok(Ok((Err(error), found)))) => {
            delete_imported(importer, sessions).await;
            let failure = import_error(&file, &error);
            Err(if matches!(error, import::ImportError::NoMessages) {
                with_skipped_lines(failure, &found)
            } else {
                failure
            })
        }
        (None, Ok(Ok((Ok(_), result)))) => {
            // A rename may have moved the files of the first sessions meanwhile.
            let _stays = importer.sessions_lock.read().await;
            for session in &mut sessions {
                if let Ok(path) = importer.sessions.path(&session.header).await {
                    session.file_path = path.to_string_lossy().into_owned();
                }
            }
            let name = sessions.first().map_or("", |session| &*session.header.agent_name);
            tracing::info!(agent = name, sessions = sessions.len(), skipped_total = result.skipped_total, "imported");
            Ok(CommitResult { sessions, known: Some(known).filter(|known| *known > 0), ..result })
        }
    }
}

/// Adds the first skipped lines to the error, since there is no result that could report them.
fn with_skipped_lines(failure: Error, found: &CommitResult) -> Error {
    if found.skipped.is_empty() {
        return failure;
    }
    let lines =
        found.skipped.iter().take(MAX_NAMED_SKIPS).map(|skipped| format!("line {}: {}", skipped.line, skipped.reason));
    let mut lines: Vec<_> = lines.collect();
    if let Some(more) = found.skipped_total.checked_sub(MAX_NAMED_SKIPS as u64).filter(|more| *more > 0) {
        lines.push(format!("{more} more"));
    }
    failure.hint(format!("{}. If the detected format is wrong, set it with --from", lines.join("; ")))
}

fn import_error(file: &str, error: &import::ImportError) -> Error {
    if let import::ImportError::Io(e) = error {
        return Error::io(format_args!("cannot import {file}"), e);
    }
    let failure = Error::invalid(format!("cannot import {file}: {error}"));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn settings_of(agents: &AgentIndex, agent: Uuid) -> Result<Arc<AgentSettings>> {
    let entry = agents.by_id(agent);
    entry.map(|entry| entry.settings.clone()).ok_or_else(Error::agent_destroyed)
}

/// Returns true if this conversation is in the catalog already with all its messages.
async fn is_known(importer: &SessionImporter, imported: &ImportedSession) -> Result<bool> {
    let Some(id) = imported.about.id else { return Ok(false) };
    let row = importer.store.catalog.sessions.get(id).await?;
    Ok(row.is_some_and(|row| row.header.message_count >= imported.totals.messages))
}

/// Deletes the sessions of a failed import, so that an import is complete or absent.
async fn delete_imported(importer: &SessionImporter, sessions: Vec<Session>) {
    for Session { header, file_path, .. } in sessions {
        // The agent's directory may have been renamed since.
        let _stays = importer.sessions_lock.read().await;
        let path = importer.sessions.path(&header).await.unwrap_or_else(|_| file_path.into());
        let _ = importer.store.catalog.sessions.undo_insert(header).await;
        let _ = run_blocking(move || {
            let _ = std::fs::remove_file(&path);
            Ok(())
        })
        .await;
    }
}

async fn save_imported(importer: &SessionImporter, agent: Uuid, imported: ImportedSession) -> Result<Session> {
    // Locked only while one session is written, so that a rename need not wait for the whole import.
    let _stays = importer.sessions_lock.read().await;
    let settings = &settings_of(&importer.agents, agent)?;
    let ImportedSession { about, body, totals, digest, content_slug, first_at } = imported;
    // Reserved until the row exists: of several concurrent imports of one file, one gets its id.
    let reserved = about.id.and_then(|id| importer.store.files.ids.try_reserve(id));
    let id = match reserved.as_ref().map(|id| *id.key()) {
        Some(id) if importer.store.catalog.sessions.get(id).await?.is_none() => id,
        _ => Uuid::new_v4(),
    };
    // A session file of Chorus keeps its time. A foreign transcript is saved as of now and becomes the latest session.
    let own = about.session_id.is_some();
    let dated = about.saved_at.filter(|_| own);
    let saved_at = dated.unwrap_or_else(|| importer.clock.now());
    let dated = dated.is_some();
    let wanted = about.session_id.filter(|name| is_session_id(name)).unwrap_or_else(|| {
        let slug = about.description.as_deref().and_then(slug::from_description).unwrap_or(content_slug);
        slug::session_id(saved_at, &slug)
    });
    let of = settings.clone();
    let make = move |dir: &Path, session_id: &str| {
        let extract = summary::extract_summary(&digest);
        let (given, found) = (about.summary.is_some(), extract.source());
        let header = SessionHeader {
            schema: SESSION_SCHEMA,
            id,
            session_id: session_id.to_owned(),
            agent_id: of.id,
            agent_name: of.name.clone(),
            conversation: None,
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
        let filled = session_files::stage_spooled(dir, &header, body)?;
        Ok((header, filled))
    };
    let taken_names = importer.store.catalog.sessions.names_with_base(settings.id, wanted.clone()).await?;
    let order = if dated { SessionPlacement::AtOwnPlace } else { SessionPlacement::Last };
    let place = SessionTarget { name: wanted, taken_names, batched: false, summary_request: None, order };
    let written = write_session(&importer.store, settings, place, make, || async { Ok(()) }).await;
    drop(reserved);
    let written = written?;
    if dated {
        // The session keeps its old time but counts as used now.
        if let Err(failure) = importer.store.catalog.sessions.touch(written.header.id, importer.clock.now()).await {
            tracing::warn!(session = %written.header.session_id, %failure, "cannot record the first use of a new session");
        }
    }
    Ok(written)
}

/// Returns true if a name from outside may name a session file: `<YYYY-MM-DD>_<slug>`.
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
