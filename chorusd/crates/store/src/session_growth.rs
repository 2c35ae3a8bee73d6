//! Adds messages at the end of an imported session. Its file is replaced atomically, and only after the hash of what it had
//! was verified; the bytes of its messages stay.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{TEMPORARY_PREFIX, sync_dir};
use chorus_catalog::{ImportedUsage, SessionRow, place_of};
use chorus_proto::{ErrorKind, SessionHeader};
use chorus_runtime::run_blocking;
use chorus_session::file::{self, FOOTER, MESSAGES_LINE};
use chorus_session::growth::{Comparison, Growth, Relation, Side, compare};
use chorus_session::message_lines::MessageLines;
use chorus_session::read_header_lines;
use uuid::Uuid;

use super::Store;
use super::message_spool::SpooledMessages;
use super::session_files::{self, StagedFile, WrittenFile, stage_file, write_error};

/// Buffer size of reads, in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// Prepares a message for a comparison, for example redacts it; `None` if it stays as it is.
pub type PrepareMessage = Arc<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// Changes the header of a session that has grown, whose messages have this hash now.
pub type ChangeGrown = Arc<dyn Fn(&mut SessionHeader, &str) + Send + Sync>;

/// How [`Store::grow_session`] changes the header of a session.
#[derive(Clone)]
pub struct HeaderChange {
    /// Is called with the [`MessageHash`](chorus_session::MessageHash) of the messages after growth; `None`: the session must
    /// not grow.
    pub grown: Option<ChangeGrown>,
    /// Is called before the last message is replaced by its whole reply. If it returns true, something refers to the message as it
    /// is, and the session must not change.
    pub is_in_use: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Is called if the session has the same messages already.
    pub same: Arc<dyn Fn(&mut SessionHeader) + Send + Sync>,
    /// The usage of the conversation, which replaces that of the session.
    pub usage: Option<Arc<ImportedUsage>>,
}

impl std::fmt::Debug for HeaderChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeaderChange").field("may_grow", &self.grown.is_some()).finish_non_exhaustive()
    }
}

/// The result of [`Store::grow_session`].
#[derive(Debug)]
pub enum GrowthResult {
    /// The session has the same messages already.
    Same(Box<SessionRow>),
    /// The session has more than the conversation.
    Shorter(Box<SessionRow>),
    /// Messages were added; `kept` of them were there before.
    Grown { row: Box<SessionRow>, kept: u64 },
    /// Messages of the session are changed or missing in the conversation, or its file is not as it was saved.
    Different,
}

impl Store {
    /// Adds the messages of `new` that a session does not have yet, and changes its header. Changes of session files run one
    /// at a time.
    ///
    /// # Errors
    /// `session_not_found`, `disk_full`, `storage_failed`; the session is then unchanged.
    pub async fn grow_session(
        &self,
        id: Uuid,
        agent_dir: PathBuf,
        new: Arc<SpooledMessages>,
        prepare: PrepareMessage,
        change: HeaderChange,
    ) -> Result<GrowthResult> {
        if self.bodies.is_some()
            && let Some(row) = self.catalog.sessions.get(id).await?
        {
            self.local_file(&row, &agent_dir).await?;
        }
        let _one_at_a_time = self.files.change_lock.lock().await;
        let Some(row) = self.catalog.sessions.get(id).await? else {
            return Err(Error::new(ErrorKind::SessionNotFound, "the session was deleted"));
        };
        let path = session_files::path_of(&agent_dir, &row.header.session_id);
        if row.corrupt.is_some() {
            return Ok(GrowthResult::Different);
        }
        if row.sha256 == new.sha256 {
            return self.record_same(row, agent_dir, change).await;
        }
        let row = self.make_plain(row, &agent_dir).await?;
        let usage = change.usage.clone();
        let (known, grown, is_in_use) = (row.clone(), change.grown.clone(), change.is_in_use.clone());
        let written = run_blocking(move || {
            let mut stored = match StoredSession::open(&path) {
                Ok(stored) => stored,
                // There is nothing to add to.
                Err(failure) if failure.kind == ErrorKind::SessionNotFound => return Ok(None),
                Err(failure) => return Err(failure),
            };
            let Some(comparison) = stored.compare(&new, &prepare).map_err(|e| session_files::read_error(&path, &e))?
            else {
                return Ok(None);
            };
            let is_as_saved = known.has_saved(&stored.header, &comparison.stored_sha256);
            match comparison.relation {
                Relation::Different => Ok(None),
                relation @ (Relation::Same | Relation::Shorter | Relation::Longer(_)) if !is_as_saved => {
                    tracing::warn!(path = %path.display(), ?relation, "a session file was changed, so it does not grow");
                    Ok(None)
                }
                Relation::Longer(growth) => {
                    let Some(grown) = grown else { return Ok(None) };
                    if growth.kept < stored.header.message_count && is_in_use() {
                        return Ok(None);
                    }
                    let mut header = stored.header.clone();
                    grown(&mut header, &comparison.grown_sha256);
                    let staged = stored.stage(&path, &header, growth, &new, comparison.grown_sha256)?;
                    Ok(Some((comparison.relation, Written::File(Box::new(header), replace_with_backup(staged, &path)?))))
                }
                relation @ (Relation::Same | Relation::Shorter) => {
                    let caught_up = (comparison.stored_sha256 != known.sha256).then(|| SessionRow {
                        sha256: comparison.stored_sha256,
                        file_stamp: stored.stamp.clone(),
                        ..row_of(known, stored.header.clone())
                    });
                    Ok(Some((relation, Written::Nothing(caught_up.map(Box::new)))))
                }
            }
        })
        .await?;
        let Some((relation, written)) = written else { return Ok(GrowthResult::Different) };
        let row = match written {
            Written::File(header, written) => self.record_growth(row, *header, written, usage).await?,
            Written::Nothing(None) => row,
            // A crash kept the row from following the file.
            Written::Nothing(Some(row)) => {
                self.catalog.sessions.replace((*row).clone(), None).await?;
                *row
            }
        };
        match relation {
            Relation::Longer(Growth { kept, .. }) => Ok(GrowthResult::Grown { row: Box::new(row), kept }),
            Relation::Same => self.record_same(row, agent_dir, change).await,
            Relation::Shorter | Relation::Different => Ok(GrowthResult::Shorter(Box::new(row))),
        }
    }

    /// Changes the header of a session that stays as it is otherwise.
    async fn record_same(&self, row: SessionRow, agent_dir: PathBuf, change: HeaderChange) -> Result<GrowthResult> {
        let same = change.same;
        let mut row = self.update_row(row, agent_dir, move |header| same(header)).await?;
        let place = place_of(&row.header);
        if row.header.source.is_some() && row.place != place {
            // An import of a version that did not keep the source.
            row.place = place;
            self.catalog.sessions.replace(row.clone(), None).await?;
        }
        // What an earlier version imported has no usage.
        if let Some(usage) = change.usage {
            self.catalog.imported_usage.record(row.header.id, usage).await?;
        }
        Ok(GrowthResult::Same(Box::new(row)))
    }

    /// Records a file that has replaced the one of `row`; takes it back if that fails.
    async fn record_growth(
        &self,
        row: SessionRow,
        header: SessionHeader,
        written: Replaced,
        usage: Option<Arc<ImportedUsage>>,
    ) -> Result<SessionRow> {
        let (id, row) = (row.header.id, row_of(row, header));
        let row = SessionRow { file_stamp: written.file.stamp.clone(), sha256: written.file.sha256.clone(), ..row };
        match self.catalog.sessions.replace(row.clone(), usage).await {
            Ok(()) => {
                let _ = run_blocking(move || {
                    written.keep();
                    Ok(())
                })
                .await;
                Ok(row)
            }
            Err(failure) => {
                // The file's stamp now differs from the row's: if undoing fails as well, the next start reads the file
                // again.
                if let Err(undo) = run_blocking(move || written.undo()).await {
                    tracing::error!(session = %id, failure = %undo, "cannot undo a failed session update");
                }
                Err(failure)
            }
        }
    }
}

/// The row of a session whose file has this header now.
fn row_of(row: SessionRow, header: SessionHeader) -> SessionRow {
    let SessionHeader { id, session_id, agent_id, .. } = row.header;
    let header = SessionHeader { id, session_id, agent_id, ..header };
    SessionRow { place: place_of(&header), header, ..row }
}

/// The effect on the file of a session.
enum Written {
    /// The file was replaced, and has this header now.
    File(Box<SessionHeader>, Replaced),
    /// The file stays. If the row does not follow it, the row that does.
    Nothing(Option<Box<SessionRow>>),
}

/// A session file that is open to be compared and copied.
struct StoredSession {
    /// Everything before the line of `messages`.
    head: Vec<u8>,
    header: SessionHeader,
    stamp: String,
    /// Contains the messages from `body_start`.
    body: Body,
    body_start: u64,
}

/// The bytes of a session file in the native layout.
enum Body {
    File(File),
    /// Of a file in another layout, which was converted.
    Converted(Vec<u8>),
}

impl StoredSession {
    /// Opens a file and reads its header.
    fn open(path: &Path) -> Result<Self> {
        let failed = |e: io::Error| session_files::read_error(path, &e);
        let file = File::open(path).map_err(failed)?;
        let stamp = session_files::stamp(&file.metadata().map_err(failed)?);
        let mut source = BufReader::with_capacity(BUFFER_BYTES, file);
        let Some(head) = read_header_lines(&mut source).map_err(failed)? else { return Self::convert(path, stamp) };
        let body_start = (head.len() + MESSAGES_LINE.len()) as u64;
        match file::parse_native_header_only(head.clone()) {
            Some(header) => Ok(Self { head, header, stamp, body: Body::File(source.into_inner()), body_start }),
            None => Self::convert(path, stamp),
        }
    }

    /// Reads a file of another layout, or one that only looks like the native one.
    fn convert(path: &Path, stamp: String) -> Result<Self> {
        let bytes = fs::read(path).map_err(|e| session_files::read_error(path, &e))?;
        let file = file::parse(&Bytes::from(bytes)).map_err(|e| {
            Error::new(ErrorKind::CorruptSession, format!("the file {} {e}", path.display()))
                .hint("the file was left unchanged; repair it or restore a backup")
        })?;
        let mut body = Vec::new();
        for (at, message) in file.messages.iter().enumerate() {
            file::write_message(&mut body, message.json(), at == 0).map_err(|e| session_files::read_error(path, &e))?;
        }
        // As in a file, the list begins on the line after `messages`.
        let mut head = Vec::new();
        file::write_header(&mut head, &file.header).map_err(|e| session_files::read_error(path, &e))?;
        head.truncate(head.len() + 1 - MESSAGES_LINE.len());
        let body = body.strip_prefix(b"\n").map(<[u8]>::to_vec).unwrap_or_default();
        let body = [&body[..], FOOTER].concat();
        Ok(Self { head, header: file.header, stamp, body: Body::Converted(body), body_start: 0 })
    }

    /// Opens the messages, from the first.
    fn messages(&self) -> io::Result<Box<dyn io::BufRead + '_>> {
        match &self.body {
            Body::File(file) => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(self.body_start))?;
                Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
            }
            Body::Converted(bytes) => Ok(Box::new(&bytes[..])),
        }
    }

    /// Compares the session with a conversation. Returns `None` if its file has no valid end.
    fn compare(&mut self, new: &SpooledMessages, prepare: &PrepareMessage) -> io::Result<Option<Comparison>> {
        let mut stored = Side { lines: MessageLines::new(self.messages()?), count: self.header.message_count };
        let mut said = Side { lines: new.lines()?, count: new.count };
        let comparison = compare(&mut stored, &mut said, &**prepare)?;
        if comparison.relation == Relation::Different {
            return Ok(Some(comparison));
        }
        let end = stored.lines.rest()?;
        Ok((end == FOOTER[1..]).then_some(comparison))
    }

    /// Writes the session with the messages of `new` behind those that stay.
    fn stage(
        &self,
        path: &Path,
        header: &SessionHeader,
        growth: Growth,
        new: &SpooledMessages,
        sha256: String,
    ) -> Result<StagedFile> {
        stage_file(path, |out| {
            file::write_header_over(out, &self.head, header)?;
            // Without the line end, which the first message brings along.
            out.write_all(&MESSAGES_LINE[..MESSAGES_LINE.len() - 1])?;
            if growth.kept > 0 {
                out.write_all(b"\n")?;
                match &self.body {
                    Body::File(file) => {
                        out.flush()?;
                        let mut file = file.try_clone()?;
                        file.seek(SeekFrom::Start(self.body_start))?;
                        // Between two files, the kernel copies.
                        io::copy(&mut file.take(growth.kept_end), out.get_mut())?;
                    }
                    Body::Converted(bytes) => {
                        let end = usize::try_from(growth.kept_end).unwrap_or(usize::MAX);
                        out.write_all(bytes.get(..end).unwrap_or(bytes))?;
                    }
                }
            }
            let mut lines = new.lines()?;
            let mut at = 0;
            while let Some(json) = lines.next()? {
                if at >= growth.kept {
                    file::write_message(out, json, at == 0)?;
                }
                at += 1;
            }
            file::write_end(out)?;
            Ok(sha256)
        })
    }
}

/// A file that replaced another, which still exists under a temporary name.
struct Replaced {
    file: WrittenFile,
    before: PathBuf,
}

/// Replaces the file `path`, and keeps the former one under a temporary name. After a crash the next start deletes that.
fn replace_with_backup(staged: StagedFile, path: &Path) -> Result<Replaced> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let before = dir.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
    fs::hard_link(path, &before).map_err(|e| write_error(path, &e))?;
    match staged.persist() {
        Ok(file) => Ok(Replaced { file, before }),
        Err(failure) => {
            let _ = fs::rename(&before, path);
            let _ = fs::remove_file(&before);
            Err(failure)
        }
    }
}

impl Replaced {
    /// Deletes the former file.
    fn keep(self) {
        let _ = fs::remove_file(&self.before);
    }

    /// Restores the former file.
    fn undo(self) -> Result<()> {
        fs::rename(&self.before, &self.file.path).map_err(|e| write_error(&self.file.path, &e))?;
        let _ = sync_dir(self.file.path.parent().unwrap_or(Path::new(".")));
        Ok(())
    }
}
