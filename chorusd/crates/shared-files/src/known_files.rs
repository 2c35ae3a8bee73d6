//! The contents that files and rows of an agent had in common when they were compared last, as a JSON file of this daemon. If it
//! is lost, nothing else is: the files that differ from their rows get other names.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use chorus_base::private_fs::{create_private, write_private};
use serde::{Deserialize, Serialize};

use crate::listing::Listing;

/// Limit of the bytes of such a file: 512 entries with the longest paths have less.
const MAX_BYTES: u64 = 8 << 20;

/// A file that was the same here and in its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownFile {
    /// Its hash as hexadecimal digits.
    pub(crate) sha256: String,
    /// As long as it is the same, the file has not changed.
    pub(crate) stamp: String,
}

/// All of them, by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownFiles {
    pub(crate) files: BTreeMap<String, KnownFile>,
    /// The stamps of files that could not become rows: the log names each once.
    #[serde(default)]
    pub(crate) refused: BTreeMap<String, String>,
    /// A row could not be written to its file, so that the rows have to be compared again.
    #[serde(default)]
    pub(crate) is_incomplete: bool,
}

impl KnownFiles {
    /// Reads them; `None` if there are none or they cannot be read. Blocks.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes them. Blocks.
    pub(crate) fn store(&self, path: &Path) -> io::Result<()> {
        create_private(path.parent().unwrap_or(Path::new(".")))?;
        write_private(path, &serde_json::to_vec(self)?)
    }

    /// Returns true if the files have not changed since.
    pub(crate) fn describes(&self, listing: &Listing) -> bool {
        let is_known = |path: &String, now: &String| match self.refused.get(path) {
            Some(refused) => refused == now,
            None => self.files.get(path).is_some_and(|known| known.stamp == *now),
        };
        let also_refused = self.files.keys().filter(|path| self.refused.contains_key(*path)).count();
        !self.is_incomplete
            && self.files.len() + self.refused.len() - also_refused == listing.len()
            && listing.files.iter().all(|(path, file)| is_known(path, &file.stamp))
            && listing.unusable.iter().all(|(path, file)| is_known(path, &file.stamp))
    }
}
