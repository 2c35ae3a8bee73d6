//! Bench: 10,000 contexts expire in the same second while another client keeps appending. The floor of it only writes
//! as many files, with as many threads and syncs as the daemon.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_tests::bulk_data::{create_agents, wait_for_saves};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, median, print_report, time};
use chorus_tests::{Daemon, home};

const CONTEXTS: usize = 10_000;
const CLIENTS: usize = 16;
const TARGET: Duration = Duration::from_secs(2);
/// As in the daemon: threads that write files, and files for which the file system is synced once.
const WRITERS: usize = 2;
const FILES_PER_SYNC: usize = 256;

fn append_timed(client: &mut Client, agent: &str) -> Duration {
    let text = "The nightly import dropped every row whose country was empty. ".repeat(10);
    let params = AppendParams { agent: Some(agent.into()), text: Some(text), ..Default::default() };
    time(|| _ = client.call::<Append>(&params).expect("appended"))
}

/// Appends to another agent until `stop` is set; returns when each append was answered and how long it took.
fn append_until_stopped(client: &mut Client, stop: &AtomicBool) -> Vec<(Instant, Duration)> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let one = append_timed(client, "agent-0");
        took.push((Instant::now(), one));
    }
    took
}

fn main() {
    let home = home!();
    create_agents(&home, CONTEXTS + 1);
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"1h\"\n");
    std::thread::scope(|scope| {
        for part in 0..CLIENTS {
            let mut client = daemon.client();
            scope.spawn(move || {
                for n in (1 + part..=CONTEXTS).step_by(CLIENTS) {
                    append_timed(&mut client, &format!("agent-{n}"));
                }
            });
        }
    });
    daemon.kill9();
    // Write out the dirty pages of creating 10,000 agents and of deleting the previous run, which are not to be
    // measured.
    rustix::fs::sync();
    // No real-time scheduler: this measures how the daemon shares the machine with itself. The shorter timeout makes
    // all contexts expire four seconds after the start.
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"4s\"\n");
    let stop = AtomicBool::new(false);
    let (first, done, appended) = std::thread::scope(|scope| {
        let (mut client, stop) = (daemon.client(), &stop);
        let appending = scope.spawn(move || append_until_stopped(&mut client, stop));
        let mut history = daemon.client();
        let (first, done) = wait_for_saves(&mut history, CONTEXTS);
        assert_eq!(history.history("agent-1").len(), 1);
        stop.store(true, Ordering::Relaxed);
        (first, done, appending.join().expect("the appends"))
    });
    let name = format!("{CONTEXTS} contexts saved and cleared");
    print_report(Measurement { name, floor: TARGET, ours: done - first, target: 1.0 });
    drop(daemon);
    rustix::fs::sync();
    let dirs: Vec<_> = (1..=CONTEXTS).map(|n| home.sessions_dir(&format!("agent-{n}"))).collect();
    let body = fs::read(session_file(&dirs[0])).expect("a session");
    print_report(Measurement {
        name: "the same, over writing files alone".into(),
        floor: write_files(&dirs, &body),
        ours: done - first,
        target: f64::INFINITY,
    });
    let (before, during): (Vec<_>, Vec<_>) = appended.into_iter().partition(|(at, _)| *at < first);
    let p50 = |took: Vec<(Instant, Duration)>| median(took.into_iter().map(|(_, one)| one).collect());
    print_report(Measurement {
        name: "p50 of others' appends, over before".into(),
        floor: p50(before),
        ours: p50(during),
        target: 1.5,
    });
}

fn session_file(dir: &Path) -> PathBuf {
    fs::read_dir(dir).expect("a directory").next().expect("a session").expect("its name").path()
}

/// Writes `body` to a new file in each directory, and returns the time until all are durable under their names. As in
/// the daemon, one sync makes the files durable that were renamed before it, and the contents of those that are renamed
/// after it.
fn write_files(dirs: &[PathBuf], body: &[u8]) -> Duration {
    let (written, files) = mpsc::sync_channel(FILES_PER_SYNC);
    time(|| {
        std::thread::scope(|scope| {
            for part in 0..WRITERS {
                let written = written.clone();
                scope.spawn(move || {
                    for dir in dirs.iter().skip(part).step_by(WRITERS) {
                        written.send((write_new(&dir.join(".floor"), body), dir)).expect("a thread that renames");
                    }
                });
            }
            drop(written);
            rename_durably(&files);
        });
    })
}

fn write_new(path: &Path, body: &[u8]) -> File {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).expect("a new file");
    file.write_all(body).expect("written");
    file
}

fn rename_durably(files: &Receiver<(File, &PathBuf)>) {
    while let Ok(first) = files.recv() {
        let batch: Vec<_> = std::iter::once(first).chain(files.iter().take(FILES_PER_SYNC - 1)).collect();
        rustix::fs::syncfs(&batch[0].0).expect("synced");
        for (_, dir) in &batch {
            fs::rename(dir.join(".floor"), dir.join("floor.json")).expect("renamed");
        }
    }
    rustix::fs::sync();
}
