//! The places that a backup may go to, and those that one may be restored to.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use super::{back_up, path, restored};
use crate::home;

#[test]
fn a_backup_goes_into_a_private_directory_of_its_own_outside_the_home() {
    let one = home();
    let daemon = Daemon::start(&one);
    daemon.client().init("atlas");
    let inside = one.path.join("backup");
    assert!(chorusctl(&one, ["backup", path(&inside)]).expect_failure_with_hint(6).contains("overlaps with"));
    assert!(chorusctl(&one, ["backup", path(&one.path)]).expect_failure_with_hint(6).contains("overlaps with"));
    assert!(!inside.exists());
    chorusctl(&one, ["backup", path(&one.temp_dir().join("home/../home/agents"))]).expect_failure_with_hint(6);
    let other = one.temp_dir().join("other");
    fs::create_dir(&other).expect("a directory");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o770)).expect("its mode");
    assert!(chorusctl(&one, ["backup", path(&other)]).expect_failure_with_hint(6).contains("mode 0770"));
    fs::set_permissions(&other, fs::Permissions::from_mode(0o700)).expect("its mode");
    fs::write(other.join("mine.txt"), "mine").expect("a file");
    assert!(chorusctl(&one, ["backup", path(&other)]).expect_failure_with_hint(6).contains("not empty"));
    assert_eq!(fs::read_dir(&other).expect("it").count(), 1, "nothing was written");
    let missing = one.temp_dir().join("no/such/parent");
    chorusctl(&one, ["backup", path(&missing)]).expect_success();
    for made in [&*missing, missing.parent().expect("a parent"), &one.temp_dir().join("no")] {
        assert_eq!(fs::metadata(made).expect("it was made").permissions().mode() & 0o777, 0o700);
    }
    chorusctl(&one, ["backup", "-", "--prune"]).expect_failure_with_hint(2);
    chorusctl(&one, ["--no-autostart", "--socket", "/nowhere", "backup", path(&other)]).expect_failure_with_hint(4);
    // A relative path is one of the command, not of the daemon.
    chorusctl(&one, ["backup", "mine"]).expect_success();
    assert!(one.user_home.join("mine/manifest.jsonl").is_file());
}

#[test]
fn a_restore_goes_into_an_empty_home_only() {
    let one = home();
    let daemon = Daemon::start(&one);
    daemon.client().init("atlas");
    daemon.client().append("atlas", "hello");
    let dir = one.temp_dir().join("backup");
    back_up(&one, &dir);
    let said = chorusctl(&one, ["backup", "restore", path(&dir)]).expect_failure_with_hint(7).to_owned();
    assert!(said.contains("is not empty"), "{said}");
    daemon.terminate();
    chorusctl(&one, ["backup", "restore", path(&dir)]).expect_failure_with_hint(7);
    chorusctl(&one, ["backup", "restore", "/no/such/backup"]).expect_failure(7);
    let other = home();
    for command in ["verify", "restore"] {
        chorusctl(&other, ["backup", command, "/no/such/backup"]).expect_failure_with_hint(3);
        let said = chorusctl(&other, ["backup", command, "/etc/passwd"]).expect_failure_with_hint(1).to_owned();
        assert!(said.contains("not a Chorus backup: /etc/passwd") && !said.contains("root:"), "{said}");
        let compressed = other.temp_dir().join("backup.tgz");
        fs::write(&compressed, b"\x1f\x8b\x08\x00").expect("a file");
        let said = chorusctl(&other, ["backup", command, path(&compressed)]).expect_failure_with_hint(2).to_owned();
        assert!(said.contains("is compressed (gzip)"), "{said}");
        chorusctl(&other, ["backup", command, path(&one.user_home)]).expect_failure_with_hint(3);
    }
    let file = other.temp_dir().join("file");
    fs::write(&file, "mine").expect("a file");
    let said = chorusctl(&other, ["backup", "restore", path(&dir), "--home", path(&file)])
        .expect_failure_with_hint(7)
        .to_owned();
    assert!(said.contains("is not a directory"), "{said}");
    // The files that a daemon that could not start leaves, or a restore that was cut off, count as nothing.
    fs::create_dir_all(other.path.join(".restore/agents/atlas")).expect("directories");
    fs::create_dir_all(other.path.join("agents")).expect("directories");
    fs::create_dir_all(other.path.join("log")).expect("directories");
    fs::set_permissions(&other.path, fs::Permissions::from_mode(0o700)).expect("its mode");
    fs::write(other.path.join("log/chorusd.log"), "failed\n").expect("a log");
    let said = chorusctl(&other, ["status"]).expect_failure_with_hint(6).to_owned();
    assert!(said.contains("is incomplete"), "no daemon starts in half a home: {said}");
    chorusctl(&other, ["backup", "restore", path(&dir)]).expect_success();
    assert!(!other.path.join(".restore").exists());
    assert_eq!(Daemon::start(&other).client().message_texts("atlas"), ["hello"]);
    assert_eq!(Daemon::start(&restored(&dir)).client().message_texts("atlas"), ["hello"]);
}
