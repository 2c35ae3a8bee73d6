//! The journal's files: nobody else writes them, one that goes ends the daemon, and what is damaged is told and salvaged.

mod bit_flips;
mod catalog_log;
mod file_locks;
mod missing_files;
mod moved_files;
mod recovery;
mod salvage;
mod set_aside;

use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::methods::doctor::{Check, DoctorResult, Verdict};
use chorus_proto::methods::events::{List, ListParams};
use chorus_proto::{CallError, Client, ErrorKind, EventType, NewMessage, Role, methods::context};
use chorus_tests::ctl::{Output, chorusctl};
use chorus_tests::{Daemon, Home};

/// live.db of a home.
fn journal(home: &Home) -> PathBuf {
    home.path.join("db/live.db")
}

/// Appends a message, and says how it was refused.
fn try_append(client: &mut Client, agent: &str, text: &str) -> Result<(), CallError> {
    let messages = vec![NewMessage::text(Role::User, text)];
    let params = context::AppendParams { agent: Some(agent.into()), messages, ..Default::default() };
    client.call::<context::Append>(&params).map(drop)
}

/// Texts of the live context, or why they cannot be had.
fn try_texts(client: &mut Client, agent: &str) -> Result<Vec<String>, (ErrorKind, Option<String>)> {
    let mut texts = Vec::new();
    let mut offset = Some(0);
    while offset.is_some() {
        let params = context::ShowParams { agent: Some(agent.into()), offset, ..Default::default() };
        match client.call::<context::Show>(&params) {
            Ok(page) => {
                texts.extend(page.messages.into_iter().map(|message| message.content));
                offset = page.next;
            }
            Err(CallError::Rpc(error)) => {
                return Err((error.kind(), error.data.as_ref().and_then(|data| data.hint.clone())));
            }
            Err(other) => panic!("{other}"),
        }
    }
    Ok(texts)
}

/// Number of the newest event.
fn newest(daemon: &Daemon) -> u64 {
    let events = daemon.client().call::<List>(&ListParams::default()).expect("events").events;
    events.last().expect("an event").seq
}

/// The notices that the daemon keeps.
fn notices(daemon: &Daemon) -> Vec<String> {
    let events = daemon.client().call::<List>(&ListParams::default()).expect("events").events;
    let notices = events.into_iter().filter(|event| event.kind == EventType::Notice);
    notices.filter_map(|event| Some(event.data["text"].as_str()?.to_owned())).collect()
}

fn doctor(home: &Home, more: &[&str]) -> DoctorResult {
    let Output { stdout, stderr, .. } = chorusctl(home, ["doctor", "--json"].iter().chain(more));
    serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}{stderr}"))
}

/// The checks of the journal that are not good.
fn trouble(found: &DoctorResult) -> Vec<&Check> {
    let bad = |check: &&Check| ["journal", "live.db"].contains(&&*check.name) && check.verdict != Verdict::Ok;
    found.checks.iter().filter(bad).collect()
}

/// Directories with damaged files.
fn set_aside(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path.join("db")).expect("db/").map(|entry| entry.expect("an entry").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    entries.filter(|path| name(path).starts_with("damaged-")).collect()
}

/// Copies a directory with all that is in it, but for sockets.
fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let (kind, to) = (entry.file_type().expect("a kind"), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_all(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), to).expect("copied");
        }
    }
}
