//! Incidents: each damage that was found has a directory below `db/` with copies of the damaged files and a
//! description.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::sync_dir;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Name prefix of the directories.
const DIR_PREFIX: &str = "damaged-";
const DESCRIPTION_FILE: &str = "found.json";

/// One incident.
#[derive(Debug, Clone)]
pub struct Incident {
    pub dir: PathBuf,
    pub facts: IncidentDescription,
}

/// Description of an incident, stored in its directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IncidentDescription {
    pub at: Timestamp,
    /// The damage, and what was done about it.
    pub what: String,
    /// Whether acknowledged data is missing.
    pub lost: bool,
    /// Whether `doctor --salvage` has read the remains.
    #[serde(default)]
    pub salvaged: bool,
    /// Whether `doctor --salvage` could not read everything: the files are then the only copy of the rest.
    #[serde(default)]
    pub incomplete: bool,
    /// Whether the journal in use was recovered from this one, up to the damage or beyond it. Contexts that it lacks
    /// have ended since, or are lost.
    #[serde(default)]
    pub continued: bool,
    /// Whether the journal was moved away on purpose, so that the next start creates a new one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins_anew: bool,
    /// Whether the catalog was damaged, and not the journal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub catalog: bool,
}

impl Incident {
    /// Creates the directory of a new incident in `db` with its description, so that `doctor` finds the files even if
    /// the rest is interrupted.
    pub fn begin(db: &Path, now: Timestamp, what: String) -> Result<Self> {
        let time = now.strftime("%Y%m%dT%H%M%S%.3fZ");
        let dir = (0_u32..)
            .map(|n| db.join(if n == 0 { format!("{DIR_PREFIX}{time}") } else { format!("{DIR_PREFIX}{time}-{n}") }))
            .find(|dir| dir.symlink_metadata().is_err())
            .unwrap_or_else(|| db.join(DIR_PREFIX));
        let facts = IncidentDescription {
            at: now,
            what,
            lost: false,
            salvaged: false,
            incomplete: false,
            continued: false,
            begins_anew: false,
            catalog: false,
        };
        let this = Self { dir, facts };
        fs::DirBuilder::new().mode(0o700).create(&this.dir).map_err(|e| this.to_error(&e))?;
        this.save().inspect_err(|_| this.abandon())?;
        Ok(this)
    }

    /// Removes the directory again if nothing was changed; the next start finds the damage anew.
    pub fn abandon(&self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::warn!(%error, dir = %self.dir.display(), "cannot delete copies of damaged files");
        }
    }

    /// Copies `file` into the directory if it exists, and syncs the copy.
    pub(crate) fn copy_in(&self, file: &Path) -> Result<()> {
        let to = self.dir.join(file.file_name().unwrap_or_default());
        match fs::copy(file, &to).and_then(|_| fs::File::open(&to)?.sync_all()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.to_error(&e)),
            _ => Ok(()),
        }
    }

    /// Moves `file` into the directory if it exists.
    pub fn move_in(&self, file: &Path) -> Result<()> {
        match fs::rename(file, self.dir.join(file.file_name().unwrap_or_default())) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.to_error(&e)),
            _ => Ok(()),
        }
    }

    /// Writes the description durably.
    pub fn save(&self) -> Result<()> {
        let text = serde_json::to_vec_pretty(&self.facts).map_err(|e| Error::internal(e.to_string()))?;
        let new = self.dir.join("found.json.new");
        fs::write(&new, text)
            .and_then(|()| fs::File::open(&new)?.sync_all())
            .and_then(|()| fs::rename(&new, self.dir.join(DESCRIPTION_FILE)))
            .and_then(|()| sync_dir(&self.dir))
            .map_err(|e| self.to_error(&e))
    }

    /// Returns `damaged-<time>`.
    #[must_use]
    pub fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn to_error(&self, error: &io::Error) -> Error {
        Error::io(format_args!("cannot move the damaged files to {}", self.dir.display()), error)
    }
}

/// Lists the incidents in `db`, oldest first. Directories that a person has deleted are not listed.
#[must_use]
pub fn list_incidents(db: &Path) -> Vec<Incident> {
    let Ok(entries) = fs::read_dir(db) else { return Vec::new() };
    let read = |dir: PathBuf| {
        let facts = serde_json::from_slice(&fs::read(dir.join(DESCRIPTION_FILE)).ok()?).ok()?;
        Some(Incident { dir, facts })
    };
    let ours = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(DIR_PREFIX));
    let mut found: Vec<Incident> = ours.filter_map(|entry| read(entry.path())).collect();
    found.sort_by(|one, other| one.dir.cmp(&other.dir));
    found
}
