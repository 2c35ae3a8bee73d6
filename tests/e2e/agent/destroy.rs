//! `agent destroy`: the context is saved first, and the files go where they were told to.

use std::fs;
use std::path::Path;

use chorus_proto::methods::agent::{Destroy, DestroyParams, DestroyResult, Init, InitParams, List, ListParams};
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_proto::{AgentStatus, Client, ErrorKind, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

fn destroy(client: &mut Client, keep_files: bool, purge: bool) -> DestroyResult {
    client.call::<Destroy>(&DestroyParams { name: "a".into(), keep_files, purge }).expect("destroyed")
}

fn with_one_message(daemon: &Daemon) -> Client {
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "unsaved");
    client
}

#[test]
fn the_context_is_saved_and_the_files_go_to_the_trash() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = with_one_message(&daemon);
    let gone = destroy(&mut client, false, false);
    assert_eq!(gone.agent.status, AgentStatus::Destroyed);
    assert_eq!(gone.saved.expect("a session").header.trigger, Trigger::Destroy);
    let files = gone.files.expect("a place in the trash");
    assert!(Path::new(&files).starts_with(home.path.join("trash")), "{files}");
    assert_eq!(fs::read_dir(Path::new(&files).join("sessions")).expect("its sessions").count(), 1);
    assert!(!home.agent_dir("a").exists());
    let list =
        |client: &mut Client, all| client.call::<List>(&ListParams { all, node: None }).expect("a list").agents.len();
    assert_eq!((list(&mut client, false), list(&mut client, true)), (0, 1));
    let all = HistoryParams { all_agents: true, ..Default::default() };
    let sessions = client.call::<History>(&all).expect("the history").sessions;
    assert_eq!(sessions.len(), 1, "the rows of its sessions stay");
    let append = client.call::<chorus_proto::methods::context::Append>(&chorus_proto::methods::context::AppendParams {
        agent: Some("a".into()),
        text: Some("too late".into()),
        ..Default::default()
    });
    assert_eq!(expect_error_kind(append), ErrorKind::AgentNotFound);
    client.init("a");
    assert_eq!(client.history("a"), [], "the name is free, for another agent");
}

/// As a `kill -9` between the commit of a destroy and the end of the context leaves it.
#[test]
fn a_context_that_a_destroy_left_is_ended_by_the_start() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = with_one_message(&daemon);
    client.save("a", "saved");
    client.init("b");
    client.append("b", "stays");
    daemon.kill9();
    rusqlite::Connection::open(home.path.join("db/chorus.db"))
        .expect("the catalog")
        .execute("UPDATE agents SET status = 'destroyed', destroyed_at = 1 WHERE name = 'a'", [])
        .expect("destroyed");
    let daemon = Daemon::start(&home);
    let found = daemon.client().call::<Doctor>(&DoctorParams::default()).expect("checks");
    let journal: Vec<&str> =
        found.checks.iter().filter(|check| check.name == "journal").map(|check| &*check.text).collect();
    assert!(journal.len() == 1 && journal[0].contains("of 1 context,"), "{journal:?}");
    assert_eq!(daemon.client().message_texts("b"), ["stays"]);
}

#[test]
fn a_purge_leaves_no_files() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = with_one_message(&daemon);
    assert_eq!(destroy(&mut client, false, true).files, None);
    assert!(!home.agent_dir("a").exists());
    assert_eq!(fs::read_dir(home.path.join("trash")).map_or(0, Iterator::count), 0);
}

#[test]
fn kept_files_come_back_to_life() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = with_one_message(&daemon);
    let before = client.save("a", "before");
    fs::write(home.agent_dir("a").join("workspace/work.txt"), "work").expect("a file");
    let id = destroy(&mut client, true, false).agent.id;
    assert!(home.agent_dir("a").join("agent.json").exists());
    let params = InitParams { name: "a".into(), model: Some("local/new".into()), ..Default::default() };
    let revived = client.call::<Init>(&params).expect("revived");
    assert!(revived.revived);
    assert_eq!(revived.agent.id, id, "its identity is in agent.json");
    assert_eq!(revived.agent.model.as_deref(), Some("local/new"), "what was said anew holds");
    assert_eq!(fs::read_to_string(home.agent_dir("a").join("workspace/work.txt")).expect("kept"), "work");
    let sessions = client.history("a");
    assert!(sessions.iter().any(|session| session.header.id == before.header.id), "{sessions:?}");
    client.restore("a", "latest");
    assert_eq!(client.message_texts("a"), ["unsaved"]);
}

#[test]
fn without_a_terminal_it_wants_a_yes() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = with_one_message(&daemon);
    chorusctl(&home, ["agent", "destroy", "a"]).expect_failure_with_hint(6);
    assert_eq!(client.message_texts("a"), ["unsaved"]);
    chorusctl(&home, ["agent", "destroy", "nobody", "--yes"]).expect_failure_with_hint(3);
    let said = chorusctl(&home, ["--json", "agent", "destroy", "a", "--yes"]).expect_json();
    assert_eq!(said["agent"]["status"], "destroyed");
}

#[test]
fn a_session_whose_file_went_with_its_agent_says_so() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = with_one_message(&daemon);
    destroy(&mut client, false, true);
    let all = HistoryParams { all_agents: true, ..Default::default() };
    let sessions = client.call::<History>(&all).expect("the history").sessions;
    assert!(sessions.iter().all(|session| !session.available), "{sessions:?}");
}

#[test]
fn a_destroyed_agent_is_listed_with_the_permissions_it_had() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("plain");
    client.init("strict");
    chorusctl(&home, ["agent", "config", "strict", "permissions", "locked"]).expect_success();
    for name in ["plain", "strict"] {
        let params = DestroyParams { name: name.into(), keep_files: false, purge: false };
        client.call::<Destroy>(&params).expect("destroyed");
    }
    let listed = chorusctl(&home, ["agent", "list", "--all"]).expect_success();
    let line = |name: &str| listed.lines().find(|line| line.contains(name)).expect("a line").to_owned();
    assert!(line("plain").contains("standard") && line("strict").contains("locked"), "{listed}");
    assert!(!listed.contains("custom"), "{listed}");
}
