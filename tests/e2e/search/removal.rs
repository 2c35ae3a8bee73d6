//! Deleted messages leave the index, and its files.

use std::fs;
use std::path::Path;

use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::methods::session::{Delete, DeleteParams, Purge, PurgeParams};
use chorus_proto::methods::trash::{Restore, RestoreParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::wait::DEADLINE;
use chorus_tests::{Daemon, wait_until};

use super::{find, find_nothing};
use crate::home;

/// Returns true if a file of the index contains the word.
fn is_in_files(dir: &Path, word: &str) -> bool {
    let files = fs::read_dir(dir).expect("the index").flatten();
    files
        .filter_map(|file| fs::read(file.path()).ok())
        .any(|bytes| bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes())))
}

#[test]
fn a_purged_session_leaves_no_trace_in_the_files_of_the_index() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "the password is xylophonic");
    let session = client.save("api", "a quagmirish title");
    client.append("api", "something else to keep, marmalade");
    client.save("api", "kept");
    client.call::<Clear>(&ClearParams { agent: Some("api".into()), ..Default::default() }).expect("cleared");
    find(&mut client, "quagmirish");
    find(&mut client, "marmalade");
    let dir = home.path.join("index");
    assert!(is_in_files(&dir, "xylophonic"), "nothing to lose");
    let purge = |client: &mut chorus_proto::Client, session: &str| {
        let params = PurgeParams { agent: Some("api".into()), session: session.into(), ..Default::default() };
        client.call::<Purge>(&params).expect("purged");
    };
    purge(&mut client, &session.header.session_id);
    wait_until("the title gone", DEADLINE, || (!is_in_files(&dir, "quagmirish")).then_some(()));
    // The second session has the message, too.
    assert_eq!(find(&mut client, "xylophonic").len(), 1);
    purge(&mut client, "latest");
    wait_until("the message gone", DEADLINE, || (!is_in_files(&dir, "xylophonic")).then_some(()));
    assert!(!is_in_files(&dir, "marmalade"));
    find_nothing(&mut client, "xylophonic");
}

#[test]
fn a_deleted_session_is_not_found_until_it_is_back() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "about pelicans");
    let session = client.save("api", "birds");
    client.call::<Clear>(&ClearParams { agent: Some("api".into()), ..Default::default() }).expect("cleared");
    find(&mut client, "pelicans");
    let params = DeleteParams { agent: Some("api".into()), session: "latest".into(), ..Default::default() };
    let trash = client.call::<Delete>(&params).expect("deleted").trash.expect("an entry");
    find_nothing(&mut client, "pelicans");
    wait_until("the files", DEADLINE, || (!is_in_files(&home.path.join("index"), "pelican")).then_some(()));
    client.call::<Restore>(&RestoreParams { id: trash }).expect("restored");
    assert_eq!(find(&mut client, "pelicans")[0].session.as_ref().expect("a session").id, session.header.id);
}

#[test]
fn a_destroyed_agent_is_not_found_until_it_is_back() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("api");
    client.append("api", "about ostriches");
    client.save("api", "birds");
    find(&mut client, "ostriches");
    let run = |args: &[&str]| chorus_tests::ctl::chorusctl(&home, args.iter().copied());
    run(&["agent", "destroy", "api", "--yes"]).expect_success();
    find_nothing(&mut client, "ostriches");
    let listed = run(&["trash", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let id = listed["entries"][0]["id"].as_str().expect("an id").to_owned();
    run(&["trash", "restore", &id]).expect_success();
    assert!(!find(&mut client, "ostriches").is_empty());
}
