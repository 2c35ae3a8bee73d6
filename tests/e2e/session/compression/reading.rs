//! A compressed session is read as it was before.

use std::fs;
use std::process::Command;

use chorus_proto::methods::doctor::{Size, SizeParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{Fixture, fixture, json, zcat};

#[test]
fn what_nobody_uses_is_compressed_and_read_as_before() {
    let Some(of) = fixture() else { return };
    let daemon = of.start_compressed();
    let mut client = daemon.client();
    assert!(zcat(&of.compressed()) == of.text, "gzip reads it");
    let listed = client.history("a");
    assert_eq!(listed[0].file_path, of.compressed().to_string_lossy());
    assert!(listed[0].available && listed[0].corrupt.is_none());
    of.assert_reads(&mut client, "compressed");
    let text = String::from_utf8(of.text.clone()).expect("UTF-8");
    let id = of.id();
    for args in [["session", "cat", &id], ["session", "export", &id]] {
        assert_eq!(chorusctl(&of.home, args).expect_success(), text, "{args:?}");
    }
    let file = of.home.temp_dir().join("out.json");
    chorusctl(&of.home, ["session", "cat", &id, "-o", &*file.to_string_lossy()]).expect_success();
    assert!(fs::read(&file).expect("the file") == of.text);
    let folder = of.home.temp_dir().join("all");
    chorusctl(&of.home, ["session", "export", "--output", &*folder.to_string_lossy()]).expect_success();
    let exported = folder.join(format!("{}.json", of.session.header.session_id));
    assert!(fs::read(exported).expect("the file") == of.text);
    let page = GetParams {
        agent: Some("a".into()),
        session: id.clone(),
        offset: Some(200),
        limit: Some(3),
        ..Default::default()
    };
    assert_eq!(json(&client.call::<Get>(&page).expect("a page").messages), of.messages[200..203]);
    wait_until("the search to find it", DEADLINE, || {
        let found = chorusctl(&of.home, ["search", "\"message 277\"", "--json"]).expect_json();
        (found["hits"].as_array().is_some_and(|hits| hits.len() == 1)).then_some(())
    });
    let restored = client.restore("a", &id);
    assert_eq!(restored.warnings, Vec::<String>::new());
    assert_eq!(json(&client.messages("a")), of.messages);
    assert!(of.compressed().is_file() && !of.plain().exists(), "a restore reads it as it is");
    drop(client);
    assert!(daemon.terminate().success());
    // The live context reads it again.
    let daemon = Daemon::start(&of.home);
    assert_eq!(json(&daemon.client().messages("a")), of.messages);
    chorusctl(&of.home, ["doctor"]).expect_success();
}

#[test]
fn doctor_says_what_compression_saves() {
    let Some(of) = fixture() else { return };
    let daemon = Daemon::start(&of.home);
    let plain = daemon.client().call::<Size>(&SizeParams {}).expect("doctor.size").compression.expect("set");
    assert_eq!((plain.compressed, plain.saved, plain.plain), (0, 0, 1));
    drop(daemon);
    let daemon = of.start_compressed();
    let size = daemon.client().call::<Size>(&SizeParams {}).expect("doctor.size").compression.expect("set");
    assert_eq!((size.compressed, size.plain, size.possible), (1, 0, 0));
    assert!(size.saved >= 4096 && size.saved.abs_diff(plain.possible) <= plain.possible / 4, "{plain:?} {size:?}");
    let said = chorusctl(&of.home, ["doctor", "--size"]).expect_success();
    assert!(said.contains("1 saved conversation is compressed, which saves "), "{said}");
}

/// Starts a daemon on the home after `change`.
fn started(of: &Fixture, change: impl FnOnce()) -> Daemon {
    change();
    Daemon::start(&of.home)
}

#[test]
fn what_another_program_compressed_is_read_too() {
    let Some(of) = fixture() else { return };
    let daemon = started(&of, || {
        assert!(Command::new("gzip").arg("-9").arg(of.plain()).status().expect("gzip").success());
    });
    let mut client = daemon.client();
    wait_until("the file to be indexed", DEADLINE, || {
        (client.history("a")[0].file_path == of.compressed().to_string_lossy()).then_some(())
    });
    of.assert_reads(&mut client, "gzip -9");
    let page = GetParams {
        agent: Some("a".into()),
        session: of.id(),
        offset: Some(200),
        limit: Some(3),
        ..Default::default()
    };
    assert_eq!(json(&client.call::<Get>(&page).expect("a page").messages), of.messages[200..203]);
    assert_eq!(client.restore("a", &of.id()).warnings, Vec::<String>::new());
    assert_eq!(json(&client.messages("a")), of.messages);
    let said = chorusctl(&of.home, ["session", "cat", &of.id()]).expect_success();
    assert_eq!(said.as_bytes(), of.text);
}

#[test]
fn messages_that_somebody_has_changed_are_restored_with_a_warning() {
    let Some(of) = fixture() else { return };
    let text = String::from_utf8(of.text.clone()).expect("UTF-8").replacen("message 7:", "message 8:", 1);
    // Before it is compressed.
    let first = started(&of, || fs::write(of.plain(), &text).expect("written"));
    first.terminate();
    let daemon = of.start_compressed();
    let mut client = daemon.client();
    assert!(zcat(&of.compressed()) == text.as_bytes());
    let warnings = client.restore("a", &of.id()).warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("changed"), "{warnings:?}");
    drop(client);
    assert!(daemon.terminate().success());
    // And after.
    of.home.write_config("");
    let daemon = started(&of, || {
        fs::remove_file(of.compressed()).expect("removed");
        fs::write(of.plain(), &text).expect("written");
        assert!(Command::new("gzip").arg(of.plain()).status().expect("gzip").success());
    });
    let warnings = daemon.client().restore("a", &of.id()).warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("changed"), "{warnings:?}");
}

#[test]
fn a_damaged_one_is_named_and_stays() {
    let Some(of) = fixture() else { return };
    of.start_compressed().terminate();
    let mut bytes = fs::read(of.compressed()).expect("the file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let daemon = started(&of, || fs::write(of.compressed(), &bytes).expect("written"));
    let mut client = daemon.client();
    let listed = wait_until("the damage to be found", DEADLINE, || {
        client.history("a").pop().filter(|session| session.corrupt.is_some())
    });
    assert_eq!(listed.corrupt.as_deref(), Some("is compressed, and damaged: its compressed text is damaged"));
    let said = chorusctl(&of.home, ["restore", &of.id()]);
    assert!(said.stderr.contains("is compressed, and damaged") && said.stderr.contains("hint: "), "{}", said.stderr);
    let said = chorusctl(&of.home, ["session", "tag", &of.id(), "later"]);
    said.expect_failure_with_hint(said.status);
    assert!(fs::read(of.compressed()).expect("the file") == bytes, "it was left as it is");
    assert!(!of.plain().exists());
}
