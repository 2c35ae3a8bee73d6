//! Compressed sessions in backups, archives, other agents' directories and a catalog that is built again.

use std::fs;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{CONFIG, Fixture, fixture, home, json};

#[test]
fn a_backup_has_it_and_says_if_it_is_whole() {
    let Some(of) = fixture() else { return };
    let daemon = of.start_compressed();
    let backup = of.home.temp_dir().join("backup").to_string_lossy().into_owned();
    let target = of.home.temp_dir().join("other").to_string_lossy().into_owned();
    let made = chorusctl(&of.home, ["backup", &backup, "--json"]).expect_json();
    assert_eq!(made["sessions"], 1, "{made}");
    let verified = chorusctl(&of.home, ["backup", "verify", &backup, "--json"]).expect_json();
    assert_eq!((&verified["ok"], &verified["sessions"]), (&true.into(), &1.into()), "{verified}");
    assert_eq!(verified["warnings"].as_array().map(Vec::len), Some(0), "{verified}");
    chorusctl(&of.home, ["backup", "restore", &backup, "--home", &target]).expect_success();
    let name = format!("agents/a/sessions/{}.json.gz", of.session.header.session_id);
    let restored = fs::read(std::path::Path::new(&target).join(name)).expect("the file");
    assert!(restored == fs::read(of.compressed()).expect("the file"));
    drop(daemon);
}

#[test]
fn an_archive_of_an_agent_has_it_as_every_version_reads_it() {
    let Some(of) = fixture() else { return };
    let daemon = of.start_compressed();
    let archive = of.home.temp_dir().join("a.agent.tar").to_string_lossy().into_owned();
    chorusctl(&of.home, ["agent", "export", "a", "--output", &archive]).expect_success();
    assert!(of.compressed().is_file());
    let other = home();
    let there = Daemon::start(&other);
    let said = chorusctl(&other, ["agent", "import", &archive]).expect_success();
    assert!(said.contains("1 session"), "{said}");
    let file = other.sessions_dir("a").join(format!("{}.json", of.session.header.session_id));
    assert!(fs::read(file).expect("the file") == of.text);
    assert_eq!(json(&there.client().get_session("a", &of.id()).1), of.messages);
    drop(daemon);
}

#[test]
fn it_moves_with_its_agent_into_the_trash_and_back() {
    let Some(of) = fixture() else { return };
    let daemon = of.start_compressed();
    let mut client = daemon.client();
    chorusctl(&of.home, ["agent", "config", "a", "name", "b"]).expect_success();
    assert_eq!(json(&client.get_session("b", &of.id()).1), of.messages);
    chorusctl(&of.home, ["agent", "destroy", "b", "--yes"]).expect_success();
    chorusctl(&of.home, ["trash", "restore", "b"]).expect_success();
    let listed = client.history("b");
    assert!(listed[0].available && listed[0].file_path.ends_with(".json.gz"), "{listed:?}");
    assert_eq!(json(&client.get_session("b", &of.id()).1), of.messages);
    chorusctl(&of.home, ["doctor"]).expect_success();
}

/// Deletes the catalog of a stopped home.
fn delete_catalog(of: &Fixture) {
    for name in ["chorus.db", "chorus.db.bak", "chorus.db-wal", "chorus.db-shm"] {
        let _ = fs::remove_file(of.home.path.join("db").join(name));
    }
}

#[test]
fn a_catalog_that_is_built_again_has_it() {
    let Some(of) = fixture() else { return };
    of.start_compressed().terminate();
    of.home.write_config("");
    delete_catalog(&of);
    let rebuilt = chorusctl(&of.home, ["doctor", "--rebuild", "--json"]).expect_json();
    assert_eq!((&rebuilt["rebuilt"]["sessions"], &rebuilt["rebuilt"]["corrupt"]), (&1.into(), &0.into()), "{rebuilt}");
    let daemon = Daemon::start(&of.home);
    of.assert_reads(&mut daemon.client(), "after doctor --rebuild");
    daemon.terminate();
    // A start finds it, too.
    delete_catalog(&of);
    let daemon = Daemon::start(&of.home);
    let mut client = daemon.client();
    wait_until("the session to be found", DEADLINE, || (client.history("a").len() == 1).then_some(()));
    of.assert_reads(&mut client, "after a start without a catalog");
    assert_eq!(client.restore("a", &of.id()).warnings, Vec::<String>::new());
    chorusctl(&of.home, ["doctor"]).expect_success();
}

#[test]
fn of_two_files_the_plain_one_counts() {
    let Some(of) = fixture() else { return };
    of.start_compressed().terminate();
    of.home.write_config("");
    fs::write(of.plain(), &of.text).expect("written");
    let daemon = Daemon::start(&of.home);
    let mut client = daemon.client();
    wait_until("the compressed one to be deleted", DEADLINE, || (!of.compressed().exists()).then_some(()));
    wait_until("the plain one to be indexed", DEADLINE, || {
        (client.history("a")[0].file_path == of.plain().to_string_lossy()).then_some(())
    });
    of.assert_reads(&mut client, "both");
    assert_eq!(client.history("a").len(), 1);
    assert_eq!(client.restore("a", &of.id()).warnings, Vec::<String>::new());
}

#[test]
fn a_name_that_a_compressed_one_has_is_taken() {
    let Some(of) = fixture() else { return };
    of.start_compressed().terminate();
    of.home.write_config(CONFIG);
    // Without the catalog, only the file says that the name is taken.
    let daemon = Daemon::start(&of.home);
    let mut client = daemon.client();
    let name = of.session.header.session_id.clone();
    fs::copy(of.compressed(), of.home.sessions_dir("a").join("2020-09-13_another.json.gz")).expect("copied");
    client.append("a", "again");
    let saved = client.save("a", "the long one");
    assert_ne!(saved.header.session_id, name);
    assert!(of.compressed().is_file());
    of.assert_reads(&mut client, "beside another of its name");
}
