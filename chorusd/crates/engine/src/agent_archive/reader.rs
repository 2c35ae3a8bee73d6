//! Reads an agent archive: one pass over all bytes checks that it is complete and holds only what its manifest lists.
//! Afterwards members are read by their offsets.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::fs::FileExt as _;

use chorus_base::hex;
use sha2::{Digest as _, Sha256};
use tar::EntryType;
use thiserror::Error;

use super::manifest::is_valid_member_path;
use super::{MANIFEST_MEMBER, Manifest, SCHEMA_WITH_SCHEDULES};

/// Limits in bytes: of a manifest, and of a name that is too long for a tar header.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;
const MAX_NAME_BYTES: u64 = 8 << 10;
/// The limit on members, not counting the manifest.
const MAX_MEMBERS: usize = 100_000;
/// Bytes per read.
const READ_BUFFER_BYTES: usize = 256 << 10;

/// The reason why an archive is refused.
#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    #[error("not an agent archive: {0}")]
    NotAnArchive(String),
    #[error("it is compressed; decompress it first")]
    Compressed,
    #[error("it was created by a newer version (schema {0}; this version supports {SCHEMA_WITH_SCHEDULES})")]
    NewerSchema(u64),
    #[error("{0:?} is not a valid path")]
    InvalidPath(String),
    #[error("{0:?} is not a regular file")]
    NotAFile(String),
    #[error("{0:?} is a duplicate")]
    Duplicate(String),
    #[error("{0:?} does not match the manifest")]
    Mismatch(String),
    #[error("{0:?} is only in the archive or only in the manifest")]
    Unlisted(String),
}

/// An archive that has passed all checks.
#[derive(Debug)]
pub struct Archive {
    file: File,
    pub manifest: Manifest,
    /// Offset and size of each member.
    members: HashMap<String, (u64, u64)>,
}

/// A member as the first pass read it.
struct MemberRead {
    offset: u64,
    size: u64,
    sha256: String,
}

impl Archive {
    /// Reads and checks all of `file`. Calls `progress` with the number of bytes read so far. Blocks.
    pub fn open(mut file: File, mut progress: impl FnMut(u64)) -> Result<Self, ArchiveError> {
        refuse_compressed(&file)?;
        file.rewind()?;
        let mut tar = tar::Archive::new(BufReader::with_capacity(READ_BUFFER_BYTES, &file));
        let (mut found, mut manifest, mut long_name) = (HashMap::new(), None, None);
        let mut piece = vec![0; READ_BUFFER_BYTES];
        // Raw: tar must not interpret long names, links or sparse files by itself; this loop checks every entry.
        for entry in tar.entries()?.raw(true) {
            let mut entry = entry.map_err(|e| ArchiveError::NotAnArchive(e.to_string()))?;
            let own = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let (kind, size, begins) = (entry.header().entry_type(), entry.size(), entry.raw_file_position());
            if kind == EntryType::GNULongName && long_name.is_none() && size <= MAX_NAME_BYTES {
                let mut name = String::new();
                entry.read_to_string(&mut name).map_err(|_| ArchiveError::InvalidPath(own))?;
                long_name = Some(name.trim_end_matches('\0').to_owned());
                continue;
            }
            let path = long_name.take().unwrap_or(own);
            if !matches!(kind, EntryType::Regular) {
                return Err(ArchiveError::NotAFile(path));
            }
            if path == MANIFEST_MEMBER && size <= MAX_MANIFEST_BYTES && manifest.is_none() {
                let mut text = Vec::new();
                entry.read_to_end(&mut text)?;
                manifest = Some(parse_manifest(&text)?);
                continue;
            }
            if !is_valid_member_path(&path) {
                return Err(ArchiveError::InvalidPath(path));
            }
            if found.len() >= MAX_MEMBERS {
                return Err(ArchiveError::NotAnArchive(format!("it has more than {MAX_MEMBERS} members")));
            }
            let sha256 = sha256_of(&mut entry, &mut piece)?;
            progress(begins + size);
            if found.insert(path.clone(), MemberRead { offset: begins, size, sha256 }).is_some() {
                return Err(ArchiveError::Duplicate(path));
            }
        }
        let manifest = manifest
            .ok_or_else(|| ArchiveError::NotAnArchive(format!("it has no {MANIFEST_MEMBER}, or is incomplete")))?;
        let places = match_manifest(&manifest, found)?;
        drop(tar);
        Ok(Self { file, manifest, members: places })
    }

    /// Returns the total size of the members in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.manifest.members.iter().map(|member| member.size).sum()
    }

    /// Returns true if the archive has this member.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.members.contains_key(path)
    }

    /// Copies a member into `out`; writes nothing if the archive does not have it. Blocks.
    pub fn copy_member(&self, path: &str, out: &mut impl io::Write) -> io::Result<()> {
        let (mut at, size) = self.members.get(path).copied().unwrap_or_default();
        let end = at + size;
        let mut piece = vec![0; READ_BUFFER_BYTES];
        while at < end {
            let wanted = usize::try_from(end - at).unwrap_or(READ_BUFFER_BYTES).min(READ_BUFFER_BYTES);
            self.file.read_exact_at(&mut piece[..wanted], at)?;
            out.write_all(&piece[..wanted])?;
            at += wanted as u64;
        }
        Ok(())
    }

    /// Returns a member as text. Refuses one that has more than `most` bytes or is not UTF-8.
    pub fn read_text(&self, path: &str, most: u64) -> Result<String, ArchiveError> {
        if self.members.get(path).is_some_and(|(_, size)| *size > most) {
            return Err(ArchiveError::NotAnArchive(format!("{path} is too long")));
        }
        let mut bytes = Vec::new();
        self.copy_member(path, &mut bytes)?;
        String::from_utf8(bytes).map_err(|_| ArchiveError::NotAnArchive(format!("{path} is not UTF-8")))
    }
}

fn refuse_compressed(file: &File) -> Result<(), ArchiveError> {
    let mut start = [0; 4];
    let read = file.read_at(&mut start, 0)?;
    let compressed = [&[0x1f, 0x8b][..], &[0x28, 0xb5, 0x2f, 0xfd], &[0xfd, b'7', b'z', b'X']];
    if compressed.iter().any(|magic| start[..read].starts_with(magic)) { Err(ArchiveError::Compressed) } else { Ok(()) }
}

fn parse_manifest(text: &[u8]) -> Result<Manifest, ArchiveError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        schema: u64,
    }
    let foreign = |e: serde_json::Error| ArchiveError::NotAnArchive(format!("cannot read its {MANIFEST_MEMBER}: {e}"));
    let Versioned { schema } = serde_json::from_slice(text).map_err(foreign)?;
    if schema > u64::from(SCHEMA_WITH_SCHEDULES) {
        return Err(ArchiveError::NewerSchema(schema));
    }
    serde_json::from_slice(text).map_err(foreign)
}

fn sha256_of(source: &mut impl Read, piece: &mut [u8]) -> io::Result<String> {
    let mut hash = Sha256::new();
    loop {
        match source.read(piece)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&piece[..count]),
        }
    }
}

fn match_manifest(
    manifest: &Manifest,
    mut found: HashMap<String, MemberRead>,
) -> Result<HashMap<String, (u64, u64)>, ArchiveError> {
    let mut places = HashMap::new();
    for member in &manifest.members {
        let there = found.remove(&member.path).ok_or_else(|| ArchiveError::Unlisted(member.path.clone()))?;
        if there.size != member.size || there.sha256 != member.sha256 {
            return Err(ArchiveError::Mismatch(member.path.clone()));
        }
        places.insert(member.path.clone(), (there.offset, there.size));
    }
    match found.into_keys().next() {
        Some(more) => Err(ArchiveError::Unlisted(more)),
        None => Ok(places),
    }
}
