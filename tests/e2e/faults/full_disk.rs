//! P5: a full disk is a clear error, damages nothing, and passes without a restart.

use std::fs;
use std::path::Path;

use chorus_proto::methods::context::{Append, AppendParams, Clear, ClearParams, Save, SaveParams};
use chorus_proto::{CallError, Client, ErrorKind};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::signal;
use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::small_disk::SmallDisk;
use chorus_tests::{DEADLINE, Daemon, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use crate::home;

/// Room for an agent with its repository, SQLite's files, and what the cycles add.
const KIB: u64 = 6 * 1024;

/// What was acknowledged.
#[derive(Debug, Default)]
struct Acked {
    live: Vec<String>,
    sessions: Vec<(String, Vec<String>)>,
}

/// Fills the disk to the last byte.
pub fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(path).expect("the ballast");
    for block in [64 * 1024, 4096, 512, 1] {
        while file.write_all(&vec![b'.'; block]).is_ok() {}
    }
}

fn append(client: &mut Client, text: &str) -> Result<(), CallError> {
    let params = AppendParams { agent: Some("a".into()), text: Some(text.into()), ..Default::default() };
    client.call::<Append>(&params).map(drop)
}

fn save(client: &mut Client, description: String) -> Result<String, CallError> {
    let params = SaveParams { agent: Some("a".into()), description: Some(description), ..Default::default() };
    client.call::<Save>(&params).map(|saved| saved.session.header.id.to_string())
}

/// A full disk is `disk_full` with a hint, never anything else.
fn assert_disk_full(error: CallError, what: &str) {
    let CallError::Rpc(error) = error else { panic!("{what}: {error}") };
    assert_eq!(error.kind(), ErrorKind::DiskFull, "{what}: {error:?}");
    assert!(error.data.is_some_and(|data| data.hint.is_some()), "{what}: no hint");
}

/// Appends and saves until both are refused for want of room.
fn work_until_full(client: &mut Client, acked: &mut Acked, rng: &mut Rng, cycle: u64) {
    let mut refused = [false; 2];
    for n in 0.. {
        let saves = n % 3 == 2;
        if saves {
            match save(client, format!("cycle {cycle} save {n}")) {
                Ok(id) => acked.sessions.push((id, acked.live.clone())),
                Err(error) => assert_disk_full(error, "save"),
            }
        } else {
            let text = format!("{cycle}-{n} {}", "x".repeat(rng.below(30_000) as usize));
            match append(client, &text) {
                Ok(()) => acked.live.push(text),
                Err(error) => {
                    assert_disk_full(error, "append");
                    refused[0] = true;
                }
            }
        }
        refused[1] |= saves && refused[0];
        if refused == [true; 2] && n > 6 {
            return;
        }
    }
}

/// Every session file is whole; gives their number.
fn whole_files(sessions: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(sessions).expect("sessions/") {
        let path = entry.expect("an entry").path();
        assert_eq!(path.extension().and_then(|e| e.to_str()), Some("json"), "left behind: {}", path.display());
        let text = fs::read_to_string(&path).expect("a readable session");
        let file: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(file["messages"].as_array().map(|all| all.len() as u64), file["message_count"].as_u64());
        count += 1;
    }
    count
}

fn assert_all_there(client: &mut Client, acked: &Acked) {
    assert!(client.message_texts("a") == acked.live, "the live context is not what was acknowledged");
    for (id, texts) in &acked.sessions {
        let messages = client.get_session("a", id).1.into_iter().map(|message| message.content);
        assert!(messages.eq(texts.iter().cloned()), "session {id}");
    }
    // Those whose files were taken away to make room are still listed.
    let there = client.history("a").into_iter().filter(|session| session.available).count();
    assert_eq!(there, acked.sessions.len(), "sessions that nobody acknowledged");
}

#[test]
fn a_full_disk_is_said_to_be_full_and_works_again_when_it_is_not() {
    let home = home();
    home.create();
    let Some(disk) = SmallDisk::mount(&home.path, KIB) else { return };
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let ballast = home.path.join("ballast");
    let (mut acked, mut rng) = (Acked::default(), Rng::new(5));
    // Never an empty context: a save of one is another error.
    client.append("a", "first");
    acked.live.push("first".into());
    for cycle in 0..rounds_from_env("CHORUS_FILL_CYCLES", 20) {
        fill(&ballast);
        work_until_full(&mut client, &mut acked, &mut rng, cycle);
        assert_eq!(whole_files(&home.sessions_dir("a")), acked.sessions.len());
        fs::remove_file(&ballast).expect("room again");
        let text = format!("{cycle} after");
        wait_until("an append to work again", DEADLINE, || append(&mut client, &text).ok());
        acked.live.push(text);
        let id =
            wait_until("a save to work again", DEADLINE, || save(&mut client, format!("cycle {cycle} after")).ok());
        acked.sessions.push((id, acked.live.clone()));
        daemon.assert_alive();
        // Room for the next cycle.
        if disk.free_bytes() < KIB * 1024 / 2 {
            client
                .call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false })
                .expect("cleared");
            client.append("a", "first");
            acked.live = vec!["first".into()];
            for (id, _) in std::mem::take(&mut acked.sessions) {
                let (session, _) = client.get_session("a", &id);
                fs::remove_file(&session.file_path).expect("removed");
            }
        }
        if cycle % 5 == 4 {
            daemon.kill9();
            daemon = Daemon::start(&home);
            client = daemon.client();
            assert_all_there(&mut client, &acked);
        }
    }
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    assert_all_there(&mut daemon.client(), &acked);
    drop(daemon);
}

#[test]
fn a_stop_and_a_start_on_a_full_disk_lose_nothing() {
    let home = home();
    home.create();
    let Some(_disk) = SmallDisk::mount(&home.path, KIB) else { return };
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.append("a", "two, unsaved");
    let ballast = home.path.join("ballast");
    fill(&ballast);
    signal(daemon.pid, Signal::TERM);
    daemon.wait();
    assert!(!daemon.read_log().contains("panicked"), "{}", daemon.read_log());
    // A start may be refused for want of room, with words; it must not break anything.
    if let Err((status, said)) = Daemon::try_start(&home, home.command(home.bins.chorusd)) {
        assert!(status.code().is_some_and(|code| code != 0) && said.contains("hint: "), "{status}: {said}");
    }
    fs::remove_file(&ballast).expect("room again");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.message_texts("a"), ["one", "two, unsaved"]);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().history("a").len(), 1, "saved when there was room");
    assert_eq!(whole_files(&home.sessions_dir("a")), 1);
    drop(daemon);
}
