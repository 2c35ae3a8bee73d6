//! The transcripts that have changed, in the order in which they are read.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::file_scan::TranscriptFile;
use super::sources::FileKind;

/// The shortest time between two reads of a file.
const MIN_PAUSE: Duration = Duration::from_millis(200);

/// A file that grows is read at most this share of the time: one fifth.
const PAUSE_FACTOR: u32 = 4;

/// Time within which new lines are saved if a file is read fast enough: a read that has just begun, a pause and another read.
const SAVED_WITHIN: Duration = Duration::from_millis(900);

/// The time until a file is read again whose last change may not have been visible.
const UNSETTLED_PAUSE: Duration = Duration::from_millis(500);

/// The longest time between two reads of a file that grows.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How long a file waits that is being read: longer than that takes.
const UNTIL_READ: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The position of a file: conversations before those of subagents, so that parents exist; then the newest first.
type Position = (bool, Timestamp, PathBuf);

/// The transcripts that have changed and are to be read.
#[derive(Debug, Default)]
pub(super) struct ChangedFiles {
    files: HashMap<PathBuf, TranscriptFile>,
    order: BTreeSet<Position>,
    /// Files that were just read, which wait until then.
    waiting: HashMap<PathBuf, (Instant, Option<TranscriptFile>)>,
    /// Files that have grown while they wait, open, so that what was added is read even if the program deletes them.
    held: HashMap<PathBuf, Arc<File>>,
}

impl ChangedFiles {
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Adds a file, or replaces its state.
    pub(super) fn push(&mut self, file: TranscriptFile, now: Instant) {
        if let Some((until, waiting)) = self.waiting.get_mut(&file.path) {
            if *until > now {
                if file.kind == FileKind::Lines
                    && !self.held.contains_key(&file.path)
                    && let Ok(open) = File::open(&file.path)
                {
                    self.held.insert(file.path.clone(), Arc::new(open));
                }
                *waiting = Some(file);
                return;
            }
            self.waiting.remove(&file.path);
        }
        if let Some(before) = self.files.remove(&file.path) {
            self.order.remove(&position(&before));
        }
        self.order.insert(position(&file));
        self.files.insert(file.path.clone(), file);
    }

    /// Returns the next file to read. Those of subagents come only if nothing is being read, which may be their parent.
    pub(super) fn pop(&mut self, now: Instant, is_reading: bool) -> Option<TranscriptFile> {
        let due: Vec<_> =
            self.waiting.iter().filter(|(_, (until, _))| *until <= now).map(|(path, _)| path.clone()).collect();
        for path in due {
            if let Some((_, Some(file))) = self.waiting.remove(&path) {
                self.push(file, now);
            }
        }
        if is_reading && self.order.last().is_some_and(|(is_parent, ..)| !is_parent) {
            return None;
        }
        let (_, _, path) = self.order.pop_last()?;
        self.files.remove(&path)
    }

    /// Returns a file that [`Self::pop`] returned, open, if it is one that waited.
    pub(super) fn take_held(&mut self, path: &Path) -> Option<Arc<File>> {
        self.held.remove(path)
    }

    /// Lets a file that is being read wait until [`Self::set_read`].
    pub(super) fn set_reading(&mut self, path: PathBuf, now: Instant) {
        self.waiting.insert(path, (now + UNTIL_READ, None));
    }

    /// Lets a file that was read wait before it is read again, for longer the more time that took. An `unsettled` one is read again in
    /// any case.
    pub(super) fn set_read(&mut self, path: PathBuf, took: Duration, unsettled: Option<TranscriptFile>, now: Instant) {
        let pause = pause_after(took);
        // It may have grown meanwhile.
        let grown = self.waiting.remove(&path).and_then(|(_, grown)| grown);
        let waiting = match (grown, unsettled) {
            (None, Some(file)) => (now + pause.max(UNSETTLED_PAUSE), Some(file)),
            (grown, _) => (now + pause, grown),
        };
        self.waiting.insert(path, waiting);
    }

    /// Returns when a file that waits is to be read.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.waiting.values().filter(|(_, file)| file.is_some()).map(|(until, _)| *until).min()
    }
}

/// Returns the time between a read that took so long and the next. Between the two limits it grows, so that a read that was slow for once
/// does not hold up what follows.
fn pause_after(took: Duration) -> Duration {
    let rare = took.saturating_mul(PAUSE_FACTOR).clamp(MIN_PAUSE, MAX_PAUSE);
    let soon = SAVED_WITHIN.saturating_sub(took * 2);
    let between = MIN_PAUSE + (took * 2).saturating_sub(SAVED_WITHIN - MIN_PAUSE).saturating_mul(PAUSE_FACTOR);
    rare.min(soon.max(between))
}

fn position(file: &TranscriptFile) -> Position {
    (!file.source.is_subagent(&file.path), file.modified_at, file.path.clone())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::source::CaptureSource;
    use super::*;

    fn file(path: &str, at: i64) -> TranscriptFile {
        let modified_at = Timestamp::from_second(at).unwrap();
        TranscriptFile {
            source: CaptureSource::ClaudeCode,
            kind: FileKind::Lines,
            path: path.into(),
            device: 1,
            inode: 1,
            size: 1,
            modified_at,
        }
    }

    #[test]
    fn the_newest_comes_first_and_subagents_after_their_parents() {
        let now = Instant::now();
        let mut queue = ChangedFiles::default();
        for (path, at) in [("a", 1), ("agent-x", 9), ("c", 3), ("b", 2), ("c", 4)] {
            queue.push(file(path, at), now);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(now, false)).map(|file| file.path).collect();
        assert_eq!(order, ["c", "b", "a", "agent-x"].map(PathBuf::from));
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_is_read_again() {
        let now = Instant::now();
        let mut queue = ChangedFiles::default();
        queue.set_reading("a".into(), now);
        queue.push(file("a", 2), now);
        queue.push(file("agent-x", 9), now);
        assert_eq!(queue.pop(now + Duration::from_secs(60), true), None);
        queue.set_read("a".into(), Duration::ZERO, None, now);
        assert_eq!(queue.pop(now + MIN_PAUSE, false), Some(file("a", 2)));
        assert_eq!(queue.pop(now + MIN_PAUSE, false), Some(file("agent-x", 9)));
    }

    #[test]
    fn a_file_that_is_not_settled_is_read_again() {
        let now = Instant::now();
        let mut queue = ChangedFiles::default();
        queue.set_reading("a".into(), now);
        queue.set_read("a".into(), Duration::ZERO, Some(file("a", 1)), now);
        assert_eq!(queue.next_due(), Some(now + UNSETTLED_PAUSE));
        queue.push(file("a", 2), now);
        assert_eq!(queue.pop(now + UNSETTLED_PAUSE, false), Some(file("a", 2)));
        // What it wrote meanwhile does not wait for longer.
        queue.set_reading("a".into(), now);
        queue.push(file("a", 3), now);
        queue.set_read("a".into(), Duration::ZERO, Some(file("a", 2)), now);
        assert_eq!(queue.pop(now + MIN_PAUSE, false), Some(file("a", 3)));
    }

    #[test]
    fn what_was_added_while_a_file_waits_is_there_after_it_was_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "one\n").unwrap();
        let now = Instant::now();
        let mut queue = ChangedFiles::default();
        queue.set_reading(path.clone(), now);
        queue.set_read(path.clone(), Duration::from_secs(1), None, now);
        queue.push(file(path.to_str().unwrap(), 2), now);
        std::fs::remove_file(&path).unwrap();
        assert!(queue.pop(now + Duration::from_secs(60), false).is_some());
        let mut text = String::new();
        let mut held = queue.take_held(&path).unwrap();
        held.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\n");
        assert!(queue.take_held(&path).is_none());
    }

    #[test]
    fn pauses_are_short_as_long_as_what_is_written_is_then_saved_within_a_second() {
        for (took, pause) in [
            (0, 200),
            (50, 200),
            (100, 400),
            (200, 500),
            (350, 200),
            (400, 600),
            (500, 1400),
            (650, 2600),
            (1000, 4000),
            (60_000, 60_000),
        ] {
            assert_eq!(pause_after(Duration::from_millis(took)), Duration::from_millis(pause), "{took}");
        }
    }

    #[test]
    fn a_file_that_grows_is_read_a_fifth_of_the_time() {
        let now = Instant::now();
        let mut queue = ChangedFiles::default();
        queue.set_read("a".into(), Duration::from_secs(1), None, now);
        assert_eq!(queue.next_due(), None);
        queue.push(file("a", 2), now);
        assert_eq!(queue.pop(now, false), None);
        assert_eq!(queue.next_due(), Some(now + Duration::from_secs(4)));
        assert_eq!(queue.pop(now + Duration::from_secs(4), false), Some(file("a", 2)));
        assert_eq!(queue.pop(now + Duration::from_secs(10), false), None);
    }
}
