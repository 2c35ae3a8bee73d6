//! States that a crash between the trash and the catalog leaves, as earlier versions left them: the next start settles
//! them.

use std::fs;

use chorus_proto::Client;
use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::methods::trash::{List, ListParams, Restore, RestoreParams, TrashEntry};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use crate::home;

fn trashed(client: &mut Client) -> Vec<TrashEntry> {
    client.call::<List>(&ListParams {}).expect("the trash").entries
}

/// A stopped home whose agent `a` has a session that was deleted: the file and an entry are in the trash. Its row is as before.
fn deleted_but_for_its_row() -> (Home, String) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let name = client.save("a", "halfway").header.session_id;
    daemon.kill9();
    let before = home.temp_dir().join("before.db");
    rusqlite::Connection::open(home.path.join("db/chorus.db"))
        .expect("the catalog")
        .execute("VACUUM INTO ?1", [before.to_str().expect("a path")])
        .expect("a copy");
    let daemon = Daemon::start(&home);
    let params = DeleteParams { conversation: None, agent: Some("a".into()), session: "latest".into(), own: false };
    daemon.client().call::<Delete>(&params).expect("deleted");
    daemon.kill9();
    for file in ["chorus.db-wal", "chorus.db-shm"] {
        _ = fs::remove_file(home.path.join("db").join(file));
    }
    fs::copy(before, home.path.join("db/chorus.db")).expect("the catalog of before");
    (home, name)
}

#[test]
fn a_session_whose_file_is_in_the_trash_and_whose_row_is_not_gone_can_be_restored() {
    let (home, name) = deleted_but_for_its_row();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until("the deletion to be completed", DEADLINE, || client.history("a").is_empty().then_some(()));
    let said = chorusctl(&home, ["trash", "restore", &name]).expect_success();
    assert!(said.contains("restored"), "{said}");
    assert!(client.history("a")[0].available);
    assert_eq!(client.restore("a", "latest").warnings, Vec::<String>::new(), "the hash is that of the save");
    assert_eq!(client.message_texts("a"), ["hello"]);
    assert!(trashed(&mut client).is_empty());
}

#[test]
fn an_entry_that_was_being_moved_in_is_settled_before_the_first_request() {
    let (home, _) = deleted_but_for_its_row();
    let entry = fs::read_dir(home.path.join("trash")).expect("the trash").next().expect("an entry").expect("an entry");
    let hidden = entry.path().with_file_name(format!(".moving-{}", entry.file_name().to_string_lossy()));
    fs::rename(entry.path(), hidden).expect("hidden");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert!(client.history("a").is_empty());
    assert_eq!(trashed(&mut client).len(), 1);
}

#[test]
fn while_the_daemon_runs_the_doctor_finds_it_in_the_trash_and_a_restore_takes_the_row_of_its_own_id() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let saved = client.save("a", "halfway");
    let params = DeleteParams { conversation: None, agent: Some("a".into()), session: "latest".into(), own: false };
    client.call::<Delete>(&params).expect("deleted");
    let entry = trashed(&mut client).remove(0);
    // The row comes back by a file that goes again.
    let copy = format!("{}/content", entry.path);
    fs::copy(&copy, &saved.file_path).expect("a copy");
    client.call::<Doctor>(&DoctorParams { rebuild: true, salvage: false }).expect("rebuilt");
    assert_eq!(client.history("a").len(), 1);
    fs::remove_file(&saved.file_path).expect("removed by hand");
    let checks = client.call::<Doctor>(&DoctorParams::default()).expect("doctor").checks;
    let told = checks.iter().find(|check| check.name == "sessions").expect("a check");
    assert!(
        told.text.contains("in the trash") && told.hint.as_ref().is_some_and(|hint| hint.contains("trash restore"))
    );
    client.call::<Restore>(&RestoreParams { id: entry.id }).expect("restored");
    assert!(client.history("a")[0].available);
    assert_eq!(client.history("a").len(), 1);
}

#[test]
fn an_agent_whose_directory_is_in_the_trash_and_whose_row_is_not_gone_is_back_after_the_start() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    client.save("a", "kept");
    let id = client.agent_status("a").id;
    daemon.kill9();
    let entry = home.path.join("trash/.moving-2026-01-01T00-00-00Z_11111111-1111-4111-8111-111111111111");
    fs::create_dir_all(&entry).expect("an entry");
    let note = serde_json::json!({
        "kind": "agent", "agent_id": id, "name": "a", "deleted_at": "2026-01-01T00:00:00Z", "from": "agents/a",
    });
    fs::write(entry.join("entry.json"), note.to_string()).expect("a note");
    fs::rename(home.agent_dir("a"), entry.join("content")).expect("moved");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert!(trashed(&mut client).is_empty());
    assert!(client.history("a")[0].available);
    assert_eq!(client.message_texts("a"), ["hello"]);
    client.append("a", "more");
}

#[test]
fn a_rename_that_moved_the_directory_and_nothing_else_is_completed() {
    for named in [false, true] {
        let home = home();
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        client.init("a");
        client.append("a", "hello");
        client.save("a", "kept");
        daemon.kill9();
        fs::rename(home.agent_dir("a"), home.agent_dir("b")).expect("moved");
        if named {
            // As earlier versions left it: agent.json was written first.
            let file = home.agent_dir("b").join("agent.json");
            let text = fs::read_to_string(&file).expect("agent.json");
            fs::write(&file, text.replace(r#""name": "a""#, r#""name": "b""#)).expect("written");
        }
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        assert_eq!(client.message_texts("b"), ["hello"]);
        assert!(client.history("b")[0].available);
        let text = fs::read_to_string(home.agent_dir("b").join("agent.json")).expect("agent.json");
        assert!(text.contains(r#""name": "b""#), "{text}");
        assert_eq!(client.agent_status("b").problem, None);
    }
}

#[test]
fn a_deletion_from_the_trash_that_began_is_completed() {
    let (home, _) = deleted_but_for_its_row();
    Daemon::start(&home).kill9();
    let entry = fs::read_dir(home.path.join("trash")).expect("the trash").next().expect("an entry").expect("an entry");
    let name = entry.file_name().to_string_lossy().into_owned();
    let deleting = entry.path().with_file_name(format!(".deleting-{}", name.trim_start_matches(".moving-")));
    fs::rename(entry.path(), deleting).expect("hidden");
    let daemon = Daemon::start(&home);
    assert!(trashed(&mut daemon.client()).is_empty());
    assert_eq!(fs::read_dir(home.path.join("trash")).expect("the trash").count(), 0);
}
