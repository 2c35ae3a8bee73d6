//! Temporary names for files that are being written (`.<32 digits>.chorus`), and removal of files that a crash left
//! under such names.

use std::os::fd::BorrowedFd;
use std::sync::LazyLock;

use rustix::fs::{AtFlags, Dir, FileType, unlinkat};
use uuid::Uuid;

use super::workspace::open_folder;

/// Limit on the directory entries examined.
const MAX_SWEPT_ENTRIES: usize = 1000;

/// Prefix of the names of this daemon run. Only one daemon writes in a workspace, so files with other prefixes are
/// stale.
static RUN_PREFIX: LazyLock<String> = LazyLock::new(|| format!(".{:016x}", Uuid::new_v4().as_u64_pair().1));

/// Returns a new unique name.
pub(super) fn new_name() -> String {
    format!("{}{:016x}.chorus", *RUN_PREFIX, Uuid::new_v4().as_u64_pair().1)
}

/// Removes stale temporary files from a folder. Errors are ignored, because they do not prevent writing.
pub(super) fn remove_stale(folder: BorrowedFd<'_>) {
    let Ok(entries) = open_folder(folder, ".").and_then(Dir::new) else { return };
    for entry in entries.take(MAX_SWEPT_ENTRIES).flatten() {
        let name = entry.file_name();
        let plain = matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown);
        if plain && name.to_str().is_ok_and(|name| is_temp_name(name) && !name.starts_with(&**RUN_PREFIX)) {
            // Without AT_REMOVEDIR this never removes a folder.
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

/// Returns true if a name has the form of [`new_name`].
fn is_temp_name(name: &str) -> bool {
    let digits = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".chorus"));
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}
