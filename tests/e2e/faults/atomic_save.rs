//! P3: a session file is replaced whole, in the order that survives a power cut, and nobody ever reads half of one.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::run_command;
use chorus_tests::{Daemon, Home, Need, skip_without};
use serde_json::Value;

use crate::home;

const SAVES: usize = 200;
const READS: usize = 2000;

/// A daemon under `strace`, whose calls go to a file; `None` where that cannot be.
fn traced(home: &Home) -> Option<Daemon> {
    const CALLS: &str = "trace=fsync,fdatasync,rename,renameat,renameat2";
    let mut probe = home.command("sh");
    probe.args(["-c", &format!("strace -f -y -e {CALLS} true")]);
    if run_command(probe, b"").status != 0 {
        skip_without(Need::Ptrace, "strace cannot be used here");
        return None;
    }
    let mut command = home.command("strace");
    command.args(["-f", "-y", "-s", "4096", "-e", CALLS, "-o"]).arg(trace(home)).arg(home.bins.chorusd);
    Some(Daemon::start_command(home, command))
}

fn trace(home: &Home) -> std::path::PathBuf {
    home.temp_dir().join("trace")
}

/// Line numbers of one save: the sync of the new file, the rename to its name, the sync of the directory.
#[derive(Debug)]
struct Order {
    file_synced: usize,
    renamed: usize,
    directory_synced: usize,
}

/// Finds the three calls for the session file `name` in the trace.
fn order(lines: &[&str], sessions: &Path, name: &str) -> Option<Order> {
    let target = format!("{name}.json\"");
    let renamed = lines.iter().position(|line| line.contains("rename") && line.contains(&target))?;
    // The temporary name is whatever was renamed to the session's.
    let temporary = lines[renamed].split('"').nth(1).and_then(|path| path.rsplit('/').next())?;
    let synced = |line: &str| line.contains("fsync(") || line.contains("fdatasync(");
    let file_synced =
        lines[..renamed].iter().rposition(|line| synced(line) && line.contains(&format!("/{temporary}>")))?;
    let directory = format!("{}>", sessions.display());
    let after = lines[renamed..].iter().position(|line| synced(line) && line.contains(&directory))?;
    Some(Order { file_synced, renamed, directory_synced: renamed + after })
}

#[test]
fn each_save_syncs_the_file_renames_it_and_syncs_the_directory_before_it_answers() {
    let home = home();
    let Some(daemon) = traced(&home) else { return };
    let mut client = daemon.client();
    client.init("a");
    let sessions = fs::canonicalize(home.sessions_dir("a")).expect("the sessions");
    for n in 0..20 {
        client.append("a", &format!("message {n}"));
        let session = client.save("a", &format!("save {n}"));
        // The trace is read right after the answer: what is not in it by now was not done before it.
        let text = fs::read_to_string(trace(&home)).expect("the trace");
        let lines: Vec<_> = text.lines().collect();
        let found = order(&lines, &sessions, &session.header.session_id);
        let found = found.unwrap_or_else(|| panic!("not all of fsync, rename, fsync for save {n}:\n{text}"));
        assert!(found.file_synced < found.renamed && found.renamed < found.directory_synced, "{found:?}");
    }
}

/// Reads every session file there is; each must be whole. Gives how many were read.
fn read_all(sessions: &Path) -> usize {
    let mut read = 0;
    for entry in fs::read_dir(sessions).expect("the sessions") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a readable session");
        let session: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let messages = session["messages"].as_array().map(Vec::len);
        assert_eq!(messages.map(|count| count as u64), session["message_count"].as_u64(), "{}", path.display());
        read += 1;
    }
    read
}

#[test]
fn readers_beside_two_hundred_saves_never_see_half_a_file() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let sessions = home.sessions_dir("a");
    let done = AtomicBool::new(false);
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = 0;
            while !done.load(Ordering::Relaxed) || read < READS {
                read += read_all(&sessions);
            }
            read
        });
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let mut client = daemon.client();
                scope.spawn(move || {
                    for n in 0..SAVES / 2 {
                        client.append("a", &format!("{writer} {n} {}", "x".repeat(200)));
                        client.save("a", &format!("writer {writer} save {n}"));
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        done.store(true, Ordering::Relaxed);
        reader.join().expect("the reader")
    });
    assert!(read >= READS);
    assert_eq!(read_all(&sessions), SAVES);
    let strays = fs::read_dir(&sessions).expect("the sessions").count();
    assert_eq!(strays, SAVES, "temporary files were left behind");
}
