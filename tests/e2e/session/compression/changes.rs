//! A change of a compressed session makes its file plain again; a deletion leaves nothing.

use std::fs;

use chorus_proto::methods::import::{ImportFormat, ImportOutcome};
use chorus_proto::methods::session::{Purge, PurgeParams, Scrub, ScrubParams, Tag, TagParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::import::import_transcript;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{CONFIG, fixture, home, json, stop_for_long};

#[test]
fn a_tag_makes_it_plain_and_nothing_else_changes() {
    let Some(of) = fixture() else { return };
    let daemon = of.start_compressed();
    let mut client = daemon.client();
    let tag = |tag: &str| TagParams {
        agent: Some("a".into()),
        session: of.id(),
        tag: vec![tag.into()],
        ..Default::default()
    };
    let tagged = client.call::<Tag>(&tag("later")).expect("tagged").session;
    assert_eq!(
        (tagged.file_path.as_str(), tagged.header.tags),
        (&*of.plain().to_string_lossy(), vec!["later".to_owned()])
    );
    assert!(!of.compressed().exists());
    let text = String::from_utf8(of.text.clone()).expect("UTF-8").replacen("\"tags\": []", "\"tags\": [\"later\"]", 1);
    assert_eq!(fs::read_to_string(of.plain()).expect("the file"), text);
    assert_eq!(json(&client.get_session("a", &of.id()).1), of.messages);
    assert_eq!(client.restore("a", &of.id()).warnings, Vec::<String>::new());
    chorusctl(&of.home, ["doctor"]).expect_success();
}

#[test]
fn of_two_files_with_different_texts_none_is_deleted() {
    let Some(of) = fixture() else { return };
    let daemon = of.start_compressed();
    let packed = fs::read(of.compressed()).expect("the file");
    // As `session cat NAME >NAME.json` leaves it on a full disk.
    fs::write(of.plain(), &of.text[..of.text.len() / 2]).expect("half a file");
    let tag = || TagParams { agent: Some("a".into()), session: of.id(), tag: vec!["x".into()], ..Default::default() };
    let refused = daemon.client().call::<Tag>(&tag()).expect_err("refused");
    assert!(refused.to_string().contains("with different texts"), "{refused}");
    let refused = chorusctl(&of.home, ["session", "purge", &of.id(), "--agent", "a", "--yes"]);
    assert!(refused.status != 0 && refused.stderr.contains("zcat"), "{refused:?}");
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&of.home);
    chorusctl(&of.home, ["doctor"]);
    assert_eq!(fs::read(of.compressed()).expect("the file"), packed);
    assert_eq!(fs::read(of.plain()).expect("the file").len(), of.text.len() / 2);
    fs::remove_file(of.plain()).expect("moved away");
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&of.home);
    wait_until("the file to be read again", DEADLINE, || of.is_indexed().then_some(()));
    of.assert_reads(&mut daemon.client(), "after the wrong one is away");
}

fn transcript(messages: usize) -> String {
    let line = |n: usize| {
        let parent = n.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"u{parent}\""));
        let text = format!("message {n} {}", "of many ".repeat(200));
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u{n}\",\"parentUuid\":{parent},\"sessionId\":\"7d444840-9dc0-41d1-b245-5ffdce74fad2\",\
             \"timestamp\":\"2020-01-02T03:0{n}:00Z\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
        )
    };
    (0..messages).map(line).collect()
}

#[test]
fn a_conversation_that_continues_grows_in_a_plain_file() {
    let home = home();
    if home.database_url().is_some() {
        return;
    }
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let import = |client: &mut chorus_proto::Client, messages| {
        let result = import_transcript(client, "a", ImportFormat::ClaudeCode, &transcript(messages), 100_000);
        result.expect("imported").conversations[0].outcome
    };
    assert_eq!(import(&mut client, 6), ImportOutcome::New);
    let before = client.history("a").pop().expect("a session");
    stop_for_long(&home, daemon);
    home.write_config(CONFIG);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let compressed = format!("{}.gz", before.file_path);
    let is_compressed =
        |client: &mut chorus_proto::Client| (client.history("a")[0].file_path == compressed).then_some(());
    wait_until("the session to be compressed", DEADLINE, || is_compressed(&mut client));
    // Nothing new changes nothing.
    assert_eq!(import(&mut client, 6), ImportOutcome::UpToDate);
    assert!(is_compressed(&mut client).is_some());
    assert_eq!(import(&mut client, 8), ImportOutcome::Grown);
    let grown = client.history("a").pop().expect("a session");
    assert_eq!((grown.header.id, &grown.file_path), (before.header.id, &before.file_path));
    assert!(!fs::exists(&compressed).expect("a look"));
    assert_eq!(client.get_session("a", &grown.header.id.to_string()).1.len(), 8);
    assert_eq!(client.history("a").len(), 1);
}

#[test]
fn a_scrubbed_one_is_a_copy_without_secrets() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let home = home();
    if home.database_url().is_some() {
        return;
    }
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", &format!("the token is {secret}"));
    let session = super::put_aside(&mut client, "with a token", 100);
    stop_for_long(&home, daemon);
    home.write_config(CONFIG);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until("the session to be compressed", DEADLINE, || {
        client.history("a")[0].file_path.ends_with(".json.gz").then_some(())
    });
    let found = chorusctl(&home, ["doctor", "--secrets"]);
    assert!(found.stdout.contains(&session.short_id) || found.stdout.contains("with a token"), "{}", found.stdout);
    let params = ScrubParams { agent: Some("a".into()), session: session.header.id.to_string(), ..Default::default() };
    let done = client.call::<Scrub>(&params).expect("scrubbed");
    assert_eq!(done.messages, 1);
    let files: Vec<_> =
        fs::read_dir(home.sessions_dir("a")).expect("sessions").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(!fs::read_to_string(&files[0]).expect("a plain file").contains(secret));
}

#[test]
fn the_trash_keeps_it_as_it_is_and_a_purge_leaves_nothing() {
    let Some(of) = fixture() else { return };
    let daemon = of.start_compressed();
    let mut client = daemon.client();
    let before = fs::read(of.compressed()).expect("the file");
    chorusctl(&of.home, ["rm", &of.id()]).expect_success();
    assert!(!of.compressed().exists() && client.history("a").is_empty());
    let entries = chorusctl(&of.home, ["trash", "list", "--json"]).expect_json();
    let entry = entries["entries"][0]["id"].as_str().expect("an entry").to_owned();
    chorusctl(&of.home, ["trash", "restore", &entry]).expect_success();
    assert!(fs::read(of.compressed()).expect("the file") == before && !of.plain().exists());
    of.assert_reads(&mut client, "from the trash");
    chorusctl(&of.home, ["rm", &of.id()]).expect_success();
    // A start completes nothing that is complete.
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&of.home);
    let mut client = daemon.client();
    chorusctl(&of.home, ["trash", "restore", &of.session.header.session_id]).expect_success();
    of.assert_reads(&mut client, "after a start");
    let params = PurgeParams { agent: Some("a".into()), session: of.id(), ..Default::default() };
    client.call::<Purge>(&params).expect("purged");
    assert_eq!(fs::read_dir(of.home.sessions_dir("a")).expect("sessions").count(), 0);
    assert_eq!(fs::read_dir(of.home.path.join("trash")).map_or(0, Iterator::count), 0);
}
