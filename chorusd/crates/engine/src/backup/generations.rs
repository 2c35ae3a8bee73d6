//! The backups that a directory has already: the latest, and the one before it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;

use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE};
use jiff::Timestamp;

use super::directory_sink::object_path;
use super::home_identity::HomeIdentity;
use super::manifest::{EntryKind, Manifest, ManifestEntry};
use super::{MANIFEST_FILE, PREVIOUS_MANIFEST_FILE};

/// An earlier backup.
#[derive(Debug)]
pub(super) struct Generation {
    created_at: Timestamp,
    pub agents: u64,
    /// Hashes of all contents that it lists.
    pub objects: HashSet<String>,
    /// Hashes of its databases.
    pub databases: Vec<String>,
    /// True if the directory has its databases.
    has_databases: bool,
}

/// The latest and the previous backup.
#[derive(Debug, Default)]
pub(super) struct Generations {
    pub latest: Option<Generation>,
    pub previous: Option<Generation>,
}

/// Returns the name of the database that an entry is: journal or catalog; `None` for other files.
pub(super) fn database_name(entry: &ManifestEntry) -> Option<&'static str> {
    let name = entry.path.strip_prefix(DB_DIR)?.strip_prefix('/')?;
    [JOURNAL_FILE, CATALOG_FILE].into_iter().find(|database| *database == name && entry.kind == EntryKind::File)
}

/// Reads the manifest `name` of the backup in `dir`; `None` if it does not exist or cannot be used.
pub(super) fn load_manifest(dir: &Path, name: &str) -> io::Result<Option<Manifest>> {
    let file = match File::open(dir.join(name)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match Manifest::read(&mut BufReader::new(file)) {
        Ok(manifest) => Ok(Some(manifest)),
        // Without a usable manifest no content is trusted, and everything is copied again.
        Err(why) => {
            tracing::warn!(dir = %dir.display(), name, "the manifest of an earlier backup {why}");
            Ok(None)
        }
    }
}

/// Returns true if the directory has the content of `entry` with the right length.
pub(super) fn has_object(dir: &Path, entry: &ManifestEntry) -> bool {
    let there = fs::symlink_metadata(object_path(dir, &entry.sha256));
    there.is_ok_and(|there| there.is_file() && there.len() == entry.size)
}

impl Generation {
    pub(super) fn from_manifest(dir: &Path, manifest: &Manifest) -> Self {
        let files = || manifest.entries.iter().filter(|entry| entry.kind == EntryKind::File);
        let databases: Vec<&ManifestEntry> = files().filter(|entry| database_name(entry).is_some()).collect();
        Self {
            created_at: manifest.created_at,
            agents: manifest.agent_totals().0,
            objects: files().map(|entry| entry.sha256.clone()).collect(),
            has_databases: databases.len() == 2 && databases.iter().all(|entry| has_object(dir, entry)),
            databases: databases.into_iter().map(|entry| entry.sha256.clone()).collect(),
        }
    }
}

impl Generations {
    /// Returns true if the latest backup shall become the previous one when a new backup with so many agents is
    /// complete. False if the previous one is worth more: because the latest was made after data was lost, lacks its
    /// databases, or has no agents any more.
    pub(super) fn should_rotate(&self, of: &HomeIdentity, agents: u64) -> bool {
        let Some(latest) = &self.latest else { return false };
        let Some(previous) = self.previous.as_ref().filter(|previous| previous.has_databases) else { return true };
        let lost = of.lost_at.is_some_and(|at| previous.created_at < at && at <= latest.created_at);
        let emptied = agents == 0 && latest.agents == 0 && previous.agents > 0;
        latest.has_databases && !lost && !emptied
    }

    /// Returns the backup that is retained beside a new one.
    pub(super) fn retained(&self, rotates: bool) -> Option<&Generation> {
        if rotates { self.latest.as_ref() } else { self.previous.as_ref() }
    }

    /// Iterates over the hashes of the databases of both backups.
    pub(super) fn databases(&self) -> impl Iterator<Item = &String> {
        self.latest.iter().chain(&self.previous).flat_map(|generation| &generation.databases)
    }
}

/// Copies the manifest in `dir` to the name of the previous manifest.
pub(super) fn rotate_manifest(dir: &Path) -> io::Result<()> {
    let new = dir.join(format!("{PREVIOUS_MANIFEST_FILE}.new"));
    let done = fs::copy(dir.join(MANIFEST_FILE), &new)
        .and_then(|_| File::open(&new)?.sync_all())
        .and_then(|()| fs::rename(&new, dir.join(PREVIOUS_MANIFEST_FILE)));
    done.inspect_err(|_| _ = fs::remove_file(&new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(second: i64, agents: u64) -> Generation {
        let created_at = Timestamp::from_second(second).expect("a time");
        Generation { created_at, agents, objects: HashSet::new(), databases: Vec::new(), has_databases: true }
    }

    fn home(lost_at: Option<i64>) -> HomeIdentity {
        let lost_at = lost_at.map(|second| Timestamp::from_second(second).expect("a time"));
        HomeIdentity { id: uuid::Uuid::nil(), has_agents: true, lost_at, warnings: Vec::new() }
    }

    #[test]
    fn the_last_backup_before_a_loss_stays() {
        let mut both = Generations { latest: Some(generation(20, 1)), previous: Some(generation(10, 1)) };
        assert!(both.should_rotate(&home(None), 1));
        assert!(both.should_rotate(&home(Some(5)), 1), "both are of after the loss");
        assert!(!both.should_rotate(&home(Some(15)), 1));
        assert!(both.should_rotate(&home(Some(25)), 1), "both are of before the loss");
        both.latest = Some(generation(20, 0));
        assert!(!both.should_rotate(&home(None), 0));
        assert!(both.should_rotate(&home(None), 1));
        both.latest = None;
        assert!(!both.should_rotate(&home(None), 1));
        assert!(!Generations::default().should_rotate(&home(None), 1));
    }
}
