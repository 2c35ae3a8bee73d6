//! Finds the processes that have a database open, by their locks on it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;

/// SQLite's locks begin at this byte of a database.
const SQLITE_LOCK_BYTE: u64 = 0x4000_0000;

/// Lists the other processes that hold a lock of SQLite's on `file`, as far as the system reports them: `sqlite3 (pid
/// 4711)`.
pub(super) fn list(file: &File) -> Vec<String> {
    let Ok(inode) = file.metadata().map(|metadata| metadata.ino()) else { return Vec::new() };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut pids: Vec<u32> = locks.lines().filter_map(|line| parse_pid(line, inode)).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter().filter(|pid| *pid != std::process::id()).map(describe_process).collect()
}

/// Parses the process id from a line of `/proc/locks` about the file `inode`. Ignores the device, because some file
/// systems report a different one there.
fn parse_pid(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1).filter(|word| *word != "->");
    let (kind, _, _, pid) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let of: u64 = words.next()?.rsplit(':').next()?.parse().ok()?;
    let from: u64 = words.next()?.parse().ok()?;
    (kind == "POSIX" && of == inode && from >= SQLITE_LOCK_BYTE).then(|| pid.parse().ok())?
}

fn describe_process(pid: u32) -> String {
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        // Another user chooses the name of their process, so only printable ASCII of it is shown.
        Ok(name) if !name.trim().is_empty() => {
            let name: String = name.trim().chars().filter(|c| c.is_ascii_graphic()).collect();
            format!("{name} (pid {pid})")
        }
        _ => format!("pid {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_of_sqlite_is_read_out_of_its_line() {
        let line = "12: POSIX  ADVISORY  READ 4711 08:01:1234567 1073741826 1073742335";
        assert_eq!(parse_pid(line, 1_234_567), Some(4711));
        assert_eq!(parse_pid(line, 7), None);
        assert_eq!(parse_pid("3: FLOCK  ADVISORY  WRITE 4711 08:01:1234567 0 EOF", 1_234_567), None);
        assert_eq!(parse_pid("3: OFDLCK ADVISORY  READ -1 08:01:1234567 1073741826 EOF", 1_234_567), None);
        assert_eq!(parse_pid("", 1), None);
    }
}
