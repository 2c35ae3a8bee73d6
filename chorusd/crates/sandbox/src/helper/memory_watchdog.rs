//! Measures the memory that all processes of a sandbox use together, where no control group bounds it. The first
//! process does this, because all others are in its `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FsWord, statfs, statvfs};
use rustix::io::Errno;

/// Assumed highest growth of memory use, in bytes per second; determines the time to the next measurement.
const MAX_GROWTH_RATE: u64 = 4 << 30;
const MIN_INTERVAL: Duration = Duration::from_millis(10);
const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// The pause between two measurements is at least this many times as long as a measurement takes.
const INTERVAL_FACTOR: u32 = 4;
/// The sum over several processes must exceed the limit this many times in a row: while a large process starts another
/// one, both have the same size for a moment.
const CONSECUTIVE_EXCESSES: u32 = 4;
/// `f_type` of tmpfs.
const TMPFS_MAGIC: FsWord = 0x0102_1994;
/// Fields of `/proc/PID/status` for memory that cannot be reclaimed. The first two count no page of a process twice;
/// shared memory may count for several processes. Page tables are never shared.
const OWN_FIELDS: [&str; 2] = ["RssAnon:", "VmSwap:"];
const SHARED_FIELDS: [&str; 1] = ["RssShmem:"];
const PAGE_TABLE_FIELDS: [&str; 1] = ["VmPTE:"];
/// The same in `/proc/PID/smaps_rollup`, with shared pages divided among the processes.
const PROPORTIONAL_FIELDS: [&str; 3] = ["Pss_Anon:", "Pss_Shmem:", "SwapPss:"];
/// Kernel memory for each inode, name and KiB of extended attributes in tmpfs, in bytes: 0.7 to 1.7 KiB were measured,
/// and the kernel rounds up to at most the double.
pub(super) const INODE_OVERHEAD: u64 = 2 << 10;
/// Bytes in a full pipe, and in a socket with default buffers.
const PIPE_CAPACITY: u64 = 64 << 10;
const SOCKET_BUFFER_LEN: u64 = 208 << 10;
/// Kernel memory for each open file, in bytes.
const OPEN_FILE_OVERHEAD: u64 = 1 << 10;
/// Kernel memory for each System V message in addition to its text, and for each semaphore, in bytes.
const MESSAGE_OVERHEAD: u64 = 128;
const SEMAPHORE_SIZE: u64 = 64;

/// Measures memory use against a limit.
#[derive(Debug)]
pub(super) struct MemoryWatchdog {
    /// The limit in bytes.
    limit: u64,
    /// tmpfs directories that only this sandbox has.
    tmpfs_dirs: Vec<PathBuf>,
    /// True if the kernel reports proportional shares; kernels before 5.3, or without the option, do not.
    has_proportional: bool,
}

impl MemoryWatchdog {
    /// Returns `None` if the processes cannot be measured here. `private` lists candidate directories, of which those
    /// on tmpfs count.
    pub(super) fn new(most: u64, private: impl Iterator<Item = PathBuf>) -> Option<Self> {
        let memory = private.filter(|at| statfs(at).is_ok_and(|found| found.f_type == TMPFS_MAGIC)).collect();
        let divides = supports_proportional(Path::new("/proc/self"))?;
        let watch = Self { limit: most, tmpfs_dirs: memory, has_proportional: divides };
        watch.measure().ok().map(|_| watch)
    }

    /// Returns when the limit is exceeded, or when memory use can no longer be measured.
    pub(super) fn wait_until_exceeded(&self) {
        let mut over = 0;
        while over < CONSECUTIVE_EXCESSES {
            let begun = Instant::now();
            let Ok(used) = self.measure() else { return };
            if used.lower_bound >= self.limit {
                return;
            }
            let room = self.limit.saturating_sub(used.total);
            over = if room == 0 { over + 1 } else { 0 };
            let pause = Duration::from_millis(room.saturating_mul(1000) / MAX_GROWTH_RATE);
            sleep(pause.clamp(MIN_INTERVAL, MAX_INTERVAL).max(begun.elapsed() * INTERVAL_FACTOR));
        }
    }

    fn measure(&self) -> io::Result<MemoryUse> {
        let held: u64 = self.tmpfs_dirs.iter().map(|at| tmpfs_usage(at)).sum::<io::Result<u64>>()?;
        let processes = numeric_entries(Path::new("/proc"))?;
        let files = held.saturating_add(system_v_usage()?).saturating_add(open_file_usage(&processes)?);
        let MemoryUse { total: all, lower_bound: least } =
            self.measure_processes(&processes, self.limit.saturating_sub(files))?;
        Ok(MemoryUse { total: files + all, lower_bound: files + least })
    }

    /// Returns the memory of processes. Shared pages count for each process if the kernel reports no proportional
    /// shares.
    fn measure_processes(&self, processes: &[PathBuf], most: u64) -> io::Result<MemoryUse> {
        let status = |dir: &PathBuf| sum_fields(&dir.join("status"), [&OWN_FIELDS, &SHARED_FIELDS, &PAGE_TABLE_FIELDS]);
        let counted = processes.iter().map(status).collect::<io::Result<Vec<_>>>()?;
        let tables: u64 = counted.iter().map(|[_, _, tables]| tables).sum();
        let all = counted.iter().map(|[own, shared, _]| own + shared).sum::<u64>() + tables;
        let least = counted.iter().map(|[own, _, tables]| own + tables).max().unwrap_or(0);
        // Skip the slow measurement if the sum is below the limit, or the largest process alone exceeds it.
        if all < most || least >= most || !self.has_proportional {
            return Ok(MemoryUse { total: all, lower_bound: least });
        }
        let shares = processes.iter().zip(counted).map(|(dir, [own, shared, _])| {
            match sum_fields(&dir.join("smaps_rollup"), [&PROPORTIONAL_FIELDS]) {
                // A process that cannot be inspected has no proportional share, so all its pages count.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(own + shared),
                shares => shares.map(|[shares]| shares),
            }
        });
        Ok(MemoryUse { total: shares.sum::<io::Result<u64>>()? + tables, lower_bound: least })
    }
}

/// Memory use in bytes.
struct MemoryUse {
    /// Use of all processes; may be too high if it is below the limit.
    total: u64,
    /// Use of files and of the largest process without its shared pages. Unlike `total` it cannot be too high because a
    /// process was just being started.
    lower_bound: u64,
}

/// Returns true if the kernel reports proportional shares. `own` is this process's directory in `/proc`. Returns `None`
/// if even resident memory is not reported, so that nothing can be measured.
fn supports_proportional(own: &Path) -> Option<bool> {
    let has = |file: &str, names: &[&str]| {
        let text = fs::read_to_string(own.join(file)).unwrap_or_default();
        names.iter().all(|name| text.lines().any(|line| line.starts_with(name)))
    };
    has("status", &OWN_FIELDS[..1]).then(|| has("smaps_rollup", &PROPORTIONAL_FIELDS))
}

/// Returns the bytes of a tmpfs: those of files plus the overhead of inodes, names and extended attributes (which the
/// kernel counts as inodes of one KiB each).
fn tmpfs_usage(at: &Path) -> io::Result<u64> {
    let found = statvfs(at)?;
    let files = found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize);
    Ok(files.saturating_add(found.f_files.saturating_sub(found.f_ffree).saturating_mul(INODE_OVERHEAD)))
}

/// Lists the entries whose names are numbers: processes, or the descriptors of one process.
fn numeric_entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Returns the bytes held by open files of processes: unnamed files in memory (`memfd_create`; mapped pages count again
/// with the process), the capacity of pipes and sockets, and the kernel's overhead for each open file.
fn open_file_usage(processes: &[PathBuf]) -> io::Result<u64> {
    let (mut nameless, mut pipes, mut sockets, mut count) = (HashMap::new(), HashSet::new(), HashSet::new(), 0);
    for process in processes {
        let open = match numeric_entries(&process.join("fd")) {
            Err(e) if has_ended(&e) || e.kind() == io::ErrorKind::PermissionDenied => continue,
            open => open?,
        };
        count += open.len() as u64;
        for at in open {
            let Ok(to) = fs::read_link(&at) else { continue };
            let name = to.as_os_str().as_bytes();
            if name.starts_with(b"/memfd:") {
                let file = fs::metadata(&at).ok();
                nameless.extend(file.map(|file| ((file.dev(), file.ino()), file.blocks() * 512)));
            } else if name.starts_with(b"pipe:") {
                pipes.insert(to);
            } else if name.starts_with(b"socket:") {
                sockets.insert(to);
            }
        }
    }
    let queues = pipes.len() as u64 * PIPE_CAPACITY + sockets.len() as u64 * SOCKET_BUFFER_LEN;
    Ok(nameless.values().sum::<u64>() + queues + count * OPEN_FILE_OVERHEAD)
}

/// Returns the bytes of System V segments that no process maps, of unread messages, and of semaphores.
fn system_v_usage() -> io::Result<u64> {
    let table = |name: &str| match fs::read_to_string(Path::new("/proc/sysvipc").join(name)) {
        // The kernel is built without System V IPC.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        table => table,
    };
    let (shm, msg, sem) = (table("shm")?, table("msg")?, table("sem")?);
    let segments = parse_columns(&shm, ["nattch", "rss", "swap"])
        .map(|[mapped, rss, swap]| if mapped == 0 { rss + swap } else { 0 });
    // The kernel rounds each message up to at most the double.
    let messages = parse_columns(&msg, ["cbytes", "qnum"]).map(|[bytes, count]| bytes * 2 + count * MESSAGE_OVERHEAD);
    let semaphores = parse_columns(&sem, ["nsems"]).map(|[count]| count * SEMAPHORE_SIZE);
    Ok(segments.chain(messages).chain(semaphores).sum())
}

/// Returns the values of these columns for each row of a table with a header.
fn parse_columns<const N: usize>(table: &str, names: [&str; N]) -> impl Iterator<Item = [u64; N]> {
    let mut rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let header = rows.next().unwrap_or_default();
    let columns = names.map(|name| header.iter().position(|column| *column == name));
    let number = |row: &[&str], column: usize| row.get(column).and_then(|cell| cell.parse::<u64>().ok());
    rows.map(move |row| columns.map(|column| column.and_then(|column| number(&row, column)).unwrap_or(0)))
}

/// Sums fields of a file in `/proc`, in bytes; 0 if the process has ended.
fn sum_fields<const N: usize>(file: &Path, names: [&[&str]; N]) -> io::Result<[u64; N]> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(names.map(|names| sum_field_lines(&text, names))),
        Err(e) if has_ended(&e) => Ok([0; N]),
        Err(e) => Err(e),
    }
}

/// Returns true for the errors that a process in `/proc` yields after it has ended.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || Errno::from_io_error(error) == Some(Errno::SRCH)
}

fn sum_field_lines(text: &str, names: &[&str]) -> u64 {
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
        let used_of = |divides, most| {
            MemoryWatchdog { limit: most, tmpfs_dirs: Vec::new(), has_proportional: divides }
                .measure_processes(&[own.path().to_owned()], most)
                .unwrap()
                .total
        };
        let used = |divides| used_of(divides, 105 << 10);
        // 4.4
        write("status", "VmRSS:\t 100 kB\n");
        assert_eq!(supports_proportional(own.path()), None);
        // 4.5, and any without CONFIG_PROC_PAGE_MONITOR
        write("status", "RssAnon:\t 100 kB\nRssShmem:\t 20 kB\n");
        assert_eq!((supports_proportional(own.path()), used(false)), (Some(false), 120 << 10));
        // 4.14
        write("smaps_rollup", "Rss: 120 kB\nPss: 110 kB\nSwapPss: 0 kB\n");
        assert_eq!((supports_proportional(own.path()), used(false)), (Some(false), 120 << 10));
        // 5.3
        write("smaps_rollup", "Rss: 120 kB\nPss: 110 kB\nPss_Anon: 100 kB\nPss_Shmem: 10 kB\nSwapPss: 0 kB\n");
        assert_eq!((supports_proportional(own.path()), used(true)), (Some(true), 110 << 10));
        assert!(supports_proportional(Path::new("/proc/self")).is_some());
        // Page tables are only in `status`, and count with either method.
        write("status", "RssAnon:\t 100 kB\nRssShmem:\t 20 kB\nVmPTE:\t 900 kB\n");
        assert_eq!((used_of(false, 1005 << 10), used_of(true, 1005 << 10)), (1020 << 10, 1010 << 10));
        // If the lower bound exceeds the limit, the slow measurement is skipped.
        assert_eq!(used_of(true, 1000 << 10), 1020 << 10);
    }

    #[test]
    fn what_can_be_put_nowhere_else_is_counted() {
        let status = "Name:\tRssAnon: 7 kB\nVmRSS:\t 900 kB\nRssAnon:\t 100 kB\nRssFile:\t 700 kB\nRssShmem:\t 20 kB\nVmPTE:\t 3 kB\nVmSwap:\t 0 kB\n";
        let counted = [&OWN_FIELDS[..], &SHARED_FIELDS, &PAGE_TABLE_FIELDS].map(|names| sum_field_lines(status, names));
        assert_eq!(counted, [100, 20, 3].map(|kib| kib * 1024));
        assert_eq!(sum_field_lines("Name:\tzombie\nState:\tZ (zombie)\n", &OWN_FIELDS), 0);
        let rollup =
            "Rss: 9 kB\nPss: 8 kB\nPss_Dirty: 8 kB\nPss_Anon: 4 kB\nPss_File: 2 kB\nPss_Shmem: 2 kB\nSwapPss: 1 kB\n";
        assert_eq!(sum_field_lines(rollup, &PROPORTIONAL_FIELDS), 7 * 1024);
        let [own, tables] = sum_fields(Path::new("/proc/self/status"), [&OWN_FIELDS, &PAGE_TABLE_FIELDS]).unwrap();
        assert!(own > 100 << 10 && tables > 10 << 10, "{own} {tables}");
        assert!(sum_fields(Path::new("/proc/self/smaps_rollup"), [&PROPORTIONAL_FIELDS]).unwrap()[0] > 100 << 10);
        assert_eq!(sum_fields(Path::new("/proc/4194999/status"), [&OWN_FIELDS]).unwrap(), [0]);
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n\
                     0  5   600  1048576 7 7      0     0     0     0     0 1 1 1  40960  4096\n\
                     0  6   600  1048576 7 7      1     0     0     0     0 1 1 1  81920     0\n";
        let read = |table| parse_columns(table, ["nattch", "rss", "swap"]).collect::<Vec<_>>();
        assert_eq!((read(table), read("")), (vec![[0, 40_960, 4096], [1, 81_920, 0]], vec![]));
        assert_eq!(parse_columns(table, ["gone"]).collect::<Vec<_>>(), [[0], [0]]);
        assert!(system_v_usage().is_ok());
    }

    #[test]
    fn what_processes_have_open_is_counted_once_for_each_pipe_and_socket() {
        use std::os::unix::fs::symlink;
        let own = tempfile::tempdir().unwrap();
        let processes = ["1", "2"].map(|number| own.path().join(number));
        for process in &processes {
            fs::create_dir_all(process.join("fd")).unwrap();
            for (number, to) in [("0", "/dev/null"), ("1", "pipe:[7]"), ("2", "socket:[7]")] {
                symlink(to, process.join("fd").join(number)).unwrap();
            }
        }
        assert_eq!(open_file_usage(&processes).unwrap(), 6 * OPEN_FILE_OVERHEAD + PIPE_CAPACITY + SOCKET_BUFFER_LEN);
    }
}
