//! The names under which files are written before they get their own, `.<32 digits>.chorus`; and what a crash left of such.

use std::os::fd::BorrowedFd;
use std::sync::LazyLock;

use rustix::fs::{AtFlags, Dir, FileType, unlinkat};
use uuid::Uuid;

use super::workspace::open_folder;

/// Names of a folder that are looked at.
const MAX_SWEPT_ENTRIES: usize = 1000;

/// What names of this run of the daemon begin with. One daemon writes in a workspace, so nobody writes any others any more.
static RUN_PREFIX: LazyLock<String> = LazyLock::new(|| format!(".{:016x}", Uuid::new_v4().as_u64_pair().1));

/// A name that nothing has.
pub(super) fn new_name() -> String {
    format!("{}{:016x}.chorus", *RUN_PREFIX, Uuid::new_v4().as_u64_pair().1)
}

/// Removes what writes of earlier runs left in a folder. That it cannot is no reason not to write.
pub(super) fn remove_stale(folder: BorrowedFd<'_>) {
    let Ok(entries) = open_folder(folder, ".").and_then(Dir::new) else { return };
    for entry in entries.take(MAX_SWEPT_ENTRIES).flatten() {
        let name = entry.file_name();
        let plain = matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown);
        if plain && name.to_str().is_ok_and(|name| is_temp_name(name) && !name.starts_with(&**RUN_PREFIX)) {
            // Never a folder, whatever its name.
            let _ = unlinkat(folder, name, AtFlags::empty());
        }
    }
}

/// Whether it has the form of [`name`].
fn is_temp_name(name: &str) -> bool {
    let digits = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".chorus"));
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}
