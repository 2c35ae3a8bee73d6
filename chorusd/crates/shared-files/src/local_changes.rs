//! Reads the files of an agent: those that have not changed are not read.

use std::collections::BTreeMap;

use chorus_base::hex::hex;
use chorus_catalog::{MAX_AGENT_FILE_BYTES, MAX_AGENT_FILES_BYTES};
use sha2::{Digest as _, Sha256};

use crate::decision::Here;
use crate::known_files::KnownFiles;
use crate::listing::{Listing, UnusableFile};
use crate::open_dir::OpenDir;

/// A file on this machine.
#[derive(Debug)]
pub(crate) enum LocalFile {
    /// It was a row before, and has not changed since.
    Unchanged { sha256: String, stamp: String },
    /// It was read.
    Changed { hash: [u8; 32], sha256: String, stamp: String, content: Vec<u8> },
    /// It cannot become a row.
    Unusable { stamp: String, why: String },
}

impl LocalFile {
    /// Returns what a decision needs of it.
    pub(crate) fn here(&self) -> Here<'_> {
        match self {
            Self::Unchanged { sha256, .. } | Self::Changed { sha256, .. } => Here::Content(sha256),
            Self::Unusable { .. } => Here::Unusable,
        }
    }

    pub(crate) fn stamp(&self) -> &str {
        match self {
            Self::Unchanged { stamp, .. } | Self::Changed { stamp, .. } | Self::Unusable { stamp, .. } => stamp,
        }
    }
}

/// Reads the files of a listing that have changed, up to the limit of all. Blocks.
pub(crate) fn read_changes(dir: &OpenDir, listing: &Listing, known: &KnownFiles) -> BTreeMap<String, LocalFile> {
    let mut left = MAX_AGENT_FILES_BYTES;
    let mut found = BTreeMap::new();
    for (path, UnusableFile { stamp, why }) in &listing.unusable {
        found.insert(path.clone(), LocalFile::Unusable { stamp: stamp.clone(), why: (*why).to_owned() });
    }
    for (path, file) in &listing.files {
        let stamp = file.stamp.clone();
        let local = match known.files.get(path).filter(|known| known.stamp == stamp) {
            Some(known) => LocalFile::Unchanged { sha256: known.sha256.clone(), stamp },
            None if file.bytes > left => LocalFile::Unusable { stamp, why: too_many_bytes() },
            None => match dir.read(path, MAX_AGENT_FILE_BYTES.min(left)) {
                Ok(Some((content, stamp))) => {
                    left -= content.len() as u64;
                    let hash: [u8; 32] = Sha256::digest(&content).into();
                    LocalFile::Changed { hash, sha256: hex(&hash), stamp, content }
                }
                // It was deleted just now.
                Ok(None) => continue,
                Err(e) => LocalFile::Unusable { stamp, why: e.to_string() },
            },
        };
        found.insert(path.clone(), local);
    }
    found
}

/// Why a file is not stored that does not fit.
pub(crate) fn too_many_bytes() -> String {
    format!("the files of an agent may have {} MiB in all", MAX_AGENT_FILES_BYTES >> 20)
}
