//! Bench: what a durable append of 1 KB costs in storage alone, in one thread: SQLite as the journal uses it, with fewer
//! tables, without file locks, with other pages and a longer log, and a log in front of it. Time and processor time, over a
//! plain write and sync.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use chorus_tests::home;
use chorus_tests::measure::{print_report, time, use_realtime_scheduler};
use rusqlite::{Connection, OpenFlags, params};
use rustix::time::{ClockId, clock_gettime};

/// Appends of each way.
const APPENDS: usize = 2_000;
/// Appends of each way in a row, so that what disturbs one disturbs all.
const ROUND: usize = 50;
/// Appends that a background commit takes over from the log.
const BATCH: usize = 256;
/// The size of the log, which is written once before.
const LOG_BYTES: usize = 4 << 20;

/// A way to make an append durable.
struct Way {
    name: &'static str,
    append: Box<dyn FnMut()>,
    times: Vec<Duration>,
    processor: Duration,
}

impl Way {
    fn new(name: &'static str, append: impl FnMut() + 'static) -> Self {
        Self { name, append: Box::new(append), times: Vec::new(), processor: Duration::ZERO }
    }
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().expect("positive"), now.tv_nsec.try_into().expect("positive"))
}

/// A file that is appended to.
fn growing_file(dir: &Path) -> impl FnMut() + use<> {
    let mut file = File::options().create(true).append(true).open(dir.join("growing")).expect("a file");
    let bytes = [b'x'; 1024];
    move || {
        file.write_all(&bytes).expect("written");
        file.sync_data().expect("synced");
    }
}

/// A log whose blocks exist already, so that a sync writes no metadata of the file system.
struct Log {
    file: File,
    at: u64,
}

impl Log {
    fn create(path: &Path) -> Self {
        let mut file = File::options().create(true).truncate(true).read(true).write(true).open(path).expect("a file");
        file.write_all(&vec![0; LOG_BYTES]).expect("written");
        file.sync_all().expect("synced");
        Self { file, at: 0 }
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.at as usize + bytes.len() > LOG_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(bytes, self.at).expect("written");
        self.file.sync_data().expect("synced");
        self.at += bytes.len() as u64;
    }
}

/// The options that differ from those of the journal.
#[derive(Clone, Copy, Default)]
struct Options {
    vfs: Option<&'static str>,
    page_bytes: Option<u32>,
    checkpoint_pages: Option<u32>,
}

fn open_database(path: &Path, options: Options) -> Connection {
    let flags = OpenFlags::default();
    let conn = match options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }
    .expect("a database");
    if let Some(bytes) = options.page_bytes {
        conn.pragma_update(None, "page_size", bytes).expect("a size of pages");
    }
    if let Some(pages) = options.checkpoint_pages {
        conn.pragma_update(None, "wal_autocheckpoint", pages).expect("a length of the log");
    }
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE contexts (id INTEGER PRIMARY KEY, messages INTEGER, at INTEGER, last_record INTEGER);
         CREATE TABLE records (id INTEGER PRIMARY KEY, before INTEGER, number INTEGER, envelope BLOB);
         CREATE TABLE events (seq INTEGER PRIMARY KEY, at INTEGER, type TEXT, agent TEXT, data TEXT);
         INSERT INTO contexts VALUES (1, 0, 0, NULL)",
    )
    .expect("tables");
    conn
}

/// Which rows an append writes.
#[derive(Clone, Copy, PartialEq)]
enum Rows {
    Record,
    RecordAndContext,
    All,
}

fn insert(conn: &Connection, rows: Rows) {
    let envelope = [b'x'; 1100];
    let run = || -> rusqlite::Result<()> {
        conn.prepare_cached("INSERT INTO records (before, number, envelope) VALUES (?1, ?2, ?3)")?
            .execute(params![1, 2, envelope])?;
        let newest = conn.last_insert_rowid();
        if rows != Rows::Record {
            conn.prepare_cached("UPDATE contexts SET messages = messages + 1, at = ?1, last_record = ?1 WHERE id = 1")?
                .execute([newest])?;
        }
        if rows == Rows::All {
            let data = r#"{"appended":1,"messages":4711}"#;
            conn.prepare_cached(
                "INSERT INTO events (at, type, agent, data) VALUES (?1, 'message_appended', 'one', ?2)",
            )?
            .execute(params![newest, data])?;
        }
        Ok(())
    };
    run().expect("stored");
}

fn transaction(conn: &Connection, work: impl FnOnce()) {
    conn.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([])).expect("begun");
    work();
    conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])).expect("committed");
}

fn in_database(path: &Path, options: Options, rows: Rows) -> impl FnMut() + use<> {
    let conn = open_database(path, options);
    move || transaction(&conn, || insert(&conn, rows))
}

/// Each append goes to the log; a batch of them goes to the database.
fn log_in_front(dir: &Path) -> impl FnMut() + use<> {
    let (mut log, conn) = (Log::create(&dir.join("front")), open_database(&dir.join("behind.db"), Options::default()));
    let (bytes, mut waiting) = ([b'x'; 1100], 0);
    move || {
        log.append(&bytes);
        waiting += 1;
        if waiting == BATCH {
            transaction(&conn, || (0..waiting).for_each(|_| insert(&conn, Rows::All)));
            waiting = 0;
        }
    }
}

fn main() {
    let home = home!();
    use_realtime_scheduler();
    let dir = home.temp_dir();
    let mut log = Log::create(&dir.join("log"));
    let usual = Options::default();
    let mut ways = [
        Way::new("write + fdatasync, growing file", growing_file(dir)),
        Way::new("write + fdatasync, file of fixed size", move || log.append(&[b'x'; 1024])),
        Way::new("SQLite, three tables", in_database(&dir.join("three.db"), usual, Rows::All)),
        Way::new("SQLite, two tables", in_database(&dir.join("two.db"), usual, Rows::RecordAndContext)),
        Way::new("SQLite, one table", in_database(&dir.join("one.db"), usual, Rows::Record)),
        Way::new(
            "SQLite, three tables, no file locks",
            in_database(&dir.join("excl.db"), Options { vfs: Some("unix-excl"), ..usual }, Rows::All),
        ),
        Way::new(
            "SQLite, three tables, pages of 8 KiB",
            in_database(&dir.join("pages8.db"), Options { page_bytes: Some(8192), ..usual }, Rows::All),
        ),
        Way::new(
            "SQLite, three tables, pages of 2 KiB",
            in_database(&dir.join("pages2.db"), Options { page_bytes: Some(2048), ..usual }, Rows::All),
        ),
        Way::new(
            "SQLite, three tables, log of 4,000 pages",
            in_database(&dir.join("log.db"), Options { checkpoint_pages: Some(4000), ..usual }, Rows::All),
        ),
        Way::new("log in front of three tables", log_in_front(dir)),
    ];
    for _ in 0..APPENDS / ROUND {
        for way in &mut ways {
            for _ in 0..ROUND {
                let before = processor_time();
                way.times.push(time(&mut way.append));
                way.processor += processor_time() - before;
            }
        }
    }
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let mut floor = None;
    for way in &mut ways {
        way.times.sort();
        let (p50, p99) = (way.times[APPENDS / 2], way.times[APPENDS * 99 / 100]);
        let floor = floor.get_or_insert(micros(p50));
        print_report(format_args!(
            "{:<40} p50 {:>5.0} us  p99 {:>6.0} us  processor {:>5.1} us  over the first {:.2}",
            way.name,
            micros(p50),
            micros(p99),
            micros(way.processor) / APPENDS as f64,
            micros(p50) / *floor
        ));
    }
}
