//! Damage that was found, each in a directory of its own below `db/`: copies of the files as they were, and what is
//! known of it.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::session_files::sync_dir;
use crate::error::{Error, Result};

/// Names of the directories begin so.
const DIR_PREFIX: &str = "damaged-";
const DESCRIPTION_FILE: &str = "found.json";

/// One damage.
#[derive(Debug, Clone)]
pub struct Incident {
    pub dir: PathBuf,
    pub facts: IncidentDescription,
}

/// The facts that are kept of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IncidentDescription {
    pub at: Timestamp,
    /// The damage that was found, and what became of it.
    pub what: String,
    /// Something that was acknowledged is missing.
    pub lost: bool,
    /// `doctor --salvage` has taken what was left.
    #[serde(default)]
    pub salvaged: bool,
    /// `doctor --salvage` could not read everything in it: the files are the only copy of the rest.
    #[serde(default)]
    pub incomplete: bool,
    /// The journal in use is this one, up to the damage or beyond: what it does not have was ended since, or is lost.
    #[serde(default)]
    pub continued: bool,
    /// The journal is gone from its place by intent: the next start makes a new one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins_anew: bool,
    /// It is the catalog that was damaged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub catalog: bool,
}

impl Incident {
    /// Makes the directory for a new one in `db`, and writes down what is known: whatever cuts the rest short, the files in it are told of.
    ///
    /// # Errors
    /// Whatever the disk says.
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

    /// Removes it again: nothing was changed, and the next start begins another one.
    pub fn abandon(&self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::warn!(%error, dir = %self.dir.display(), "copies of damaged files are left");
        }
    }

    /// Copies `file` into the directory, if it is there.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn copy_in(&self, file: &Path) -> Result<()> {
        let to = self.dir.join(file.file_name().unwrap_or_default());
        match fs::copy(file, &to).and_then(|_| fs::File::open(&to)?.sync_all()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.to_error(&e)),
            _ => Ok(()),
        }
    }

    /// Moves `file` into the directory, if it is there.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn move_in(&self, file: &Path) -> Result<()> {
        match fs::rename(file, self.dir.join(file.file_name().unwrap_or_default())) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.to_error(&e)),
            _ => Ok(()),
        }
    }

    /// Writes down what is known.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn save(&self) -> Result<()> {
        let text = serde_json::to_vec_pretty(&self.facts).map_err(|e| Error::internal(e.to_string()))?;
        let new = self.dir.join("found.json.new");
        fs::write(&new, text)
            .and_then(|()| fs::File::open(&new)?.sync_all())
            .and_then(|()| fs::rename(&new, self.dir.join(DESCRIPTION_FILE)))
            .and_then(|()| sync_dir(&self.dir))
            .map_err(|e| self.to_error(&e))
    }

    /// `damaged-<time>`.
    #[must_use]
    pub fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn to_error(&self, error: &io::Error) -> Error {
        Error::io(format_args!("cannot set the damaged files aside in {}", self.dir.display()), error)
    }
}

/// All that were found in `db`, oldest first. Those that a person deleted are forgotten.
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
