//! Reads what has changed, and imports it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use chorus_base::error::{Error, Result};
use chorus_catalog::{CapturedFile, SkippedLine};
use chorus_proto::ErrorKind;
use chorus_proto::methods::import::{CommitResult, Skipped};
use chorus_runtime::run_blocking;
use chorus_tool_files::{ConversationInfo, MAX_TRANSCRIPT_BYTES, ZstdReader, read_info, write_opencode_session};
use jiff::Timestamp;
use tokio::sync::watch;
use uuid::Uuid;

use super::complete_lines::CompleteLines;
use super::file_scan::TranscriptFile;
use super::rules::CaptureRules;
use super::settings::CaptureSettings;
use super::source::CaptureSource;
use super::sources::FileKind;
use crate::ops::Ops;
use crate::ops::import_sink::create_spool;
use crate::ops::session::import::Transcript;

/// Buffer size for reading a transcript, in bytes.
pub(super) const READ_BUFFER_BYTES: usize = 1 << 20;

/// How long a program may take to show in a database what it has written into its log: between the two it waits for the disk.
const DATABASE_SETTLES: Duration = Duration::from_secs(2);

/// Reads what has changed, with settings that do not change.
pub(super) struct Reader {
    pub ops: Arc<Ops>,
    pub rules: Arc<CaptureRules>,
    pub redact: bool,
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct ReadFile {
    pub path: PathBuf,
    pub bytes: u64,
    pub took: Duration,
    /// The file, if its last change may not be visible yet, so that it must be read again.
    pub unsettled: Option<TranscriptFile>,
}

impl Reader {
    /// Reads a file, and records that. A database is left halfway if the settings change.
    /// A transcript that was deleted is read from `held`.
    pub(super) async fn read(
        &self,
        file: TranscriptFile,
        held: Option<Arc<File>>,
        settings: &watch::Receiver<CaptureSettings>,
    ) -> ReadFile {
        let began = Instant::now();
        let age = SystemTime::now().duration_since(file.modified_at.into());
        let is_unsettled = file.kind == FileKind::Database && age.is_ok_and(|age| age < DATABASE_SETTLES);
        let unsettled = is_unsettled.then(|| file.clone());
        let path = file.path.clone();
        let read = match file.kind {
            FileKind::Lines | FileKind::CompressedLines | FileKind::MessageFiles | FileKind::Document => {
                self.read_transcript(&file, held).await
            }
            FileKind::Database => self.read_database(&file, settings).await,
        };
        let row = match read {
            Ok(row) => row,
            Err(failure) => {
                tracing::warn!(path = %path.display(), %failure, "cannot capture a transcript");
                let before = self.ops.capture.files.lock().get(&file.row_path()).cloned();
                // Without its inode, so that the next look tries again.
                Some(CapturedFile { inode: 0, ..failed_row_of(&file, before.as_ref(), &failure) })
            }
        };
        // Of a file that is gone, what was captured stays.
        if let Some(row) = row {
            self.ops.capture.record(row).await;
        }
        ReadFile { path, bytes: file.size, took: began.elapsed(), unsettled }
    }

    /// Imports a transcript, up to its last complete line if it consists of lines. Returns `None` if it is gone.
    pub(super) async fn read_transcript(
        &self,
        file: &TranscriptFile,
        held: Option<Arc<File>>,
    ) -> Result<Option<CapturedFile>> {
        let (path, kind, dir) = (file.path.clone(), file.kind, self.ops.session_importer.spool_dir());
        let opened = run_blocking(move || {
            let failed = |error: &io::Error| match Error::io("cannot read the transcript", error) {
                failure if failure.kind == ErrorKind::DiskFull => failure,
                failure => Error::invalid(failure.message),
            };
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => match held.as_deref().map(File::try_clone) {
                    Some(Ok(file)) => file,
                    Some(Err(_)) | None => return Ok(None),
                },
                Err(error) => return Err(failed(&error)),
            };
            let metadata = file.metadata().map_err(|e| failed(&e))?;
            let complete = match kind {
                FileKind::Document => CompleteLines::whole(file, metadata.len()),
                FileKind::CompressedLines => decompress(file, &dir).map_err(|e| failed(&e))?,
                FileKind::MessageFiles => write_session(&path, &dir).map_err(|e| failed(&e))?,
                FileKind::Lines | FileKind::Database => {
                    CompleteLines::new(file, metadata.len()).map_err(|e| failed(&e))?
                }
            };
            Ok(Some((complete, metadata)))
        });
        let Some((lines, metadata)) = opened.await? else { return Ok(None) };
        let Some(file) = TranscriptFile::new(file.source, file.path.clone(), &metadata) else { return Ok(None) };
        let before = self.ops.capture.files.lock().get(&file.row_path()).cloned();
        let read_bytes = lines.len();
        let is_torn_only = before.as_ref().is_some_and(|before| {
            kind == FileKind::Lines
                && before.failure.is_none()
                && (before.device, before.inode, before.read_bytes) == (file.device, file.inode, read_bytes)
                && before.size < file.size
        });
        if read_bytes == 0 || is_torn_only {
            return Ok(Some(CapturedFile { read_bytes, ..row_of(&file, before.as_ref(), None) }));
        }
        let source = BufReader::with_capacity(READ_BUFFER_BYTES, lines);
        let path = file.path.clone();
        let info = run_blocking(move || Ok(read_info(&path))).await?;
        let about = (info, Some(file.modified_at));
        let outcome = self.import(file.source, (source, read_bytes), &file.path, about).await?;
        // A later look tries again, perhaps by a later release.
        let inode = if outcome.unreadable.is_some() { 0 } else { file.inode };
        Ok(Some(CapturedFile { read_bytes, ..outcome.add_to(CapturedFile { inode, ..row_of(&file, None, None) }) }))
    }

    /// Imports a transcript, given with its length. `name` tells it from all others; `info`, and when it was written, are used for what it
    /// does not say.
    pub(super) async fn import<R>(
        &self,
        source: CaptureSource,
        (transcript, bytes): (BufReader<R>, u64),
        name: &Path,
        (info, written_at): (ConversationInfo, Option<Timestamp>),
    ) -> Result<Outcome>
    where
        R: io::Read + io::Seek + Send + 'static,
    {
        let transcript = Transcript {
            source: transcript,
            bytes,
            name: name.to_string_lossy().into_owned(),
            info,
            written_at,
            format: source.format(),
            agent: None,
            redact: self.redact,
            only_changed: false,
            rules: Some(self.rules.clone()),
        };
        let CommitResult { sessions, skipped, skipped_total, lines_left_out, .. } =
            self.ops.session_importer.import_transcript(transcript, Box::new(|_, _| {})).await?;
        let skipped_lines = skipped_total - lines_left_out.unwrap_or(0);
        let unreadable = (sessions.is_empty() && skipped_lines > 0).then(|| {
            format!("none of its {skipped_lines} lines could be read; the format may be newer than this release")
        });
        let messages = sessions.iter().map(|session| session.header.message_count).sum();
        let skipped = skipped.into_iter().find(|skipped| !skipped.left_out);
        let skipped = skipped.map(|Skipped { line, reason, .. }| SkippedLine { line, reason });
        let sessions = sessions.iter().map(|session| session.header.id).collect();
        Ok(Outcome { sessions, messages, skipped_lines, skipped, unreadable })
    }
}

/// Decompresses a transcript into an unnamed file in `dir`. Blocks.
fn decompress(file: File, dir: &Path) -> io::Result<CompleteLines> {
    let mut lines = create_spool(dir)?;
    let compressed = BufReader::with_capacity(READ_BUFFER_BYTES, file);
    let length = io::copy(&mut ZstdReader::new(compressed, MAX_TRANSCRIPT_BYTES), &mut lines)?;
    CompleteLines::new(lines, length)
}

/// Writes a conversation of many files into an unnamed file in `dir`, as one document. Blocks.
fn write_session(path: &Path, dir: &Path) -> io::Result<CompleteLines> {
    let mut out = BufWriter::with_capacity(READ_BUFFER_BYTES, create_spool(dir)?);
    write_opencode_session(path, &mut out)?;
    let mut document = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let length = document.stream_position()?;
    Ok(CompleteLines::whole(document, length))
}

/// The counts of an import.
#[derive(Debug)]
pub(super) struct Outcome {
    pub sessions: Vec<Uuid>,
    pub messages: u64,
    pub skipped_lines: u64,
    pub skipped: Option<SkippedLine>,
    /// Why nothing could be read.
    pub unreadable: Option<String>,
}

impl Outcome {
    /// Returns `row` with the counts of the import.
    pub(super) fn add_to(self, row: CapturedFile) -> CapturedFile {
        let Self { sessions, messages, skipped_lines, skipped, unreadable } = self;
        let conversations = sessions.len() as u64;
        let sessions = Some(sessions);
        CapturedFile { conversations, messages, sessions, skipped_lines, skipped, failure: unreadable, ..row }
    }
}

/// The row of a file, with the counts that it had before.
pub(super) fn row_of(file: &TranscriptFile, before: Option<&CapturedFile>, failure: Option<String>) -> CapturedFile {
    CapturedFile {
        source: file.source.name().into(),
        path: file.row_path(),
        device: file.device,
        inode: file.inode,
        read_bytes: before.map_or(0, |before| before.read_bytes),
        size: file.size,
        modified_at: file.modified_at,
        conversations: before.map_or(0, |before| before.conversations),
        messages: before.map_or(0, |before| before.messages),
        sessions: before.and_then(|before| before.sessions.clone()),
        skipped_lines: before.map_or(0, |before| before.skipped_lines),
        skipped: before.and_then(|before| before.skipped.clone()),
        marker: None,
        failure,
        unsaved: false,
    }
}

/// The row of a file that could not be captured.
pub(super) fn failed_row_of(file: &TranscriptFile, before: Option<&CapturedFile>, failure: &Error) -> CapturedFile {
    let unsaved =
        matches!(failure.kind, ErrorKind::DiskFull | ErrorKind::StorageFailed | ErrorKind::StorageUnavailable);
    CapturedFile { unsaved, ..row_of(file, before, Some(failure.to_string())) }
}
