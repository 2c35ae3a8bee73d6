//! The directory of the index.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use tantivy::directory::MmapDirectory;
use tantivy::{Index, IndexSettings};

use crate::analysis;
use crate::error::SearchError;
use crate::fields::Fields;
use crate::options::{IndexOptions, OptionsNote};

/// Notes the options with which the index was made.
const OPTIONS_FILE: &str = "options.json";

/// Is there while the index is written. What a crash left half written is looked for if it is there at the next start.
const WRITING_FILE: &str = "writing";

/// Bytes of stored entries that are read together.
const STORE_BLOCK: usize = 2048;

/// Is there while deleted entries are in the files.
const PURGING_FILE: &str = "purging";

/// How an index was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// It was there.
    Existing,
    /// There was none: it is new and empty.
    New,
    /// There was one that cannot be used: it is new and empty.
    Created {
        /// Why.
        why: String,
    },
}

/// Opens the index in `dir`. One that cannot be used is removed and created again.
pub(crate) fn open(dir: &Path, options: IndexOptions) -> Result<(Index, Fields, Opened), SearchError> {
    match open_existing(dir, options) {
        Ok((index, fields)) => Ok((index, fields, Opened::Existing)),
        Err(Some(why)) => create(dir, options, why),
        Err(None) => create(dir, options, String::new()).map(|(index, fields, _)| (index, fields, Opened::New)),
    }
}

/// Removes the index in `dir` and makes a new one.
pub(crate) fn create(dir: &Path, options: IndexOptions, why: String) -> Result<(Index, Fields, Opened), SearchError> {
    let failed = |verb, source| SearchError::File { verb, path: dir.to_owned(), source };
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", error)),
        _ => {}
    }
    // Not its parents: a home that was moved away must not come into being again.
    fs::DirBuilder::new().mode(0o700).create(dir).map_err(|error| failed("create", error))?;
    let (fields, schema) = Fields::new();
    let directory = MmapDirectory::open(dir).map_err(tantivy::TantivyError::from)?;
    let mut index = Index::create(
        directory,
        schema,
        IndexSettings { docstore_blocksize: STORE_BLOCK, ..IndexSettings::default() },
    )?;
    index.set_tokenizers(analysis::tokenizers(options));
    // Last: an index without it is created again.
    let note = serde_json::to_vec(&options.note()).map_err(|_| SearchError::Entry)?;
    chorus_base::private_fs::write_private(&dir.join(OPTIONS_FILE), &note)
        .map_err(|error| failed("write to", error))?;
    Ok((index, fields, Opened::Created { why }))
}

/// Opens an index that is there.
///
/// # Errors
/// The reason why it cannot be used; `None` if there is none.
fn open_existing(dir: &Path, options: IndexOptions) -> Result<(Index, Fields), Option<String>> {
    if !dir.exists() {
        return Err(None);
    }
    open_whole(dir, options).map_err(Some)
}

/// Opens an index that is open already, with mappings of its files of its own.
pub(crate) fn open_again(dir: &Path, options: IndexOptions) -> Result<Index, SearchError> {
    let directory = MmapDirectory::open(dir).map_err(tantivy::TantivyError::from)?;
    let mut index = Index::open(directory)?;
    index.set_tokenizers(analysis::tokenizers(options));
    Ok(index)
}

fn open_whole(dir: &Path, options: IndexOptions) -> Result<(Index, Fields), String> {
    let note = match fs::read(dir.join(OPTIONS_FILE)) {
        Ok(note) => note,
        Err(error) => return Err(format!("its options cannot be read: {error}")),
    };
    if serde_json::from_slice::<OptionsNote>(&note).ok() != Some(options.note()) {
        return Err("its options or its version are others".into());
    }
    let (fields, schema) = Fields::new();
    let directory = MmapDirectory::open(dir).map_err(|error| error.to_string())?;
    let mut index = Index::open(directory).map_err(|error| error.to_string())?;
    if index.schema() != schema {
        return Err("its fields are others".into());
    }
    index.set_tokenizers(analysis::tokenizers(options));
    if dir.join(WRITING_FILE).exists() {
        let damaged = index.validate_checksum().map_err(|error| error.to_string())?;
        if let Some(file) = damaged.into_iter().next() {
            return Err(format!("its file {} is damaged", file.display()));
        }
    }
    Ok((index, fields))
}

/// Notes that the index is written, or no more.
pub(crate) fn set_writing(dir: &Path, is_writing: bool) -> Result<(), SearchError> {
    set_note(&dir.join(WRITING_FILE), is_writing)
}

/// Notes that deleted entries are in the files, or no more.
pub(crate) fn set_purging(dir: &Path, is_purging: bool) -> Result<(), SearchError> {
    set_note(&dir.join(PURGING_FILE), is_purging)
}

/// Returns true if deleted entries may be in the files.
pub(crate) fn is_purging(dir: &Path) -> bool {
    dir.join(PURGING_FILE).exists()
}

fn set_note(file: &Path, is_there: bool) -> Result<(), SearchError> {
    let done = match is_there {
        true => fs::write(file, ""),
        false => fs::remove_file(file),
    };
    match done {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(SearchError::File { verb: "write", path: file.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Returns the ids of the parts of the index whose files are in `dir`.
pub(crate) fn segments(dir: &Path) -> Result<HashSet<String>, SearchError> {
    let failed = |source| SearchError::File { verb: "read", path: dir.to_owned(), source };
    let mut segments = HashSet::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let id = name.to_string_lossy().split('.').next().unwrap_or_default().to_owned();
        if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            segments.insert(id);
        }
    }
    Ok(segments)
}
