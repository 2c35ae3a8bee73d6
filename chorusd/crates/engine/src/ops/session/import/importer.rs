//! Imports the conversations of a transcript: each becomes a session, or grows the one that holds it already.

use std::io::{BufRead, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_clock::Clock;
use chorus_proto::Session;
use chorus_proto::methods::import::{CommitResult, ImportFormat, ImportOutcome, ImportedConversation};
use chorus_redact::Redactor;
use chorus_runtime::run_blocking;
use chorus_session::import::{self, ImportedMetadata};
use chorus_store::Store;
use chorus_tool_files::{ConversationInfo, CursorTranscript};
use jiff::Timestamp;
use tokio::sync::{RwLock, mpsc};
use uuid::Uuid;

use super::super::SessionReader;
use super::conversation_lookup::ConversationKey;
use crate::KeyedMutex;
use crate::agent::agent_index::AgentIndex;
use crate::agent::registry::Registry;
use crate::capture::{CaptureRules, DeletedConversations};
use crate::ops::agent::ImportAgents;
use crate::ops::import_sink::{ImportedSession, SessionCollector};

/// The number of skipped lines that an error names if nothing could be imported.
const MAX_NAMED_SKIPS: usize = 3;

/// The services that save imported sessions.
#[derive(Debug)]
pub struct SessionImporter {
    pub store: Arc<Store>,
    pub agents: Arc<AgentIndex>,
    pub sessions: Arc<SessionReader>,
    pub registry: Arc<Registry>,
    pub redactor: Arc<Redactor>,
    /// Locked for reading while a session is written, so that its agent's directory stays where it is.
    pub sessions_lock: Arc<RwLock<()>>,
    pub clock: Clock,
    pub home: PathBuf,
    pub import_agents: ImportAgents,
    /// Conversations that capture leaves out, until they are imported on request.
    pub deleted: Arc<DeletedConversations>,
    /// Held while a conversation is looked up and saved, so that concurrent imports of it make one session.
    pub conversation_locks: KeyedMutex<ConversationKey>,
}

/// Is called with the bytes read so far and the total.
pub type OnProgress = Box<dyn FnMut(u64, u64) + Send>;

/// A transcript to import.
#[derive(Debug)]
pub struct Transcript<R> {
    pub source: R,
    /// Size of the source.
    pub bytes: u64,
    /// The file's name, for messages and for programs that put the id of a conversation there.
    pub name: String,
    /// Title and project from other sources, for what it does not say.
    pub info: ConversationInfo,
    /// When it was last written: the time of messages that have none.
    pub written_at: Option<Timestamp>,
    pub format: ImportFormat,
    /// Looks only in this agent for earlier imports, and saves new ones there. Otherwise the agent of the program gets them.
    pub agent: Option<Uuid>,
    /// Redacts secrets in conversations that were not imported before. The others go on as they began.
    pub redact: bool,
    /// Leave sessions that are up to date out of the result.
    pub only_changed: bool,
    /// Set for capture: which conversations it takes. A transcript without any message is then no error.
    pub rules: Option<Arc<CaptureRules>>,
}

/// A conversation that was imported.
#[derive(Debug)]
pub(super) struct SavedConversation {
    pub session: Session,
    pub outcome: ImportOutcome,
    /// Number of messages that were added.
    pub added: u64,
    /// Number of secrets in what was added.
    pub secrets: u64,
}

/// The destination of the conversations of a transcript.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportTarget<'a> {
    pub format: ImportFormat,
    /// The file's name.
    pub name: &'a str,
    /// Title and project from other sources than the transcript.
    pub info: &'a ConversationInfo,
    pub agent: Option<Uuid>,
    pub redact: bool,
    pub rules: Option<&'a CaptureRules>,
}

impl SessionImporter {
    /// Imports a transcript. Unreadable entries are skipped and reported; the import succeeds if there is at least one
    /// message. If it fails, no new session is left; messages that were added to others stay.
    ///
    /// # Errors
    /// `invalid_params` if nothing could be read, `disk_full`, `storage_failed`.
    pub async fn import_transcript<R: BufRead + Seek + Send + 'static>(
        &self,
        transcript: Transcript<R>,
        mut progress: OnProgress,
    ) -> Result<CommitResult> {
        let Transcript { mut source, bytes, name: file, info, written_at, format, agent, redact, only_changed, rules } =
            transcript;
        // Known before the import, because it says whose conversations they are.
        let detected = run_blocking(move || {
            let detected = match format {
                ImportFormat::Auto => import::detect(&mut source),
                named => Ok(named),
            };
            Ok((detected, source))
        });
        let (detected, mut source) = detected.await?;
        let format = detected.map_err(|error| import_error(&file, &error))?;
        let (done, mut complete) = mpsc::channel(2);
        let (dir, now) = (self.spool_dir(), self.clock.now());
        let written_at = written_at.map_or(now, |at| at.min(now));
        let redactor = self.redactor.clone();
        let reading = chorus_runtime::spawn_blocking(move || {
            let mut collector = SessionCollector::new(dir, done, Box::new(move |read| progress(read, bytes)), redactor);
            source.rewind().map_err(import::ImportError::Io)?;
            let mut new_id = || new_id().to_string();
            let read = import::import(&mut source, format, written_at, &mut new_id, &mut collector);
            Ok::<_, import::ImportError>((read, collector.into_result()))
        });
        let target = ImportTarget { format, name: &file, info: &info, agent, redact, rules: rules.as_deref() };
        let mut saved = SavedConversations::default();
        while let Some(imported) = complete.recv().await {
            if let Err(failure) = saved.add(self, target, imported).await {
                saved.failure = Some(failure);
                // Dropping the receiver ends the reader.
                break;
            }
        }
        drop(complete);
        let failure = match (saved.failure.take(), reading.await) {
            (Some(failure), _) => failure,
            (None, Err(error)) => Error::internal(error.to_string()),
            (None, Ok(Err(error))) => import_error(&file, &error),
            (None, Ok(Ok((Err(import::ImportError::NoMessages), result)))) if rules.is_some() => {
                return Ok(self.finish(saved, result, (only_changed, rules.is_some())).await);
            }
            (None, Ok(Ok((Err(error @ import::ImportError::NoMessages), found)))) => {
                with_skipped_lines(import_error(&file, &error), &found)
            }
            (None, Ok(Ok((Err(error), _)))) => import_error(&file, &error),
            (None, Ok(Ok((Ok(_), result)))) => {
                return Ok(self.finish(saved, result, (only_changed, rules.is_some())).await);
            }
        };
        self.delete_new(saved.all).await;
        Err(failure)
    }

    /// Returns the directory for the spool files of messages.
    pub(crate) fn spool_dir(&self) -> PathBuf {
        self.home.join("db")
    }

    async fn finish(
        &self,
        saved: SavedConversations,
        mut result: CommitResult,
        (only_changed, is_capture): (bool, bool),
    ) -> CommitResult {
        // A rename may have moved the files of the first sessions meanwhile.
        let _stays = self.sessions_lock.read().await;
        let mut secrets = 0;
        for SavedConversation { mut session, outcome, added, secrets: found } in saved.all {
            secrets += found;
            if only_changed && outcome == ImportOutcome::UpToDate {
                result.known_sessions.push(session.header.id);
                continue;
            }
            if let Ok(path) = self.sessions.path(&session.header).await {
                session.file_path = path.to_string_lossy().into_owned();
            }
            result.conversations.push(ImportedConversation { id: session.header.id, outcome, added });
            result.sessions.push(session);
        }
        let known = result.known_sessions.len() as u64;
        let unless_none = |count: u64| Some(count).filter(|count| *count > 0);
        (result.known, result.left_out) = (unless_none(known), unless_none(saved.left_out));
        result.secrets_found = Some(secrets);
        let name = result.sessions.first().map_or("", |session| &*session.header.agent_name);
        let (sessions, skipped_total) = (result.sessions.len(), result.skipped_total);
        // Capture reads a conversation again each time that it grows.
        match is_capture {
            true => tracing::debug!(agent = name, sessions, skipped_total, "captured"),
            false => tracing::info!(agent = name, sessions, known, skipped_total, "imported"),
        }
        result
    }

    /// Deletes the new sessions of a failed import.
    async fn delete_new(&self, saved: Vec<SavedConversation>) {
        for SavedConversation { session: Session { header, file_path, .. }, outcome, .. } in saved {
            if !matches!(outcome, ImportOutcome::New | ImportOutcome::Revision) {
                continue;
            }
            // The agent's directory may have been renamed since.
            let _stays = self.sessions_lock.read().await;
            let path = self.sessions.path(&header).await.unwrap_or_else(|_| file_path.into());
            let _ = self.store.catalog.sessions.undo_insert(header).await;
            let _ = run_blocking(move || {
                let _ = std::fs::remove_file(&path);
                Ok(())
            })
            .await;
        }
    }
}

/// The conversations of a transcript that were imported so far.
#[derive(Debug, Default)]
struct SavedConversations {
    all: Vec<SavedConversation>,
    /// The session of the conversation that the following side chains belong to.
    main: Option<Uuid>,
    /// Number of conversations that the rules of capture leave out.
    left_out: u64,
    failure: Option<Error>,
}

impl SavedConversations {
    async fn add(
        &mut self,
        importer: &SessionImporter,
        target: ImportTarget<'_>,
        mut imported: ImportedSession,
    ) -> Result<()> {
        if target.format == ImportFormat::Cursor {
            add_id_of_file(&mut imported.about, target.name);
        }
        let side_chain = imported.about.side_chain;
        add_info(&mut imported.about, target.info);
        if side_chain {
            // The main conversation may have another id here than in the file.
            imported.about.parent_id = self.main.or(imported.about.parent_id);
        }
        let Some(saved) = importer.save_conversation(target, imported, side_chain && self.main.is_none()).await? else {
            self.left_out += 1;
            return Ok(());
        };
        if !side_chain {
            self.main = Some(saved.session.header.id);
        }
        self.all.push(saved);
        Ok(())
    }
}

/// Cursor has the id of a conversation in the name of its transcript: `<id>.jsonl`.
fn add_id_of_file(about: &mut ImportedMetadata, file: &str) {
    if about.conversation.is_some() {
        return;
    }
    let path = Path::new(file);
    if let Some(transcript) = CursorTranscript::from_path(path) {
        about.side_chain = transcript.parent.is_some();
        about.id = transcript.id.parse().ok();
        about.conversation = Some(
            transcript.parent.map_or_else(|| transcript.id.into(), |parent| format!("{parent}/{}", transcript.id)),
        );
    } else if let Some(id) = path.file_stem().and_then(|name| name.to_str()?.parse::<Uuid>().ok()) {
        // A copy that lies elsewhere.
        about.id = Some(id);
        about.conversation = Some(id.to_string());
    }
}

/// Completes what a transcript says of a conversation by what is known besides it. A subagent has no title there.
fn add_info(about: &mut ImportedMetadata, info: &ConversationInfo) {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    about.project = about.project.take().or_else(|| given(&info.project));
    if !about.side_chain {
        about.description = about.description.take().or_else(|| given(&info.title));
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
