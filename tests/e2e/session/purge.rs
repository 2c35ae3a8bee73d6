//! `session purge` really forgets.

use std::path::Path;
use std::{fs, io};

use chorus_proto::Client;
use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::ModelServer;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use crate::home;

/// Nothing that anybody else would write.
const SECRET: &str = "the-word-is-xylophone-4711";

/// The warning of a purge that does not wait until its texts are overwritten.
const STILL_ERASING: &str = "may still be in the search index";

/// Files below `folder` that hold the secret.
fn holders(folder: &Path) -> Vec<String> {
    holders_of(folder, SECRET)
}

/// Files below `folder` that hold a text.
fn holders_of(folder: &Path, secret: &str) -> Vec<String> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        // The daemon removes folders while this looks.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return found,
        entries => entries.expect("a folder"),
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(holders_of(&path, secret));
        } else if fs::read(&path)
            .is_ok_and(|bytes| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
        {
            found.push(path.to_string_lossy().into_owned());
        }
    }
    found
}

fn forgotten(home: &Home) {
    let mut left = Vec::new();
    let what = "the secret to be nowhere";
    wait_until(what, DEADLINE, || {
        left = holders(&home.path);
        left.is_empty().then_some(())
    });
}

/// A session that says the secret, and a live context that does not.
fn with_a_secret(daemon: &Daemon) -> Client {
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "before");
    client.append("a", SECRET);
    client.save("a", "A talk");
    client.call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false }).expect("cleared");
    client.append("a", "something else");
    client
}

#[test]
fn nothing_of_it_is_left_in_any_file() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    drop(with_a_secret(&daemon));
    // An orderly stop keeps a copy of the catalog, summary and all.
    assert!(daemon.terminate().success());
    daemon = Daemon::start(&home);
    assert!(!holders(&home.path).is_empty());
    let mut client = daemon.client();
    let session = client.history("a").pop().expect("the session").header;
    chorusctl(&home, ["session", "purge", &session.session_id]).expect_failure_with_hint(6);
    let purged = chorusctl(&home, ["session", "purge", &session.session_id, "--yes"]);
    assert!(!purged.stderr.contains(STILL_ERASING), "nothing else is to do: {purged:?}");
    assert_eq!(holders(&home.path), Vec::<String>::new());
    let said = purged.expect_success();
    assert!(said.starts_with("permanently deleted "), "{said}");
    forgotten(&home);
    assert_eq!(client.message_texts("a"), ["something else"]);
    assert!(client.history("a").iter().all(|other| other.header.id != session.id));
    assert!(daemon.terminate().success());
    let _daemon = Daemon::start(&home);
    assert_eq!(holders(&home.path), Vec::<String>::new());
}

#[test]
fn a_session_in_the_trash_is_forgotten_too() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = with_a_secret(&daemon);
    let delete = DeleteParams { conversation: None, agent: Some("a".into()), session: "latest".into(), own: false };
    let deleted = client.call::<Delete>(&delete).expect("deleted").session.header;
    assert!(!holders(&home.path.join("trash")).is_empty());
    chorusctl(&home, ["session", "purge", &deleted.session_id, "--yes"]).expect_success();
    forgotten(&home);
    chorusctl(&home, ["session", "purge", &deleted.session_id, "--yes"]).expect_failure_with_hint(3);
}

/// What a crash kept from being cleaned is cleaned by the next start.
#[test]
fn a_crash_does_not_keep_anything() {
    let home = home();
    let daemon = Daemon::start(&home);
    drop(with_a_secret(&daemon));
    chorusctl(&home, ["session", "purge", "latest", "--yes"]).expect_success();
    daemon.kill9();
    let _daemon = Daemon::start(&home);
    forgotten(&home);
}

#[test]
fn a_live_context_goes_on_and_is_named() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", SECRET);
    client.save("a", "A talk");
    let said = chorusctl(&home, ["session", "purge", "latest", "--yes"]);
    assert!(said.stderr.contains("live conversation of a"), "{}", said.stderr);
    assert_eq!(client.message_texts("a"), [SECRET]);
    chorusctl(&home, ["context", "clear", "--yes"]).expect_success();
}

#[test]
fn the_answer_of_a_key_is_forgotten_with_it() {
    let (server, home) = (ModelServer::start(), home());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    client.init("a");
    server.anthropic().queue_text([SECRET]);
    let params =
        SendParams { agent: Some("a".into()), text: "Say it.".into(), key: Some("k".into()), ..Default::default() };
    client.call::<Send>(&params).expect("a turn");
    client.save("a", "A talk");
    client.call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false }).expect("cleared");
    chorusctl(&home, ["session", "purge", "latest", "--yes"]).expect_success();
    forgotten(&home);
}

/// While others write, so that the index has something to do all the time.
#[test]
fn a_purge_and_a_scrub_return_once_the_index_has_nothing_of_it() {
    const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("busy");
    let mut finished = 0;
    for round in 0..4 {
        client.append("a", "before");
        client.append("a", &format!("{SECRET} {round}"));
        client.append("a", &format!("the token is {TOKEN}"));
        let session = client.save("a", "A talk").header.session_id;
        client
            .call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false })
            .expect("cleared");
        // It is in the files of the index then.
        let found = chorusctl(&home, ["--agent", "a", "search", "--wait", "xylophone"]).expect_success();
        assert!(found.contains("xylophone"), "{found}");
        for number in 0..20 {
            client.append("busy", &format!("message {number} of round {round}"));
        }
        let scrubbed = chorusctl(&home, ["--agent", "a", "session", "scrub", &session, "--yes"]);
        if !scrubbed.stderr.contains(STILL_ERASING) {
            assert_eq!(holders_of(&home.path, TOKEN), Vec::<String>::new());
            finished += 1;
        }
        scrubbed.expect_success();
        let purged = chorusctl(&home, ["--agent", "a", "session", "purge", "latest", "--yes"]);
        if !purged.stderr.contains(STILL_ERASING) {
            assert_eq!(holders(&home.path), Vec::<String>::new());
            finished += 1;
        }
        purged.expect_success();
    }
    assert!(finished > 0, "each of them has given up");
    let searched = chorusctl(&home, ["doctor", "--secrets"]);
    assert!(searched.stdout.starts_with("no secrets in ") && searched.stderr.is_empty(), "{searched:?}");
}
