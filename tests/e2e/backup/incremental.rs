//! A second backup copies what changed, and what went stays until `--prune`.

use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::methods::trash::{Empty, EmptyParams};
use chorus_tests::bulk_data::copy_session;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{back_up, objects, path, restored, verified};
use crate::home;

/// The journal and the catalog: whatever happens is in them.
const DATABASES: u64 = 2;

#[test]
fn only_what_changed_is_copied() {
    let one = home();
    let daemon = Daemon::start(&one);
    let mut client = daemon.client();
    client.init("atlas");
    client.append("atlas", &"words ".repeat(1000));
    let session = client.save("atlas", "first").header.session_id;
    copy_session(&one, "atlas", &session, 200);
    let dir = one.temp_dir().join("backup");
    let first = back_up(&one, &dir);
    assert!(first.copied_files > 200 && first.sessions == 201, "{first:?}");
    let second = back_up(&one, &dir);
    assert!(second.copied_files <= DATABASES, "{second:?}");
    assert_eq!((second.files, second.sessions), (first.files, first.sessions));
    client.append("atlas", "more");
    client.save("atlas", "second");
    chorusctl(&one, ["session", "tag", session.as_str(), "kept", "--agent", "atlas"]).expect_success();
    let third = back_up(&one, &dir);
    // A new session, and one whose header changed.
    assert!((2..=2 + DATABASES).contains(&third.copied_files), "{third:?}");
    assert!(third.copied_bytes * 2 < first.copied_bytes, "{third:?}, at first {first:?}");
    verified(&one, &dir);
    let told = chorusctl(&one, ["backup", path(&dir), "--quiet"]);
    assert_eq!((told.status, &*told.stdout, &*told.stderr), (0, "", ""), "silent for cron");
    let two = restored(&dir);
    let there = Daemon::start(&two);
    let sessions = || there.client().history("atlas").len();
    wait_until("all files to be listed", DEADLINE, || (sessions() == 202).then_some(()));
}

#[test]
fn what_went_stays_until_it_is_pruned() {
    let one = home();
    let daemon = Daemon::start(&one);
    let mut client = daemon.client();
    client.init("atlas");
    client.append("atlas", "to be forgotten");
    let session = client.save("atlas", "first").header.session_id;
    let dir = one.temp_dir().join("backup");
    back_up(&one, &dir);
    let has = || {
        objects(&dir).iter().any(|file| {
            std::fs::read(file).is_ok_and(|text| {
                text.starts_with(b"{\n") && String::from_utf8_lossy(&text).contains("\"to be forgotten\"")
            })
        })
    };
    assert!(has());
    client
        .call::<Delete>(&DeleteParams { conversation: None, agent: Some("atlas".into()), session, own: false })
        .expect("deleted");
    client.call::<Empty>(&EmptyParams::default()).expect("emptied");
    assert_eq!(back_up(&one, &dir).sessions, 0);
    assert!(has(), "a backup deletes nothing by itself");
    let before = objects(&dir).len();
    let raw = chorusctl(&one, ["--json", "backup", path(&dir), "--prune"]).expect_json();
    assert!(raw["pruned_files"].as_u64().is_some_and(|pruned| pruned > 0), "{raw}");
    assert!(!has() && objects(&dir).len() < before);
    verified(&one, &dir);
}
