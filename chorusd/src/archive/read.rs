//! Reading an archive: all of it once, to see that it is whole and holds nothing but what it says. After that its members are read by their
//! places.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::fs::FileExt as _;

use sha2::{Digest as _, Sha256};
use tar::EntryType;
use thiserror::Error;

use super::manifest::has_place;
use super::{MANIFEST, Manifest, SCHEMA};
use crate::store::catalog::hex;

/// Bytes of a manifest, and of a name that a header has no room for.
const LONGEST_MANIFEST: u64 = 64 << 20;
const LONGEST_NAME: u64 = 8 << 10;
/// Members, the manifest apart.
const MOST: usize = 100_000;
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// Why an archive is not used.
#[derive(Debug, Error)]
pub enum BadArchive {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is no archive of an agent: {0}")]
    Foreign(String),
    #[error("it is compressed; unpack it first")]
    Compressed,
    #[error("it was written by a newer version (schema {0}; this one knows {SCHEMA})")]
    Newer(u64),
    #[error("{0:?} has no place in it")]
    Path(String),
    #[error("{0:?} is no plain file")]
    Kind(String),
    #[error("{0:?} is in it twice")]
    Twice(String),
    #[error("{0:?} is not as its manifest says")]
    Changed(String),
    #[error("{0:?} is in only one of archive and manifest")]
    Missing(String),
}

/// An archive that was found whole.
#[derive(Debug)]
pub struct Archive {
    file: File,
    pub manifest: Manifest,
    /// Where each member begins, and how long it is.
    places: HashMap<String, (u64, u64)>,
}

/// A member as it was found.
struct Found {
    begins: u64,
    size: u64,
    sha256: String,
}

impl Archive {
    /// Reads all of `file`; `progress` hears how many bytes were. Blocks.
    ///
    /// # Errors
    /// Anything in it that is not as an export writes it.
    pub fn open(mut file: File, mut progress: impl FnMut(u64)) -> Result<Self, BadArchive> {
        refuse_compressed(&file)?;
        file.rewind()?;
        let mut tar = tar::Archive::new(BufReader::with_capacity(PIECE, &file));
        let (mut found, mut manifest, mut long_name) = (HashMap::new(), None, None);
        let mut piece = vec![0; PIECE];
        // Raw: nothing of a name, a link or a hole is followed that is not looked at here.
        for entry in tar.entries()?.raw(true) {
            let mut entry = entry.map_err(|e| BadArchive::Foreign(e.to_string()))?;
            let own = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let (kind, size, begins) = (entry.header().entry_type(), entry.size(), entry.raw_file_position());
            if kind == EntryType::GNULongName && long_name.is_none() && size <= LONGEST_NAME {
                let mut name = String::new();
                entry.read_to_string(&mut name).map_err(|_| BadArchive::Path(own))?;
                long_name = Some(name.trim_end_matches('\0').to_owned());
                continue;
            }
            let path = long_name.take().unwrap_or(own);
            if !matches!(kind, EntryType::Regular) {
                return Err(BadArchive::Kind(path));
            }
            if path == MANIFEST && size <= LONGEST_MANIFEST && manifest.is_none() {
                let mut text = Vec::new();
                entry.read_to_end(&mut text)?;
                manifest = Some(read_manifest(&text)?);
                continue;
            }
            if !has_place(&path) {
                return Err(BadArchive::Path(path));
            }
            if found.len() >= MOST {
                return Err(BadArchive::Foreign(format!("it has more than {MOST} members")));
            }
            let sha256 = hash(&mut entry, &mut piece)?;
            progress(begins + size);
            if found.insert(path.clone(), Found { begins, size, sha256 }).is_some() {
                return Err(BadArchive::Twice(path));
            }
        }
        let manifest =
            manifest.ok_or_else(|| BadArchive::Foreign(format!("it has no {MANIFEST}, or only a part came")))?;
        let places = compare(&manifest, found)?;
        drop(tar);
        Ok(Self { file, manifest, places })
    }

    /// How many bytes its members have.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.manifest.members.iter().map(|member| member.size).sum()
    }

    /// Whether it has that member.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    /// Copies a member into `out`; one that it has not is empty. Blocks.
    ///
    /// # Errors
    /// What the disk says.
    pub fn copy(&self, path: &str, out: &mut impl io::Write) -> io::Result<()> {
        let (mut at, size) = self.places.get(path).copied().unwrap_or_default();
        let end = at + size;
        let mut piece = vec![0; PIECE];
        while at < end {
            let wanted = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
            self.file.read_exact_at(&mut piece[..wanted], at)?;
            out.write_all(&piece[..wanted])?;
            at += wanted as u64;
        }
        Ok(())
    }

    /// A member as text, which must not be longer than `most` bytes.
    ///
    /// # Errors
    /// One that is longer, or no text.
    pub fn text(&self, path: &str, most: u64) -> Result<String, BadArchive> {
        if self.places.get(path).is_some_and(|(_, size)| *size > most) {
            return Err(BadArchive::Foreign(format!("{path} is too long")));
        }
        let mut bytes = Vec::new();
        self.copy(path, &mut bytes)?;
        String::from_utf8(bytes).map_err(|_| BadArchive::Foreign(format!("{path} is not UTF-8")))
    }
}

fn refuse_compressed(file: &File) -> Result<(), BadArchive> {
    let mut start = [0; 4];
    let read = file.read_at(&mut start, 0)?;
    let compressed = [&[0x1f, 0x8b][..], &[0x28, 0xb5, 0x2f, 0xfd], &[0xfd, b'7', b'z', b'X']];
    if compressed.iter().any(|magic| start[..read].starts_with(magic)) { Err(BadArchive::Compressed) } else { Ok(()) }
}

fn read_manifest(text: &[u8]) -> Result<Manifest, BadArchive> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        schema: u64,
    }
    let foreign = |e: serde_json::Error| BadArchive::Foreign(format!("its {MANIFEST} cannot be read: {e}"));
    let Versioned { schema } = serde_json::from_slice(text).map_err(foreign)?;
    if schema > u64::from(SCHEMA) {
        return Err(BadArchive::Newer(schema));
    }
    serde_json::from_slice(text).map_err(foreign)
}

fn hash(source: &mut impl Read, piece: &mut [u8]) -> io::Result<String> {
    let mut hash = Sha256::new();
    loop {
        match source.read(piece)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&piece[..count]),
        }
    }
}

fn compare(manifest: &Manifest, mut found: HashMap<String, Found>) -> Result<HashMap<String, (u64, u64)>, BadArchive> {
    let mut places = HashMap::new();
    for member in &manifest.members {
        let there = found.remove(&member.path).ok_or_else(|| BadArchive::Missing(member.path.clone()))?;
        if there.size != member.size || there.sha256 != member.sha256 {
            return Err(BadArchive::Changed(member.path.clone()));
        }
        places.insert(member.path.clone(), (there.begins, there.size));
    }
    match found.into_keys().next() {
        Some(more) => Err(BadArchive::Missing(more)),
        None => Ok(places),
    }
}
