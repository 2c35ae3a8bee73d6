//! Files that are readable only by root. When the daemon runs as root they must be hidden explicitly from commands;
//! otherwise the kernel already denies access.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tokio::sync::watch;

/// Directories in which administrators put their own files. The other visible directories contain files of packages.
const SCANNED_DIRS: [&str; 3] = ["/etc", "/opt", "/usr/local"];
/// The list is refreshed after this time, or after `SCAN_INTERVAL_FACTOR` times the duration of the last scan if that
/// is longer.
const MIN_SCAN_INTERVAL: Duration = Duration::from_secs(10);
const SCAN_INTERVAL_FACTOR: u32 = 100;
/// An entry of a scanned directory is hidden as a whole if more paths than this are found in it, or more entries would
/// have to be visited.
const MAX_FOUND: usize = 200;
const MAX_VISITED: usize = 1_000_000;

/// How long a caller waits for a newer list if there is an old one.
const RESCAN_WAIT: Duration = Duration::from_millis(500);

/// The cached list of files and directories to hide.
#[derive(Debug, Default)]
pub(crate) struct RootOnlyFiles {
    scan: Arc<watch::Sender<Scan>>,
}

/// The state of the last scan.
#[derive(Debug, Default)]
struct Scan {
    paths: Arc<Vec<PathBuf>>,
    /// When the list becomes too old; `None` before the first scan has finished.
    stale_at: Option<Instant>,
    /// True while a scan is running.
    in_progress: bool,
}

impl RootOnlyFiles {
    /// Refreshes the list if it is old. Does nothing unless the daemon is root. Waits for the first list, and only
    /// briefly for later ones: the scan runs in the background and goes on if the caller is cancelled.
    pub(crate) async fn refresh(&self) {
        if geteuid().is_root() {
            self.refresh_with(|| SCANNED_DIRS.iter().flat_map(|place| scan_dir(Path::new(place))).collect()).await;
        }
    }

    async fn refresh_with(&self, look: impl FnOnce() -> Vec<PathBuf> + Send + 'static) {
        let begun = Instant::now();
        let begins = self.scan.send_if_modified(|found| {
            let begins = !found.in_progress && found.stale_at.is_none_or(|stale| stale <= begun);
            found.in_progress |= begins;
            begins
        });
        if begins {
            let found = self.scan.clone();
            chorus_runtime::spawn(async move {
                let looked = chorus_runtime::spawn_blocking(look).await;
                let looked = looked.inspect_err(|e| tracing::error!("cannot find files that only root can read: {e}"));
                found.send_modify(|found| {
                    found.paths = looked.map_or_else(|_| found.paths.clone(), Arc::new);
                    found.stale_at =
                        Some(Instant::now() + MIN_SCAN_INTERVAL.max(begun.elapsed() * SCAN_INTERVAL_FACTOR));
                    found.in_progress = false;
                });
            });
        }
        let mut found = self.scan.subscribe();
        // This cannot fail, because `self` holds the sender.
        let _ = found.wait_for(|found| found.stale_at.is_some()).await;
        let _ = tokio::time::timeout(RESCAN_WAIT, found.wait_for(|found| !found.in_progress)).await;
    }

    /// Returns true if there is a list, or none is needed.
    pub(crate) fn is_ready(&self) -> bool {
        !geteuid().is_root() || self.scan.borrow().stale_at.is_some()
    }

    /// Returns the paths that the last scan found.
    pub(crate) fn paths(&self) -> Arc<Vec<PathBuf>> {
        self.scan.borrow().paths.clone()
    }
}

/// Returns the paths in a directory that only root can read. Blocks.
fn scan_dir(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let look = |entry: fs::DirEntry| {
        let mut found = Vec::new();
        if scan_entry(&entry, &mut found, &mut 0) {
            return found;
        }
        tracing::info!(
            "hiding {} from commands: it has too many files that only root can read",
            entry.path().display()
        );
        vec![entry.path()]
    };
    entries.flat_map(look).collect()
}

/// Adds the paths at and below an entry. Returns false if there are too many, or if they cannot be determined.
fn scan_entry(entry: &fs::DirEntry, found: &mut Vec<PathBuf>, looked_at: &mut usize) -> bool {
    // For a link this describes the link itself; its target is scanned where it lies.
    let Ok(meta) = entry.metadata() else { return !entry.path().exists() };
    *looked_at += 1;
    if meta.is_symlink() {
        return true;
    }
    let needed = if meta.is_dir() { 0o001 } else { 0o004 };
    if meta.permissions().mode() & needed == 0 {
        found.push(entry.path());
        return found.len() <= MAX_FOUND;
    }
    if !meta.is_dir() {
        return true;
    }
    let Ok(mut entries) = fs::read_dir(entry.path()) else { return !entry.path().exists() };
    entries.all(|entry| *looked_at <= MAX_VISITED && entry.is_ok_and(|entry| scan_entry(&entry, found, looked_at)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn a_list_is_made_once_though_nobody_waits_and_the_old_one_is_in_force_meanwhile() {
        let guarded = RootOnlyFiles::default();
        let (go, walk) = std::sync::mpsc::sync_channel::<()>(1);
        let first = move || walk.recv().map(|()| vec!["/first".into()]).unwrap_or_default();
        // The first caller may be cancelled, and another one joins the same scan.
        assert!(tokio::time::timeout(Duration::from_millis(1), guarded.refresh_with(first)).await.is_err());
        go.send(()).unwrap();
        guarded.refresh_with(|| vec!["/never".into()]).await;
        assert_eq!(*guarded.paths(), [PathBuf::from("/first")]);
        guarded.scan.send_modify(|found| found.stale_at = Some(Instant::now()));
        let (go, walk) = std::sync::mpsc::sync_channel::<()>(1);
        guarded.refresh_with(move || walk.recv().map(|()| vec!["/second".into()]).unwrap_or_default()).await;
        assert_eq!(*guarded.paths(), [PathBuf::from("/first")]);
        go.send(()).unwrap();
        let _ = guarded.scan.subscribe().wait_for(|found| !found.in_progress).await;
        assert_eq!(*guarded.paths(), [PathBuf::from("/second")]);
    }

    #[test]
    fn what_others_could_not_read_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str, mode: u32| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        for dir in ["open", "open/inner", "passed", "shut", "many"] {
            fs::create_dir(at(dir)).unwrap();
        }
        for file in ["open/a", "open/inner/key", "passed/token", "shut/b", "plain"] {
            fs::write(at(file), "x").unwrap();
        }
        for file in ["open/inner/key", "passed/token"] {
            mode(file, 0o640);
        }
        (0..=MAX_FOUND).for_each(|n| {
            let file = format!("many/{n}");
            fs::write(at(&file), "x").unwrap();
            mode(&file, 0o600);
        });
        mode("passed", 0o711);
        mode("shut", 0o700);
        symlink(at("shut/b"), at("link")).unwrap();
        let mut found = scan_dir(folder.path());
        found.sort();
        assert_eq!(found, ["many", "open/inner/key", "passed/token", "shut"].map(at));
        assert!(scan_dir(&at("nowhere")).is_empty());
    }
}
