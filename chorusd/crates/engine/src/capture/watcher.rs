//! Follows the directories of programs by inotify.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::file_scan::TranscriptFile;
use super::source::CaptureSource;
use super::sources::Root;
use super::walk::{WalkEntry, walk};

/// Size of the buffer for events, in bytes.
const BUFFER_BYTES: usize = 16 * 1024;

/// The changes in the directories.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub files: Vec<TranscriptFile>,
    /// Something was missed or moved, so all directories must be watched and looked at again.
    pub look_again: bool,
}

/// The purpose of a watch.
#[derive(Debug)]
enum Watched {
    /// A directory of transcripts, and how many directories deep others are.
    Dir(CaptureSource, PathBuf, usize),
    /// A transcript that a link leads to.
    File(CaptureSource, PathBuf),
    /// The nearest directory above one that does not exist, and the names whose creation matters.
    Above(Vec<OsString>),
}

/// Follows the directories of programs by inotify.
#[derive(Debug)]
pub(super) struct Watcher {
    fd: AsyncFd<OwnedFd>,
    watches: HashMap<i32, Watched>,
    roots: Vec<PathBuf>,
    /// Not all directories could be watched.
    is_incomplete: bool,
}

impl Watcher {
    /// # Errors
    /// Fails if the limit on inotify instances is reached.
    pub(super) fn new() -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(deprecated, reason = "sound for a descriptor that it owns; what replaces it is unsafe code")]
        let fd = AsyncFd::new(fd)?;
        Ok(Self { fd, watches: HashMap::new(), roots: Vec::new(), is_incomplete: false })
    }

    /// Follows a root with everything below it. If it does not exist, its creation counts as a change.
    pub(super) fn add_root(&mut self, source: CaptureSource, root: &Root) {
        if !root.dir.is_dir() {
            self.watch_above(&root.dir);
            return;
        }
        self.roots.push(root.dir.clone());
        self.add_tree(source, &root.dir, root.depth, None);
    }

    /// Returns true once if directories could not be watched because of a limit.
    pub(super) fn take_incomplete(&mut self) -> bool {
        std::mem::take(&mut self.is_incomplete)
    }

    /// Waits for the next changes.
    pub(super) async fn next(&mut self) -> io::Result<Changes> {
        loop {
            let changes = {
                let mut ready = self.fd.readable().await?;
                ready.clear_ready();
                self.read()?
            };
            if changes.look_again || !changes.files.is_empty() {
                return Ok(changes);
            }
        }
    }

    /// Returns the changes so far without waiting.
    pub(super) fn read(&mut self) -> io::Result<Changes> {
        let mut events = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(self.fd.get_ref(), &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
                    let event = (event.wd(), event.events(), name);
                    // Many writes of one file follow each other.
                    if events.last() != Some(&event) {
                        events.push(event);
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut changes = Changes::default();
        for (watch, flags, name) in events {
            self.apply(watch, flags, name, &mut changes);
        }
        Ok(changes)
    }

    fn apply(&mut self, watch: i32, flags: ReadFlags, name: Option<OsString>, changes: &mut Changes) {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            changes.look_again = true;
            return;
        }
        if flags.contains(ReadFlags::IGNORED) {
            let gone = self.watches.remove(&watch);
            changes.look_again |= match gone {
                Some(Watched::Dir(_, dir, _)) => self.roots.contains(&dir),
                Some(Watched::Above(_)) => true,
                Some(Watched::File(source, path)) => {
                    // It may have been replaced.
                    self.watch_file(source, &path);
                    changes.files.extend(TranscriptFile::of_written(source, path));
                    false
                }
                None => false,
            };
            return;
        }
        if flags.contains(ReadFlags::MOVE_SELF) {
            // Its path is another now, and that of everything below it.
            changes.look_again = true;
            return;
        }
        if let Some(Watched::File(source, path)) = self.watches.get(&watch) {
            changes.files.extend(TranscriptFile::of_written(*source, path.clone()));
            return;
        }
        let Some(name) = name else { return };
        let (source, path, depth) = match self.watches.get(&watch) {
            Some(Watched::Dir(source, dir, depth)) => (*source, dir.join(name), *depth),
            Some(Watched::Above(names)) => {
                changes.look_again |= names.contains(&name);
                return;
            }
            Some(Watched::File(..)) | None => return,
        };
        let is_new = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        if flags.contains(ReadFlags::ISDIR) {
            if depth > 0 && is_new {
                // It may have files already.
                self.add_tree(source, &path, depth - 1, Some(changes));
            }
        } else if is_new && path.is_symlink() {
            // Only a look at all directories tells whether it leads to something else than is known.
            changes.look_again = true;
        } else {
            changes.files.extend(TranscriptFile::of_written(source, path));
        }
    }

    /// Watches a directory and all below it. Each is watched before its files are listed, so that none is missed. Those of a new
    /// directory are added to `changes`.
    fn add_tree(&mut self, source: CaptureSource, dir: &Path, depth: usize, mut changes: Option<&mut Changes>) {
        walk(dir, depth, changes.is_none(), &mut |entry| match entry {
            WalkEntry::Dir { path, depth, is_linked } => {
                self.watch_dir(source, (path, depth), path == dir || is_linked, is_linked);
            }
            WalkEntry::File { path, metadata, is_linked } => {
                if is_linked {
                    self.watch_file(source, &path);
                }
                if let Some(changes) = &mut changes {
                    changes.files.extend(TranscriptFile::new(source, path, &metadata));
                }
            }
            WalkEntry::Link => {
                if let Some(changes) = &mut changes {
                    changes.look_again = true;
                }
            }
            // A look at all directories reports it.
            WalkEntry::Unreadable { .. } => {}
        });
    }

    /// Watches a directory. One that only a link leads to does not take the place of another.
    fn watch_dir(&mut self, source: CaptureSource, (dir, depth): (&Path, usize), follows: bool, is_linked: bool) {
        let flags = WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVE_SELF
            | WatchFlags::EXCL_UNLINK
            | WatchFlags::ONLYDIR;
        let flags = if follows { flags } else { flags | WatchFlags::DONT_FOLLOW };
        let Some(watch) = self.add_watch(dir, flags) else { return };
        let watched = Watched::Dir(source, dir.to_owned(), depth);
        if is_linked {
            self.watches.entry(watch).or_insert(watched);
        } else {
            self.watches.insert(watch, watched);
        }
    }

    /// Watches a file that a link leads to.
    fn watch_file(&mut self, source: CaptureSource, path: &Path) {
        let flags = WatchFlags::MODIFY | WatchFlags::MASK_ADD;
        if source.kind(path).is_some()
            && let Some(watch) = self.add_watch(path, flags)
        {
            self.watches.entry(watch).or_insert_with(|| Watched::File(source, path.to_owned()));
        }
    }

    fn add_watch(&mut self, path: &Path, flags: WatchFlags) -> Option<i32> {
        match inotify::add_watch(self.fd.get_ref(), path, flags) {
            Ok(watch) => Some(watch),
            Err(error) => {
                self.is_incomplete |= error == Errno::NOSPC;
                None
            }
        }
    }

    fn watch_above(&mut self, root: &Path) {
        let Some((above, name)) = root.ancestors().skip(1).find(|dir| dir.is_dir()).and_then(|above| {
            let below = root.strip_prefix(above).ok()?;
            Some((above, below.components().next()?.as_os_str().to_owned()))
        }) else {
            return;
        };
        // Adds to the events of a directory that is watched for its transcripts.
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
        let Ok(watch) = inotify::add_watch(self.fd.get_ref(), above, flags) else { return };
        match self.watches.entry(watch).or_insert_with(|| Watched::Above(Vec::new())) {
            Watched::Above(names) => names.push(name),
            Watched::Dir(..) | Watched::File(..) => {}
        }
    }
}
