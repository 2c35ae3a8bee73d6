//! Limits on the number and size of an agent's notes.

use std::fs;
use std::path::Path;

use chorus_base::error::{Error, Result};

/// Limit on the notes, and on the folders.
const MAX_NOTES: usize = 256;
/// Limit on the bytes of all notes.
const MAX_TOTAL_BYTES: u64 = 4 << 20;

/// The notes other than the one to be written.
#[derive(Debug, Default)]
struct OtherNotes {
    notes: usize,
    folders: usize,
    bytes: u64,
}

/// Checks that a note of `length` bytes may be written at `path`, relative to `docs`. Replacing a longer note is always
/// allowed. Blocks.
pub(super) fn check_quota(docs: &Path, path: &str, length: u64) -> Result<()> {
    let note = docs.join(path);
    let old = note.symlink_metadata().ok().filter(fs::Metadata::is_file).map(|old| old.len());
    if old.is_some_and(|old| length <= old) {
        return Ok(());
    }
    let mut others = OtherNotes::default();
    others.add_dir(docs, &note);
    let hint = "remove a file that is no longer needed (write empty content), or combine several";
    if old.is_none() && (others.notes >= MAX_NOTES || others.folders >= MAX_NOTES) {
        return Err(Error::invalid(format!("docs/ already has {MAX_NOTES} files or folders; {hint}")));
    }
    if others.bytes + length > MAX_TOTAL_BYTES {
        return Err(Error::invalid(format!(
            "the files in docs/ would exceed {} MiB in total; {hint}",
            MAX_TOTAL_BYTES >> 20
        )));
    }
    Ok(())
}

impl OtherNotes {
    /// Adds the content of `dir`, up to the limits; links are not followed.
    fn add_dir(&mut self, dir: &Path, note: &Path) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() && self.folders < MAX_NOTES {
                self.folders += 1;
                self.add_dir(&entry.path(), note);
            } else if entry.path() != note {
                self.notes += 1;
                self.bytes += meta.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_have_room_for_so_many_and_so_much() {
        let docs = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: u64| {
            let path = docs.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::File::create(path).unwrap().set_len(bytes).unwrap();
        };
        let fits = |name: &str, bytes: u64| check_quota(docs.path(), name, bytes).is_ok();
        (0..MAX_NOTES - 1).for_each(|n| file(&format!("{}/{n}", n % 3), 10));
        assert!(fits("last", 10));
        file("last", 10);
        assert!(!fits("more", 10) && fits("last", 20) && fits("0/0", 20));
        let rest = MAX_TOTAL_BYTES - 10 * (MAX_NOTES as u64 - 1);
        assert!(fits("last", rest) && !fits("last", rest + 1));
        file("last", MAX_TOTAL_BYTES);
        assert!(fits("last", MAX_TOTAL_BYTES - 1), "what gets shorter may stay too long");
        assert!(!fits("0/0", 11));
    }
}
