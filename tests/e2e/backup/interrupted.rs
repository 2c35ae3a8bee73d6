//! A backup that does not come to its end leaves the one before as it was.

use std::fs;

use chorus_proto::Client;
use chorus_proto::methods::backup::{Create, CreateParams};
use chorus_tests::bulk_data::copy_session;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::small_disk::SmallDisk;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{back_up, objects, path, restored, verified};
use crate::home;

#[test]
fn after_a_kill_in_the_middle_the_one_before_is_whole_and_the_next_works() {
    let one = home();
    let mut daemon = Daemon::start(&one);
    daemon.client().init("atlas");
    daemon.client().append("atlas", &"words ".repeat(2000));
    let session = daemon.client().save("atlas", "first").header.session_id;
    let dir = one.temp_dir().join("backup");
    back_up(&one, &dir);
    let first = verified(&one, &dir).created_at;
    for round in 1..=3 {
        copy_session(&one, "atlas", &session, 300 * round);
        fs::write(one.agent_dir("atlas").join("workspace/large"), vec![b'x'; 40 << 20]).expect("a large file");
        let before = objects(&dir).len();
        let client = daemon.client();
        let params = CreateParams { dir: path(&dir).into(), prune: false };
        let asked = std::thread::spawn(move || {
            let mut client: Client = client;
            client.call::<Create>(&params).is_ok()
        });
        wait_until("a part of the backup", DEADLINE, || (objects(&dir).len() > before + 5).then_some(()));
        daemon.kill9();
        assert!(!asked.join().expect("the client"), "it was killed too late");
        assert_eq!(verified(&one, &dir).created_at, first);
        daemon = Daemon::start(&one);
        assert_eq!(daemon.client().message_texts("atlas").len(), 1);
        let leftover = fs::read_dir(one.path.join("db")).expect("db");
        let leftover = leftover.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
        assert_eq!(leftover.count(), 0, "copies of databases have no name");
    }
    let whole = back_up(&one, &dir);
    assert_eq!(whole.sessions, 901);
    assert!(verified(&one, &dir).created_at > first);
    let unfinished = fs::read_dir(dir.join("objects")).expect("objects").flatten();
    assert_eq!(unfinished.filter(|entry| entry.file_name().to_string_lossy().starts_with("new-")).count(), 0);
    let two = restored(&dir);
    let there = Daemon::start(&two);
    let sessions = || there.client().history("atlas").len();
    wait_until("all files to be listed", DEADLINE, || (sessions() == 901).then_some(()));
}

#[test]
fn a_full_disk_is_said_and_leaves_the_one_before() {
    let one = home();
    let daemon = Daemon::start(&one);
    daemon.client().init("atlas");
    daemon.client().append("atlas", "hello");
    let place = one.temp_dir().join("disk");
    fs::create_dir(&place).expect("a directory");
    let Some(disk) = SmallDisk::mount(&place, 4 * 1024) else { return };
    let dir = place.join("backup");
    back_up(&one, &dir);
    let (first, free) = (verified(&one, &dir).created_at, disk.free_bytes());
    fs::write(one.agent_dir("atlas").join("workspace/large"), vec![b'x'; 8 << 20]).expect("a large file");
    let said = chorusctl(&one, ["backup", path(&dir)]).expect_failure_with_hint(1).to_owned();
    assert!(said.contains("not enough disk space for the backup"), "{said}");
    assert_eq!(verified(&one, &dir).created_at, first);
    assert!(disk.free_bytes() + 64 * 1024 >= free, "what was copied in vain is deleted");
    fs::remove_file(one.agent_dir("atlas").join("workspace/large")).expect("it goes");
    back_up(&one, &dir);
    daemon.client().append("atlas", "and on");
    assert_eq!(Daemon::start(&restored(&dir)).client().message_texts("atlas"), ["hello"]);
}
