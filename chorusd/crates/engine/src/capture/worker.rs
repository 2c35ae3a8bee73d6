//! The thread of capture: follows the directories, and reads what has changed.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chorus_base::Ticks;
use chorus_runtime::run_blocking;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rustix::io::Errno;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::file_scan::find_transcripts;
use super::queue::ChangedFiles;
use super::reading::Reader;
use super::service::{CaptureService, Progress};
use super::settings::CaptureSettings;
use super::watcher::{Changes, Watcher};
use crate::background_thread::run_at_low_priority;
use crate::ops::Ops;

/// How often all directories are looked at, whatever inotify says.
const LOOK_EVERY: Duration = Duration::from_secs(10 * 60);

/// Niceness of the thread.
const NICE: i32 = 10;

/// How many files are read at once: while some wait for the disk, others are parsed.
const AT_ONCE: usize = 6;

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
            let reader = Reader { ops: ops.clone(), rules, redact: now.redacts() };
            let reader = Arc::new(reader);
            let mut follower = Follower { reader, settings: now, changed: ChangedFiles::default() };
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
    reader: Arc<Reader>,
    settings: CaptureSettings,
    changed: ChangedFiles,
}

impl Follower {
    /// Returns when the settings change.
    async fn follow(&mut self, settings: &watch::Receiver<CaptureSettings>) {
        let mut settings = settings.clone();
        let mut watcher = None;
        let mut next_look = Ticks(0);
        loop {
            let clock = self.capture().clock.clone();
            if clock.ticks() >= next_look {
                watcher = self.look().await;
                next_look = clock.ticks().after(LOOK_EVERY);
            }
            let mut reading = FuturesUnordered::new();
            loop {
                while reading.len() < AT_ONCE
                    && let Some(file) = self.changed.pop(Instant::now(), !reading.is_empty())
                {
                    self.changed.set_reading(file.path.clone(), Instant::now());
                    let held = self.changed.take_held(&file.path);
                    let (reader, settings) = (self.reader.clone(), settings.clone());
                    reading.push(async move { reader.read(file, held, &settings).await });
                }
                let Some(read) = reading.next().await else { break };
                self.changed.set_read(read.path, read.took, read.unsettled, Instant::now());
                self.count_read(read.bytes);
                if settings.has_changed().unwrap_or(true) {
                    // What is being read is completed with the settings that it began with.
                    while reading.next().await.is_some() {}
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
                () = self.reader.ops.capture.deleted.restored.notified() => {
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
        &self.reader.ops.capture
    }

    /// Looks at all directories, after they are watched.
    async fn look(&mut self) -> Option<Watcher> {
        let watcher = Watcher::new();
        let is_limited = watcher.as_ref().is_err_and(|error| error.raw_os_error() == Some(Errno::MFILE.raw_os_error()));
        self.capture().is_watch_limited.store(is_limited, Ordering::Relaxed);
        let mut watcher = watcher
            .inspect_err(|error| tracing::warn!(%error, "cannot use inotify; checking transcripts every 10 minutes"))
            .ok();
        let roots: Vec<_> =
            self.settings.sources().into_iter().map(|source| (source, source.roots(&self.capture().places))).collect();
        if let Some(watcher) = &mut watcher {
            for (source, roots) in &roots {
                roots.iter().for_each(|root| watcher.add_root(*source, root));
            }
            let is_limited = watcher.take_incomplete();
            self.capture().is_watch_limited.store(is_limited, Ordering::Relaxed);
            if is_limited {
                tracing::warn!("not all directories of transcripts can be watched; raise fs.inotify.max_user_watches");
            }
        }
        let found = run_blocking(move || {
            let found = roots.into_iter().map(|(source, roots)| (source, find_transcripts(source, &roots)));
            Ok(found.collect::<Vec<_>>())
        });
        match found.await {
            Ok(found) => {
                let (mut files, mut unreadable) = (Vec::new(), BTreeMap::new());
                for (source, found) in found {
                    files.extend(found.transcripts);
                    unreadable.extend(found.unreadable.into_iter().map(|dir| (dir, source)));
                }
                *self.capture().unreadable_dirs.lock() = unreadable;
                self.push(Changes { files, look_again: false });
            }
            Err(failure) => tracing::warn!(%failure, "cannot look for transcripts"),
        }
        watcher
    }

    /// Adds the files that are not as they were when they were read.
    fn push(&mut self, changes: Changes) {
        let now = Instant::now();
        let mut new_bytes = 0;
        for file in changes.files {
            let before = self.capture().files.lock().get(&file.row_path()).cloned();
            let is_known = before.is_some_and(|read| file.is_as_read(&read));
            if !is_known && !self.reader.rules.excludes_file(&file.path) {
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

    fn count_read(&self, bytes: u64) {
        let pending = self.changed.len() as u64;
        self.capture().progress.send_modify(|at| {
            at.done = (at.done + bytes).min(at.total);
            at.pending = pending;
        });
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
