//! What only root could read of what commands see. To the commands of a daemon that is root it would be readable, too; the
//! kernel keeps it from those of anybody else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::geteuid;

/// Where somebody who keeps the machine puts files of their own. The rest of what is seen are files of packages.
const PLACES: [&str; 3] = ["/etc", "/opt", "/usr/local"];
/// A list this old is made anew, or one so many times as old as it took to make.
const FRESH: Duration = Duration::from_secs(10);
const RARELY: u32 = 100;
/// An entry of a place in which more is found, or in which so much has to be looked at, is hidden as a whole.
const MOST_FOUND: usize = 200;
const MOST_LOOKED_AT: usize = 1_000_000;

/// The files and directories that are to be hidden.
#[derive(Debug, Default)]
pub struct Guarded {
    list: Mutex<Arc<Vec<PathBuf>>>,
    /// From when on the list is too old. Held while a new one is made.
    stale: tokio::sync::Mutex<Option<Instant>>,
}

impl Guarded {
    /// Makes the list anew where it is old; there is none where the daemon is not root.
    pub async fn refresh(&self) {
        if !geteuid().is_root() {
            return;
        }
        let mut stale = self.stale.lock().await;
        let begun = Instant::now();
        if stale.is_some_and(|stale| begun < stale) {
            return;
        }
        match tokio::task::spawn_blocking(|| PLACES.iter().flat_map(|place| look(Path::new(place))).collect()).await {
            Ok(list) => *self.list.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(list),
            Err(e) => tracing::error!("what only root could read was not looked for: {e}"),
        }
        *stale = Some(Instant::now() + FRESH.max(begun.elapsed() * RARELY));
    }

    /// What was found last.
    pub fn list(&self) -> Arc<Vec<PathBuf>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What others than root could not read in a place. Blocks.
fn look(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let look = |entry: fs::DirEntry| {
        let mut found = Vec::new();
        if within(&entry, &mut found, &mut 0) {
            return found;
        }
        tracing::info!("{} is hidden from commands: too much in it is for root alone", entry.path().display());
        vec![entry.path()]
    };
    entries.flat_map(look).collect()
}

/// Adds what is found at an entry and below it; false where that is too much, or cannot be told.
fn within(entry: &fs::DirEntry, found: &mut Vec<PathBuf>, looked_at: &mut usize) -> bool {
    // That of a link itself; where it leads, it is looked at.
    let Ok(meta) = entry.metadata() else { return !entry.path().exists() };
    *looked_at += 1;
    if meta.is_symlink() {
        return true;
    }
    let needed = if meta.is_dir() { 0o001 } else { 0o004 };
    if meta.permissions().mode() & needed == 0 {
        found.push(entry.path());
        return found.len() <= MOST_FOUND;
    }
    if !meta.is_dir() {
        return true;
    }
    let Ok(mut entries) = fs::read_dir(entry.path()) else { return !entry.path().exists() };
    entries.all(|entry| *looked_at <= MOST_LOOKED_AT && entry.is_ok_and(|entry| within(&entry, found, looked_at)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

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
        (0..=MOST_FOUND).for_each(|n| {
            let file = format!("many/{n}");
            fs::write(at(&file), "x").unwrap();
            mode(&file, 0o600);
        });
        mode("passed", 0o711);
        mode("shut", 0o700);
        symlink(at("shut/b"), at("link")).unwrap();
        let mut found = look(folder.path());
        found.sort();
        assert_eq!(found, ["many", "open/inner/key", "passed/token", "shut"].map(at));
        assert!(look(&at("nowhere")).is_empty());
    }
}
