//! The catalog is an index: without it, or with one that lies, the files still say what there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use chorus_proto::methods::agent::{Config as AgentConfig, ConfigParams, Init, InitParams};
use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use rusqlite::Connection;
use uuid::Uuid;

use crate::home;

/// A home that was stopped by a crash: agent `a` with two sessions and a live message, agent `b` with nothing.
fn crashed() -> Home {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    for text in ["one", "two"] {
        client.append("a", text);
        client.save("a", text);
    }
    client.append("a", "three");
    daemon.kill9();
    home
}

fn listed(client: &mut Client) -> BTreeSet<(Uuid, String)> {
    client.history("a").into_iter().map(|session| (session.header.id, session.header.session_id)).collect()
}

/// Removes the catalog, each of its files that is named.
fn remove(home: &Home, names: &[&str]) {
    for name in names {
        _ = fs::remove_file(home.path.join("db").join(name));
    }
}

#[test]
fn a_deleted_catalog_is_made_again_from_the_files() {
    for names in [&["chorus.db", "chorus.db-wal", "chorus.db-shm"][..], &["chorus.db"]] {
        let home = crashed();
        let daemon = Daemon::start(&home);
        let before = listed(&mut daemon.client());
        daemon.kill9();
        remove(&home, names);
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        wait_until("the sessions to be listed", DEADLINE, || (listed(&mut client) == before).then_some(()));
        assert_eq!(client.message_texts("a"), ["one", "two", "three"], "{names:?}");
        assert_eq!(client.message_texts("b"), Vec::<String>::new());
        assert_eq!(client.get_session("a", "latest").1.len(), 2);
    }
}

/// P6.
#[test]
fn the_catalog_of_a_thousand_sessions_is_made_again_as_it_was() {
    let home = crashed();
    let daemon = Daemon::start(&home);
    let first = daemon.client().history("a").pop().expect("a session");
    let text = fs::read_to_string(&first.file_path).expect("its file");
    for n in 0..998 {
        let name = format!("2026-01-01_copy-{n}");
        let copy = text
            .replace(&first.header.id.to_string(), &Uuid::new_v4().to_string())
            .replace(&first.header.session_id, &name);
        fs::write(home.sessions_dir("a").join(format!("{name}.json")), copy).expect("written");
    }
    daemon.kill9();
    let all = |daemon: &Daemon| {
        let mut client = daemon.client();
        wait_until("a thousand sessions", DEADLINE, || {
            let listed = listed(&mut client);
            (listed.len() == 1000).then_some(listed)
        })
    };
    let daemon = Daemon::start(&home);
    let before = all(&daemon);
    daemon.kill9();
    remove(&home, &["chorus.db", "chorus.db-wal", "chorus.db-shm"]);
    let daemon = Daemon::start(&home);
    assert_eq!(all(&daemon), before);
}

#[test]
fn a_truncated_catalog_is_refused_with_a_hint_and_can_be_put_aside() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "one");
    daemon.client().save("a", "one");
    daemon.terminate();
    let path = home.path.join("db/chorus.db");
    let whole = fs::read(&path).expect("the catalog");
    fs::write(&path, &whole[..whole.len() / 2]).expect("half of it");
    let half = fs::read(&path).expect("half");
    if let Err((status, said)) = Daemon::try_start(&home, home.command(home.bins.chorusd)) {
        assert!(status.code().is_some_and(|code| code != 0), "{status}");
        assert!(said.contains("hint: ") && !said.contains("panicked"), "{said}");
        assert!(fs::read(&path).expect("half") == half, "it was touched");
    }
    fs::rename(&path, home.temp_dir().join("aside")).expect("put aside");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until("the session", DEADLINE, || (listed(&mut client).len() == 1).then_some(()));
    assert_eq!(client.message_texts("a"), ["one"]);
}

#[test]
fn a_locked_catalog_is_said_to_be_locked_and_works_again() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let other = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let init = InitParams { name: "b".into(), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Init>(&init)), ErrorKind::Busy);
    assert!(!home.agent_dir("b").exists(), "a failed init left its directory");
    assert_eq!(client.append("a", "two"), 2, "other work goes on");
    other.execute_batch("ROLLBACK").expect("released");
    client.call::<Init>(&init).expect("it works again");
    client.save("a", "saved");
    daemon.assert_alive();
}

/// The journal must not call messages saved whose session came to nothing.
#[test]
fn a_save_that_the_catalog_refuses_leaves_the_messages_unsaved() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.save("a", "one");
    client.append("a", "two");
    let other = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let save = SaveParams { agent: Some("a".into()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Save>(&save)), ErrorKind::Busy);
    other.execute_batch("ROLLBACK").expect("released");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.agent_status("a").context.expect("live").unsaved, 1);
    client.restore("a", "latest");
    wait_until("both sessions", DEADLINE, || (client.history("a").len() == 2).then_some(()));
    assert_eq!(client.get_session("a", "latest").1.len(), 2, "the restore saved first");
}

#[test]
fn a_setting_that_the_catalog_does_not_take_is_taken_back() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let path = home.agent_dir("a").join("agent.json");
    let before = fs::read_to_string(&path).expect("agent.json");
    let other = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    for (key, value) in [("idle_timeout", "2h"), ("name", "b")] {
        other.execute_batch("BEGIN IMMEDIATE").expect("the lock");
        let params = ConfigParams { name: "a".into(), key: Some(key.into()), value: Some(value.into()) };
        assert_eq!(expect_error_kind(client.call::<AgentConfig>(&params)), ErrorKind::Busy, "{key}");
        assert_eq!(fs::read_to_string(&path).expect("agent.json"), before, "{key}");
        client.append("a", "the file passes for one that was never touched, so nothing waits for the lock");
        other.execute_batch("ROLLBACK").expect("released");
        let show = ConfigParams { name: "a".into(), key: Some("idle_timeout".into()), value: None };
        let shown = client.call::<AgentConfig>(&show).expect("its settings");
        assert!(shown.config["idle_timeout"].is_null(), "{key}: {:?}", shown.config);
        assert_eq!(shown.agent.problem, None, "{key}");
    }
    assert!(!home.agent_dir("b").exists());
}

#[test]
fn a_locked_catalog_at_the_start_is_a_clear_error() {
    let home = crashed();
    Daemon::start(&home).terminate();
    let other = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").expect("the lock");
    if let Err((status, said)) = Daemon::try_start(&home, home.command(home.bins.chorusd)) {
        assert_eq!(status.code(), Some(7), "{said}");
        assert!(said.contains("locked") && said.contains("hint: "), "{said}");
    }
    drop(other);
    Daemon::start(&home).raw_connection().check_hello();
}

/// Whoever can write the catalog must not be able to lead the daemon out of its home by it.
#[test]
fn a_directory_in_the_catalog_that_leads_elsewhere_is_not_followed() {
    for elsewhere in ["../outside", "/tmp", "agents/../../outside"] {
        let home = crashed();
        let outside = home.temp_dir().join("outside");
        fs::create_dir_all(outside.join("sessions")).expect("a directory");
        Daemon::start(&home).kill9();
        let database = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
        database.execute("UPDATE agents SET dir = ?1 WHERE name = 'a'", [elsewhere]).expect("bent");
        database.close().expect("closed");
        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        client.append("a", "four");
        let saved = client.save("a", "to where it belongs");
        assert!(Path::new(&saved.file_path).starts_with(home.sessions_dir("a")), "{elsewhere}: {}", saved.file_path);
        assert_eq!(fs::read_dir(outside.join("sessions")).expect("it").count(), 0, "{elsewhere}");
        assert_eq!(client.message_texts("a").len(), 4);
    }
}
