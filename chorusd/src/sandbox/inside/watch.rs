//! How much memory the processes of a sandbox use together, where no control group bounds it. The first process counts, for
//! all others are in its `/proc`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FsWord, statfs, statvfs};
use rustix::io::Errno;

/// How fast memory may be used up, in bytes a second, until it is counted again.
const PACE: u64 = 4 << 30;
const SOONEST: Duration = Duration::from_millis(10);
const LATEST: Duration = Duration::from_millis(500);
/// What passes between two counts is at least so many times as long as one takes.
const RARELY: u32 = 4;
/// It is too much when so many counts in a row say so: while a large process starts another one, both are as large for a
/// moment.
const SURE: u32 = 4;
/// `f_type` of a file system in memory.
const TMPFS: FsWord = 0x0102_1994;
/// In `/proc/PID/status`: what is in memory and can be put nowhere else.
const STATUS: [&str; 4] = ["RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:"];
/// The same in `/proc/PID/smaps_rollup`; what processes share is divided among them.
const SHARES: [&str; 3] = ["Pss_Anon:", "Pss_Shmem:", "SwapPss:"];

/// What is counted, and how much there may be of it.
#[derive(Debug)]
pub struct Watch {
    /// Bytes.
    most: u64,
    /// File systems in memory, which only this sandbox has.
    memory: Vec<PathBuf>,
    /// Whether the kernel divides what processes share among them: before 5.3, or built without, it does not.
    divides: bool,
}

impl Watch {
    /// `None`: the processes cannot be counted here. `private`: directories of which those in memory count.
    pub fn new(most: u64, private: impl Iterator<Item = PathBuf>) -> Option<Self> {
        let memory = private.filter(|at| statfs(at).is_ok_and(|found| found.f_type == TMPFS)).collect();
        let divides = divides(Path::new("/proc/self"))?;
        let watch = Self { most, memory, divides };
        watch.used().ok().map(|_| watch)
    }

    /// Returns when more is used than may be, or when it cannot be counted any more.
    pub fn until_over(&self) {
        let mut over = 0;
        while over < SURE {
            let begun = Instant::now();
            let Ok(used) = self.used() else { return };
            let room = self.most.saturating_sub(used);
            over = if room == 0 { over + 1 } else { 0 };
            let pause = Duration::from_millis(room.saturating_mul(1000) / PACE);
            sleep(pause.clamp(SOONEST, LATEST).max(begun.elapsed() * RARELY));
        }
    }

    /// Bytes, or more where that is less than may be.
    fn used(&self) -> io::Result<u64> {
        let held: u64 = self.memory.iter().map(|at| held(at)).sum::<io::Result<u64>>()?;
        let processes = numbered(Path::new("/proc"))?;
        let files = held + unattached()? + nameless(&processes)?;
        Ok(files + self.used_by(&processes, self.most.saturating_sub(files))?)
    }

    /// Bytes that processes have, or more where that is less than `most`; what they share is counted for each where the kernel
    /// does not divide it.
    fn used_by(&self, processes: &[PathBuf], most: u64) -> io::Result<u64> {
        let all = processes.iter().map(|dir| sum(&dir.join("status"), &STATUS)).sum::<io::Result<u64>>()?;
        if all < most || !self.divides {
            return Ok(all);
        }
        let shares = processes.iter().map(|dir| match sum(&dir.join("smaps_rollup"), &SHARES) {
            // One that lets nobody look into it has no share in anything.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => sum(&dir.join("status"), &STATUS),
            shares => shares,
        });
        shares.sum()
    }
}

/// Whether the kernel tells of a process, this one's directory in `/proc`, what share it has of what is in memory; `None`: not
/// even what it has in memory, so that nothing can be watched.
fn divides(own: &Path) -> Option<bool> {
    let has = |file: &str, names: &[&str]| {
        let text = fs::read_to_string(own.join(file)).unwrap_or_default();
        names.iter().all(|name| text.lines().any(|line| line.starts_with(name)))
    };
    has("status", &STATUS[..1]).then(|| has("smaps_rollup", &SHARES))
}

/// Bytes that a file system holds.
fn held(at: &Path) -> io::Result<u64> {
    let found = statvfs(at)?;
    Ok(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
}

/// The entries whose names are numbers: the processes, or the descriptors of one.
fn numbered(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Bytes of files in memory that have no name (`memfd_create`); one that is mapped is counted there, too.
fn nameless(processes: &[PathBuf]) -> io::Result<u64> {
    let mut found = HashMap::new();
    for process in processes {
        let open = match numbered(&process.join("fd")) {
            Err(e) if has_ended(&e) || e.kind() == io::ErrorKind::PermissionDenied => continue,
            open => open?,
        };
        let nameless =
            |at: &&PathBuf| fs::read_link(at).is_ok_and(|to| to.as_os_str().as_bytes().starts_with(b"/memfd:"));
        let files = open.iter().filter(nameless).filter_map(|at| fs::metadata(at).ok());
        found.extend(files.map(|file| ((file.dev(), file.ino()), file.blocks() * 512)));
    }
    Ok(found.values().sum())
}

/// Bytes of System V segments that no process has mapped.
fn unattached() -> io::Result<u64> {
    match fs::read_to_string("/proc/sysvipc/shm") {
        Ok(text) => Ok(segments(&text)),
        // A kernel without them.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(e) => Err(e),
    }
}

fn segments(table: &str) -> u64 {
    let mut rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let header = rows.next().unwrap_or_default();
    let column = |name: &str| header.iter().position(|column| *column == name);
    let [Some(attached), Some(rss), Some(swap)] = ["nattch", "rss", "swap"].map(column) else { return 0 };
    let number = |row: &[&str], column: usize| row.get(column).and_then(|cell| cell.parse::<u64>().ok()).unwrap_or(0);
    rows.filter(|row| number(row, attached) == 0).map(|row| number(&row, rss) + number(&row, swap)).sum()
}

/// The sum of these lines of a file in `/proc`, in bytes; 0 of a process that has ended.
fn sum(file: &Path, names: &[&str]) -> io::Result<u64> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(lines(&text, names)),
        Err(e) if has_ended(&e) => Ok(0),
        Err(e) => Err(e),
    }
}

/// Whether that is what a process tells that has ended.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || Errno::from_io_error(error) == Some(Errno::SRCH)
}

fn lines(text: &str, names: &[&str]) -> u64 {
    let kib = |line: &str| {
        let value = names.iter().find_map(|name| line.strip_prefix(name))?;
        value.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    text.lines().filter_map(kib).sum::<u64>().saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_divide_what_is_shared_bounds_it_all_the_same() {
        let own = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(own.path().join(file), text).unwrap();
        let used =
            |divides| Watch { most: 1, memory: Vec::new(), divides }.used_by(&[own.path().to_owned()], 1).unwrap();
        // 4.4
        write("status", "VmRSS:\t 100 kB\n");
        assert_eq!(divides(own.path()), None);
        // 4.5, and any without CONFIG_PROC_PAGE_MONITOR
        write("status", "RssAnon:\t 100 kB\nRssShmem:\t 20 kB\n");
        assert_eq!((divides(own.path()), used(false)), (Some(false), 120 << 10));
        // 4.14
        write("smaps_rollup", "Rss: 120 kB\nPss: 110 kB\nSwapPss: 0 kB\n");
        assert_eq!((divides(own.path()), used(false)), (Some(false), 120 << 10));
        // 5.3
        write("smaps_rollup", "Rss: 120 kB\nPss: 110 kB\nPss_Anon: 100 kB\nPss_Shmem: 10 kB\nSwapPss: 0 kB\n");
        assert_eq!((divides(own.path()), used(true)), (Some(true), 110 << 10));
        assert!(divides(Path::new("/proc/self")).is_some());
    }

    #[test]
    fn what_can_be_put_nowhere_else_is_counted() {
        let status = "Name:\tRssAnon: 7 kB\nVmRSS:\t 900 kB\nRssAnon:\t 100 kB\nRssFile:\t 700 kB\nRssShmem:\t 20 kB\nVmPTE:\t 3 kB\nVmSwap:\t 0 kB\n";
        assert_eq!(lines(status, &STATUS), 123 * 1024);
        assert_eq!(lines("Name:\tzombie\nState:\tZ (zombie)\n", &STATUS), 0);
        let rollup =
            "Rss: 9 kB\nPss: 8 kB\nPss_Dirty: 8 kB\nPss_Anon: 4 kB\nPss_File: 2 kB\nPss_Shmem: 2 kB\nSwapPss: 1 kB\n";
        assert_eq!(lines(rollup, &SHARES), 7 * 1024);
        let own = sum(Path::new("/proc/self/status"), &STATUS).unwrap();
        assert!(own > 100 << 10, "{own}");
        assert!(sum(Path::new("/proc/self/smaps_rollup"), &SHARES).unwrap() > 100 << 10);
        assert_eq!(sum(Path::new("/proc/4194999/status"), &STATUS).unwrap(), 0);
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
                     0  5   600  1048576 7 7      0     0     0     0     0 1 1 1  40960  4096\n\
                     0  6   600  1048576 7 7      1     0     0     0     0 1 1 1  81920     0\n";
        assert_eq!((segments(table), segments("")), (45_056, 0));
    }
}
