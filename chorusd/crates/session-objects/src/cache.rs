//! A cache on this machine's disk. An entry has the hash of its bytes as its name, so that it cannot be out of date, and is
//! verified when it is read. Which entries are used last is in the times of the files, and survives a restart.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{TEMPORARY_PREFIX, create_private};
use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use uuid::Uuid;

use crate::digest::sha256_hex;

const LOCK_FILE: &str = "lock";

/// A cache of bytes by their hash, in a directory that only one process uses.
#[derive(Debug, Clone)]
pub struct BodyCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    max_bytes: u64,
    entries: Mutex<Entries>,
    /// Keeps other processes out as long as it is open.
    _lock: File,
}

/// The entries by name, and their names by the order of use.
#[derive(Debug, Default)]
struct Entries {
    by_name: HashMap<String, (u64, u64)>,
    by_use: BTreeMap<u64, String>,
    bytes: u64,
    uses: u64,
}

impl Entries {
    fn insert(&mut self, name: String, bytes: u64) {
        self.remove(&name);
        self.uses += 1;
        self.bytes += bytes;
        self.by_use.insert(self.uses, name.clone());
        self.by_name.insert(name, (bytes, self.uses));
    }

    fn remove(&mut self, name: &str) {
        if let Some((bytes, used)) = self.by_name.remove(name) {
            self.bytes -= bytes;
            self.by_use.remove(&used);
        }
    }

    /// Takes out the entries that were not used for the longest time, until the others fit.
    fn evict(&mut self, max_bytes: u64) -> Vec<String> {
        let mut evicted = Vec::new();
        while self.bytes > max_bytes
            && let Some((_, name)) = self.by_use.first_key_value()
        {
            let name = name.clone();
            self.remove(&name);
            evicted.push(name);
        }
        evicted
    }
}

impl BodyCache {
    /// Opens the cache in `dir` (mode 0700), which may hold `max_bytes` in all. Files that are not entries are deleted. Blocks.
    ///
    /// # Errors
    /// `conflict` if another process uses it, `storage_failed`.
    pub fn open(dir: &Path, max_bytes: u64) -> Result<Self> {
        let failed = |e: io::Error| Error::io(format_args!("cannot open the cache {}", dir.display()), &e);
        create_private(dir).map_err(failed)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        let mut options = OpenOptions::new();
        let lock =
            options.write(true).create(true).truncate(false).mode(0o600).open(dir.join(LOCK_FILE)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("another process uses the cache {}", dir.display());
                return Err(Error::new(ErrorKind::Conflict, message).hint("give each process a separate directory"));
            }
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        let mut found: Vec<(SystemTime, String, u64)> = Vec::new();
        for entry in fs::read_dir(dir).map_err(failed)?.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_entry = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            match entry.metadata() {
                Ok(meta) if is_entry && meta.is_file() => {
                    found.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), name, meta.len()));
                }
                Ok(meta) if meta.is_file() && name.starts_with(TEMPORARY_PREFIX) => _ = fs::remove_file(entry.path()),
                _ => {}
            }
        }
        found.sort_unstable();
        let mut entries = Entries::default();
        found.into_iter().for_each(|(_, name, bytes)| entries.insert(name, bytes));
        let evicted = entries.evict(max_bytes);
        evicted.iter().for_each(|name| _ = fs::remove_file(dir.join(name)));
        let entries = Mutex::new(entries);
        Ok(Self(Arc::new(Inner { dir: dir.to_owned(), max_bytes, entries, _lock: lock })))
    }

    /// Bytes of all entries.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.entries.lock().bytes
    }

    /// Returns the bytes with this hash, if they are here and undamaged.
    pub(crate) async fn get(&self, sha256: &str) -> Option<Bytes> {
        let known = self.0.entries.lock().by_name.get(sha256).map(|(bytes, _)| *bytes)?;
        let (cache, name) = (self.0.clone(), sha256.to_owned());
        let read = run_blocking(move || Ok(cache.read(&name, known))).await;
        read.ok().flatten()
    }

    /// Adds bytes, unless they are more than an eighth of what the cache may hold. Errors of the disk are logged: the cache
    /// is never needed.
    pub(crate) async fn put(&self, sha256: &str, bytes: Bytes) {
        if bytes.len() as u64 > self.0.max_bytes / 8 {
            return;
        }
        let (cache, name) = (self.0.clone(), sha256.to_owned());
        let written = run_blocking(move || {
            cache.write(&name, &bytes).map_err(|e| Error::io("cannot write to the cache of session bodies", &e))
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "a part of a session is not cached");
        }
    }
}

impl Inner {
    fn read(&self, name: &str, known: u64) -> Option<Bytes> {
        let path = self.dir.join(name);
        let bytes = fs::read(&path).ok().filter(|bytes| bytes.len() as u64 == known && sha256_hex(bytes) == name);
        let Some(bytes) = bytes else {
            tracing::warn!(path = %path.display(), "a damaged entry of the cache is fetched again");
            self.entries.lock().remove(name);
            let _ = fs::remove_file(&path);
            return None;
        };
        // So that the order of use survives a restart.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        let mut entries = self.entries.lock();
        if entries.by_name.contains_key(name) {
            entries.insert(name.to_owned(), known);
        }
        Some(bytes.into())
    }

    /// Writes an entry. It need not be synced: what a crash leaves is verified.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.dir.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
        let written = (|| {
            let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            new.write_all(bytes)?;
            let mut entries = self.entries.lock();
            // Room first, so that the directory never has more than it may, except for what is being written.
            entries.remove(name);
            let evicted = entries.evict(self.max_bytes.saturating_sub(bytes.len() as u64));
            evicted.iter().for_each(|name| _ = fs::remove_file(self.dir.join(name)));
            fs::rename(&temporary, self.dir.join(name))?;
            entries.insert(name.to_owned(), bytes.len() as u64);
            Ok(())
        })();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}
