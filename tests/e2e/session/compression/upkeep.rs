//! Which sessions are compressed, and when.

use std::fs;
use std::path::Path;
use std::time::Duration;

use chorus_proto::Client;
use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::session::{Get, GetParams, Tag, TagParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, InProcessDaemon, ManualClock, wait_until};
use jiff::Timestamp;
use rusqlite::Connection;

use super::{CONFIG, fixture, home, put_aside};

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

/// Waits until exactly these sessions of the agent are compressed.
fn wait_for(client: &mut Client, names: &[&str]) {
    wait_until(&format!("{names:?} to be compressed"), DEADLINE, || {
        let listed = client.history("a");
        let compressed = listed.iter().filter(|session| session.file_path.ends_with(".json.gz"));
        let mut found: Vec<_> = compressed.filter_map(|session| session.header.description.as_deref()).collect();
        found.sort_unstable();
        (found == names).then_some(())
    });
}

#[test]
fn only_those_that_nobody_used_are_compressed() {
    let home = home().without_index();
    let hands = ManualClock::new(Timestamp::from_second(1_771_000_000).expect("a time"));
    home.write_config("[retention]\nsessions_compressed_after = \"30d\"\n");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    // No timer ends its context.
    let params = InitParams { name: "a".into(), idle_timeout: Some("0".into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
    let mut sessions = Vec::new();
    for name in ["idle", "live", "restored", "shown", "small", "tagged"] {
        sessions.push(put_aside(&mut client, name, if name == "small" { 2 } else { 60 }));
    }
    let id = |at: usize| sessions[at].header.id.to_string();
    hands.advance(days(20));
    client.restore("a", &id(2));
    client.restore("a", &id(1));
    let params = GetParams { agent: Some("a".into()), session: id(3), ..Default::default() };
    client.call::<Get>(&params).expect("shown");
    let params = TagParams { agent: Some("a".into()), session: id(5), tag: vec!["t".into()], ..Default::default() };
    client.call::<Tag>(&params).expect("tagged");
    hands.advance(days(11));
    wait_for(&mut client, &["idle"]);
    // The one that is live stays plain; one that would not become smaller, too.
    hands.advance(days(31));
    wait_for(&mut client, &["idle", "restored", "shown", "tagged"]);
    assert_eq!(client.get_session("a", &id(2)).1.len(), 60);
    assert_eq!(client.messages("a").len(), 60);
}

#[test]
fn it_begins_as_soon_as_it_is_configured() {
    let Some(of) = fixture() else { return };
    let daemon = Daemon::start(&of.home);
    assert_eq!(daemon.client().history("a").len(), 1);
    assert!(of.plain().is_file(), "it is off by default");
    for wrong in ["1h", "0", "soon"] {
        chorusctl(&of.home, ["config", "set", "retention.sessions_compressed_after", wrong])
            .expect_failure_with_hint(2);
    }
    chorusctl(&of.home, ["config", "set", "retention.sessions_compressed_after", "30d"]).expect_success();
    let mut client = daemon.client();
    wait_for(&mut client, &["the long one"]);
    of.assert_reads(&mut client, "while it runs");
    assert!(of.compressed().is_file());
}

/// Returns the permissions of a file.
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).expect("the file").permissions().mode() & 0o777
}

#[test]
fn the_file_is_private_and_keeps_its_time() {
    let Some(of) = fixture() else { return };
    let before = fs::metadata(of.plain()).expect("the file").modified().expect("a time");
    let daemon = of.start_compressed();
    assert_eq!(mode(&of.compressed()), 0o600);
    assert_eq!(fs::metadata(of.compressed()).expect("the file").modified().expect("a time"), before);
    assert!(daemon.terminate().success());
}

#[test]
fn a_release_before_it_refuses_the_home_also_without_a_catalog() {
    let Some(of) = fixture() else { return };
    of.start_compressed().terminate();
    of.home.write_config(CONFIG);
    // As a release sees it that does not know the last step of the schema.
    let raise = |name: &str| {
        let database = Connection::open(of.home.path.join("db").join(name)).expect("the database");
        let version: u32 = database.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
        database.pragma_update(None, "user_version", version + 1).expect("the next");
        database.close().expect("closed");
    };
    raise("live.db");
    for name in ["chorus.db", "chorus.db.bak"] {
        fs::remove_file(of.home.path.join("db").join(name)).expect("removed");
    }
    let (_, said) = Daemon::try_start(&of.home, of.home.command(of.home.bins.chorusd)).expect_err("refused");
    assert!(said.contains("live.db") && said.contains("hint: "), "{said}");
    assert!(!of.home.path.join("db/chorus.db").exists(), "nothing was written");
    assert!(of.compressed().is_file());
}
