//! Describes the sources: how much was captured, and which transcripts could not be read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use chorus_base::error::Result;
use chorus_catalog::CapturedFile;
use chorus_proto::methods::capture::{CaptureFailure, SourceStatus, StatusResult, UnreadLine, UpcomingDeletion};
use chorus_runtime::run_blocking;
use jiff::{Timestamp, ToSpan as _};
use uuid::Uuid;

use super::file_scan::{TranscriptFile, find_transcripts};
use super::service::CaptureService;
use super::source::CaptureSource;
use super::sources::{FileKind, Root};
use super::walk::list_error;

/// The next days for which deletions are counted.
const FORECAST_DAYS: u64 = 9;

/// A program that was used so many days after it last wrote a transcript is said to be silent.
const SILENT_DAYS: i64 = 14;

/// The conversations that agents hold.
#[derive(Debug)]
struct Kept {
    /// Conversations and their messages, by program.
    counts: HashMap<String, (u64, u64)>,
    sessions: HashSet<Uuid>,
}

impl CaptureService {
    /// Describes these sources.
    pub(crate) async fn describe(&self, sources: Vec<CaptureSource>) -> Result<StatusResult> {
        let settings = self.settings.borrow().clone();
        let (files, places, now) = (self.files.lock().clone(), self.places.clone(), self.clock.now());
        let unreadable = self.unreadable_dirs.lock().clone();
        let on = settings.sources();
        let (counts, sessions) = (self.sessions.count_by_program().await?, self.sessions.ids_with_source().await?);
        let kept = Kept { counts, sessions };
        let sources = run_blocking(move || {
            let describe = |source: CaptureSource| {
                let known = KnownFiles { files: &files, unreadable: &unreadable, kept: &kept };
                describe_source(source, on.contains(&source), source.roots(&places), known, now)
            };
            Ok(sources.into_iter().map(describe).collect())
        })
        .await?;
        Ok(StatusResult {
            paused: settings.paused,
            redact: settings.redacts(),
            excluded: settings.all_excluded().into_iter().collect(),
            pending: self.progress.borrow().pending,
            sources,
        })
    }
}

/// The files as they were when they were last read, the directories that could not be listed, and what is kept.
#[derive(Clone, Copy)]
struct KnownFiles<'a> {
    files: &'a HashMap<PathBuf, CapturedFile>,
    unreadable: &'a BTreeMap<PathBuf, CaptureSource>,
    kept: &'a Kept,
}

fn describe_source(
    source: CaptureSource,
    on: bool,
    roots: Vec<Root>,
    KnownFiles { files, unreadable, kept }: KnownFiles<'_>,
    now: Timestamp,
) -> SourceStatus {
    let own = || files.values().filter(|file| file.source == source.name());
    let failed = || own().filter_map(|file| Some((file, file.failure.as_ref()?)));
    let newest = failed().max_by_key(|(file, _)| (!file.unsaved, file.modified_at));
    let unsaved = failed().filter(|(file, _)| file.unsaved).count() as u64;
    let skipped = own().filter_map(|file| Some((file, file.skipped.as_ref()?)));
    let skipped = skipped.filter(|(file, _)| file.skipped_lines > 0).max_by_key(|(file, _)| file.modified_at);
    let deletion = roots.iter().find_map(|root| source.deletes_after_days(&root.dir));
    let deletion = deletion.and_then(|days| forecast(source, &roots, (files, kept), (days, now)));
    let (conversations, messages) = kept.counts.get(source.name()).copied().unwrap_or_default();
    let last_written_at = own().map(|file| file.modified_at).max();
    SourceStatus {
        source: source.name().into(),
        on,
        found: roots.iter().any(|root| root.dir.is_dir()),
        used_since: last_written_at.filter(|_| on).and_then(|written| used_since(&roots, written, now)),
        // A database has rows for its conversations.
        files: own().filter(|file| source.kind(&file.path) != Some(FileKind::Database)).count() as u64,
        conversations,
        messages,
        last_written_at,
        skipped_lines: own().map(|file| file.skipped_lines).sum(),
        skipped: skipped.map(|(file, skipped)| UnreadLine {
            path: file.path.to_string_lossy().into_owned(),
            line: skipped.line,
            reason: skipped.reason.clone(),
        }),
        failed: failed().count() as u64,
        unsaved: Some(unsaved).filter(|count| *count > 0),
        unreadable: unreadable
            .iter()
            .filter(|(_, of)| **of == source)
            .filter_map(|(dir, _)| describe_dir(dir))
            .collect(),
        failure: newest.map(|(file, reason)| CaptureFailure {
            path: file.path.to_string_lossy().into_owned(),
            reason: reason.clone(),
        }),
        deletion,
        places: roots.into_iter().map(|root| root.dir.to_string_lossy().into_owned()).collect(),
    }
}

/// Describes a directory that still cannot be listed.
fn describe_dir(dir: &Path) -> Option<CaptureFailure> {
    let reason = list_error(dir)?.kind().to_string();
    Some(CaptureFailure { path: dir.to_string_lossy().into_owned(), reason })
}

/// Returns when a program was last used, if that is long after it wrote a transcript: by the files beside its transcripts.
fn used_since(roots: &[Root], written: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let quiet = (SILENT_DAYS * 24).hours();
    if now < written.checked_add(quiet).ok()? {
        return None;
    }
    let beside = roots.iter().filter_map(|root| std::fs::read_dir(root.dir.parent()?).ok()).flatten().flatten();
    let files = beside.filter_map(|entry| entry.metadata().ok().filter(std::fs::Metadata::is_file));
    let used = files.filter_map(|file| Timestamp::try_from(file.modified().ok()?).ok()).max()?;
    (used >= written.checked_add(quiet).ok()?).then_some(used)
}

/// Counts the transcripts that the program will delete soon; `None` if there are none.
fn forecast(
    source: CaptureSource,
    roots: &[Root],
    (files, kept): (&HashMap<PathBuf, CapturedFile>, &Kept),
    (after_days, now): (u64, Timestamp),
) -> Option<UpcomingDeletion> {
    let hours = i64::try_from(after_days.saturating_sub(FORECAST_DAYS)).ok()?.checked_mul(24)?;
    let before = now.checked_sub(hours.hours()).ok()?;
    let found = find_transcripts(source, roots).transcripts;
    let doomed: Vec<_> = found.iter().filter(|file| file.modified_at <= before).collect();
    let is_captured = |file: &TranscriptFile| {
        files.get(&file.row_path()).is_some_and(|read| {
            let sessions = read.sessions.as_deref().unwrap_or_default();
            read.failure.is_none()
                && read.conversations > 0
                && sessions.iter().all(|session| kept.sessions.contains(session))
        })
    };
    (!doomed.is_empty()).then(|| UpcomingDeletion {
        after_days,
        within_days: FORECAST_DAYS,
        transcripts: doomed.len() as u64,
        not_captured: doomed.iter().filter(|file| !is_captured(file)).count() as u64,
    })
}
