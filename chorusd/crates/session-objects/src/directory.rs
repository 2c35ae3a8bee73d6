//! A shared directory as a bucket. Each object is a file that is synced before it gets its name, and no name is given twice.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{create_private, sync, sync_dir};
use chorus_runtime::run_blocking;
use jiff::Timestamp;
use uuid::Uuid;

use crate::bucket::{Bucket, BucketFuture, Listed, PutOutcome, missing};

/// The directory of files that are being written.
const TEMPORARY_DIR: &str = ".new";

/// Age from which a file that was not finished is deleted.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A shared directory as a bucket.
#[derive(Debug, Clone)]
pub struct DirectoryBucket {
    root: PathBuf,
}

impl DirectoryBucket {
    /// Creates the directory (mode 0700) if there is none, and deletes files that were not finished a day ago. Blocks.
    ///
    /// # Errors
    /// `storage_failed`.
    pub fn open(root: &Path) -> Result<Self> {
        let temporary = root.join(TEMPORARY_DIR);
        let failed = |e: io::Error| Error::io(format_args!("cannot open {}", root.display()), &e);
        create_private(&temporary).map_err(failed)?;
        for entry in fs::read_dir(&temporary).map_err(failed)?.flatten() {
            let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > ABANDONED_AFTER) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { root: root.to_owned() })
    }

    fn put_blocking(&self, key: &str, bytes: &[u8]) -> io::Result<PutOutcome> {
        let target = self.root.join(key);
        let temporary = self.root.join(TEMPORARY_DIR).join(Uuid::new_v4().to_string());
        let written = (|| {
            let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            new.write_all(bytes)?;
            sync(&new)?;
            self.create_parents(&target)?;
            // Fails if the name is taken, on every file system.
            match fs::hard_link(&temporary, &target) {
                Ok(()) => sync_dir(parent(&target)).map(|()| PutOutcome::Created),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(PutOutcome::Exists),
                Err(e) => Err(e),
            }
        })();
        let _ = fs::remove_file(&temporary);
        written
    }

    /// Creates the directories above `target`, and makes their names durable.
    fn create_parents(&self, target: &Path) -> io::Result<()> {
        let dir = parent(target);
        if dir.is_dir() {
            return Ok(());
        }
        create_private(dir)?;
        for above in dir.ancestors().skip(1).take_while(|above| above.starts_with(&self.root)) {
            sync_dir(above)?;
        }
        Ok(())
    }

    /// Collects files below `dir` whose keys come after `after`, in order.
    fn walk(&self, dir: &str, after: &str, limit: usize, found: &mut Vec<Listed>) -> io::Result<()> {
        let entries = match fs::read_dir(self.root.join(dir)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && name != TEMPORARY_DIR
            {
                let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
                names.push(format!("{dir}{name}{slash}"));
            }
        }
        // With its slash, a directory sorts as the keys in it.
        names.sort_unstable();
        for key in names {
            if found.len() >= limit {
                break;
            }
            if key.ends_with('/') {
                if &*key > after || after.starts_with(&key) {
                    self.walk(&key, after, limit, found)?;
                }
            } else if &*key > after
                && let Some(file) = self.look_up(&key)?
            {
                found.push(file);
            }
        }
        Ok(())
    }

    fn look_up(&self, key: &str) -> io::Result<Option<Listed>> {
        let meta = match self.root.join(key).metadata() {
            Ok(meta) => meta,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let modified = Timestamp::try_from(meta.modified()?).unwrap_or_default();
        Ok(Some(Listed { key: key.to_owned(), bytes: meta.len(), modified }))
    }

    /// Runs `work` where it may block.
    fn run<T: Send + 'static>(
        &self,
        what: &'static str,
        key: &str,
        work: impl FnOnce(&Self, &str) -> io::Result<T> + Send + 'static,
    ) -> BucketFuture<'static, T> {
        let (bucket, key) = (self.clone(), key.to_owned());
        Box::pin(run_blocking(move || {
            work(&bucket, &key).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => missing(&key),
                _ => Error::io(format_args!("cannot {what} {}", bucket.root.join(&key).display()), &e),
            })
        }))
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn read_range(path: &Path, range: &Range<u64>) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    file.take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

impl Bucket for DirectoryBucket {
    fn put_new<'a>(&'a self, key: &'a str, bytes: Bytes) -> BucketFuture<'a, PutOutcome> {
        self.run("write", key, move |bucket, key| bucket.put_blocking(key, &bytes))
    }

    fn get<'a>(&'a self, key: &'a str) -> BucketFuture<'a, Option<Bytes>> {
        self.run("read", key, |bucket, key| match fs::read(bucket.root.join(key)) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        })
    }

    fn get_range<'a>(&'a self, key: &'a str, range: Range<u64>) -> BucketFuture<'a, Bytes> {
        self.run("read", key, move |bucket, key| read_range(&bucket.root.join(key), &range))
    }

    fn head<'a>(&'a self, key: &'a str) -> BucketFuture<'a, Option<Listed>> {
        self.run("look up", key, |bucket, key| bucket.look_up(key))
    }

    fn list<'a>(&'a self, prefix: &'a str, after: Option<&'a str>, limit: usize) -> BucketFuture<'a, Vec<Listed>> {
        let after = after.unwrap_or_default().to_owned();
        self.run("list", prefix, move |bucket, prefix| {
            let mut found = Vec::new();
            bucket.walk(prefix, &after, limit, &mut found)?;
            Ok(found)
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BucketFuture<'a, ()> {
        // Not synced: a body that a crash brings back has no row, and is swept.
        self.run("delete", key, |bucket, key| match fs::remove_file(bucket.root.join(key)) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        })
    }
}
