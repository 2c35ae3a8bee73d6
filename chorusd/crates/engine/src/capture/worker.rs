//! The thread of capture: follows the directories, and reads what has changed.

use std::fs::File;
use std::io::{self, BufReader};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_base::Ticks;
use chorus_base::error::{Error, Result};
use chorus_proto::methods::import::CommitResult;
use chorus_runtime::run_blocking;
use chorus_store::catalog::CapturedFile;
use tokio_util::sync::CancellationToken;

use super::complete_lines::CompleteLines;
use super::file_scan::{TranscriptFile, find_transcripts};
use super::queue::ChangedFiles;
use super::rules::CaptureRules;
use super::service::{CaptureService, Progress};
use super::settings::CaptureSettings;
use super::watcher::{Changes, Watcher};
use crate::background_thread::run_at_low_priority;
use crate::ops::Ops;
use crate::ops::session::import::Transcript;

/// How often all directories are looked at, whatever inotify says.
const LOOK_EVERY: Duration = Duration::from_secs(10 * 60);

/// Niceness of the thread.
const NICE: i32 = 10;

/// Buffer size for reading a transcript, in bytes.
const READ_BUFFER_BYTES: usize = 1 << 20;

/// Captures until the daemon stops.
pub async fn run(ops: Arc<Ops>, stop: CancellationToken) {
    run_at_low_priority("capture", NICE, move || async move {
        let mut settings = ops.capture.settings.subscribe();
        loop {
            let now = settings.borrow_and_update().clone();
            if !now.is_active() {
                tokio::select! {
                    () = stop.cancelled() => return,
                    _ = settings.changed() => continue,
                }
            }
            let rules = Arc::new(ops.capture.rules());
            let mut follower = Follower { ops: ops.clone(), settings: now, rules, changed: ChangedFiles::default() };
            tokio::select! {
                () = stop.cancelled() => return,
                () = follower.follow(&settings) => {}
            }
        }
    })
    .await;
}

/// Follows the directories with settings that do not change.
struct Follower {
    ops: Arc<Ops>,
    settings: CaptureSettings,
    rules: Arc<CaptureRules>,
    changed: ChangedFiles,
}

impl Follower {
    /// Returns when the settings change.
    async fn follow(&mut self, settings: &tokio::sync::watch::Receiver<CaptureSettings>) {
        let mut settings = settings.clone();
        let mut watcher = None;
        let mut next_look = Ticks(0);
        loop {
            let clock = self.capture().clock.clone();
            if clock.ticks() >= next_look {
                watcher = self.look().await;
                next_look = clock.ticks().after(LOOK_EVERY);
            }
            while let Some(file) = self.changed.pop(Instant::now()) {
                self.read(file).await;
                if settings.has_changed().unwrap_or(true) {
                    return;
                }
                if let Some(watcher) = &mut watcher {
                    match watcher.read() {
                        Ok(changes) if changes.look_again => next_look = Ticks(0),
                        Ok(changes) => self.push(changes),
                        Err(error) => tracing::warn!(%error, "cannot read the changes of transcripts"),
                    }
                }
            }
            if clock.ticks() >= next_look {
                continue;
            }
            self.capture()
                .progress
                .send_replace(Progress { generation: self.settings.generation, ..Progress::default() });
            let due = self.changed.next_due().map(tokio::time::Instant::from_std);
            tokio::select! {
                _ = settings.changed() => return,
                changes = next_changes(watcher.as_mut()) => match changes {
                    Ok(changes) if changes.look_again => next_look = Ticks(0),
                    Ok(changes) => self.push(changes),
                    Err(error) => {
                        tracing::warn!(%error, "cannot follow transcripts by inotify any more");
                        watcher = None;
                    }
                },
                () = self.ops.capture.deleted.restored.notified() => {
                    if let Err(failure) = self.capture().forget_held_back().await {
                        tracing::warn!(%failure, "what was written while a conversation was deleted is captured when it grows");
                    }
                    next_look = Ticks(0);
                }
                () = clock.sleep_until(next_look) => {}
                () = sleep_until(due) => {}
            }
        }
    }

    fn capture(&self) -> &CaptureService {
        &self.ops.capture
    }

    /// Looks at all directories, after they are watched.
    async fn look(&mut self) -> Option<Watcher> {
        let mut watcher = Watcher::new()
            .inspect_err(|error| tracing::warn!(%error, "cannot use inotify; checking transcripts every 10 minutes"))
            .ok();
        let roots: Vec<_> =
            self.settings.on.iter().map(|source| (*source, source.roots(&self.capture().places))).collect();
        if let Some(watcher) = &mut watcher {
            for (source, roots) in &roots {
                roots.iter().for_each(|root| watcher.add_root(*source, root));
            }
            if watcher.take_incomplete() {
                tracing::warn!("not all directories of transcripts can be watched; raise fs.inotify.max_user_watches");
            }
        }
        let found = run_blocking(move || {
            Ok(roots.iter().flat_map(|(source, roots)| find_transcripts(*source, roots)).collect())
        });
        match found.await {
            Ok(files) => self.push(Changes { files, look_again: false }),
            Err(failure) => tracing::warn!(%failure, "cannot look for transcripts"),
        }
        watcher
    }

    /// Adds the files that are not as they were when they were read.
    fn push(&mut self, changes: Changes) {
        let now = Instant::now();
        let mut new_bytes = 0;
        for file in changes.files {
            let before = self.capture().files.lock().get(&file.path).cloned();
            let is_known = before.is_some_and(|read| file.is_as_read(&read));
            if !is_known && !self.rules.excludes(&file.path) {
                new_bytes += file.size;
                self.changed.push(file, now);
            }
        }
        let pending = self.changed.len() as u64;
        self.capture().progress.send_modify(|at| {
            at.total += new_bytes;
            at.pending = pending;
        });
    }

    /// Reads a file, and records that.
    async fn read(&mut self, file: TranscriptFile) {
        let began = Instant::now();
        let path = file.path.clone();
        let row = match self.import(&file).await {
            Ok(Some(row)) => row,
            // It is gone: what was captured stays.
            Ok(None) => return self.count_read(file.size),
            Err(failure) => {
                tracing::warn!(path = %path.display(), %failure, "cannot capture a transcript");
                let before = self.capture().files.lock().get(&path).cloned();
                // Without its inode, so that the next look tries again.
                CapturedFile { inode: 0, ..row_of(&file, before.as_ref(), Some(failure.to_string())) }
            }
        };
        if let Err(failure) = self.capture().table.record(row.clone()).await {
            // The file is read again later, which changes nothing.
            tracing::warn!(%failure, "cannot record what was captured");
        }
        self.capture().files.lock().insert(path.clone(), row);
        self.changed.set_read(path, began.elapsed(), Instant::now());
        self.count_read(file.size);
    }

    fn count_read(&self, bytes: u64) {
        let pending = self.changed.len() as u64;
        self.capture().progress.send_modify(|at| {
            at.done = (at.done + bytes).min(at.total);
            at.pending = pending;
        });
    }

    /// Imports a file up to its last complete line. Returns `None` if it is gone.
    async fn import(&self, file: &TranscriptFile) -> Result<Option<CapturedFile>> {
        let path = file.path.clone();
        let opened = run_blocking(move || {
            let failed = |e: &io::Error| Error::io("cannot read the transcript", e);
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(failed(&error)),
            };
            let metadata = file.metadata().map_err(|e| failed(&e))?;
            let lines = CompleteLines::new(file, metadata.len()).map_err(|e| failed(&e))?;
            Ok(Some((lines, metadata)))
        });
        let Some((lines, metadata)) = opened.await? else { return Ok(None) };
        let Some(file) = TranscriptFile::new(file.source, file.path.clone(), &metadata) else { return Ok(None) };
        let before = self.capture().files.lock().get(&file.path).cloned();
        let read_bytes = lines.len();
        let is_torn_only = before.as_ref().is_some_and(|before| {
            before.failure.is_none()
                && (before.device, before.inode, before.read_bytes) == (file.device, file.inode, read_bytes)
                && before.size < file.size
        });
        if read_bytes == 0 || is_torn_only {
            return Ok(Some(CapturedFile { read_bytes, ..row_of(&file, before.as_ref(), None) }));
        }
        let transcript = Transcript {
            source: BufReader::with_capacity(READ_BUFFER_BYTES, lines),
            bytes: read_bytes,
            name: file.path.to_string_lossy().into_owned(),
            format: file.source.format(),
            agent: None,
            redact: self.settings.redact,
            only_changed: false,
            rules: Some(self.rules.clone()),
        };
        let CommitResult { sessions, skipped_total, .. } =
            self.ops.session_importer.import_transcript(transcript, Box::new(|_, _| {})).await?;
        let unreadable = (sessions.is_empty() && skipped_total > 0).then(|| {
            format!("none of its {skipped_total} lines could be read; the format may be newer than this release")
        });
        // A later look tries again, perhaps by a later release.
        let inode = if unreadable.is_some() { 0 } else { file.inode };
        Ok(Some(CapturedFile {
            inode,
            read_bytes,
            conversations: sessions.len() as u64,
            messages: sessions.iter().map(|session| session.header.message_count).sum(),
            skipped_lines: skipped_total,
            ..row_of(&file, None, unreadable)
        }))
    }
}

/// The row of a file, with the counts that it had before.
fn row_of(file: &TranscriptFile, before: Option<&CapturedFile>, failure: Option<String>) -> CapturedFile {
    CapturedFile {
        source: file.source.name().into(),
        path: file.path.clone(),
        device: file.device,
        inode: file.inode,
        read_bytes: before.map_or(0, |before| before.read_bytes),
        size: file.size,
        modified_at: file.modified_at,
        conversations: before.map_or(0, |before| before.conversations),
        messages: before.map_or(0, |before| before.messages),
        skipped_lines: before.map_or(0, |before| before.skipped_lines),
        failure,
    }
}

async fn next_changes(watcher: Option<&mut Watcher>) -> io::Result<Changes> {
    match watcher {
        Some(watcher) => watcher.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
