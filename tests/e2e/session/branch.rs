//! `session branch`: a second line of work, and nothing of the first is touched.

use std::fs;

use chorus_proto::methods::context::{Pin, PinParams};
use chorus_proto::methods::session_branching::BranchParams;
use chorus_proto::{ErrorKind, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use super::{branch, say};
use crate::home;

#[test]
fn the_first_line_stays_and_what_is_unsaved_is_saved_first() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    say(&mut client, &["one", "two"]);
    client
        .call::<Pin>(&PinParams { conversation: None, agent: Some("a".into()), fact: "the port is 80".into() })
        .expect("pinned");
    let first = client.save("a", "first");
    let bytes = fs::read(&first.file_path).expect("the file");
    say(&mut client, &["three"]);
    let done =
        branch(&mut client, "a", "latest", BranchParams { at: Some(1), ..Default::default() }).expect("branched");
    let kept = done.saved_first.expect("saved first");
    assert_eq!((kept.header.trigger, kept.header.message_count), (Trigger::Restore, 3));
    assert_eq!((done.agent.as_str(), done.messages, client.message_texts("a")), ("a", 1, vec!["one".to_owned()]));
    assert_eq!(client.pinned_facts("a"), ["the port is 80"]);
    say(&mut client, &["another way"]);
    let second = client.save("a", "second");
    assert_eq!(second.header.parent_id, Some(first.header.id));
    assert_eq!(fs::read(&first.file_path).expect("the file"), bytes, "the first is as it was");
    assert_eq!(client.get_session("a", &kept.short_id).1.len(), 3);
}

#[test]
fn another_agent_goes_on_with_it_and_keeps_what_it_had() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    say(&mut client, &["one", "two"]);
    let first = client.save("a", "first");
    client.append("b", "of b");
    let there = |name: &str| BranchParams { as_agent: Some(name.into()), ..Default::default() };
    assert_eq!(expect_error_kind(branch(&mut client, "a", "latest", there("nobody"))), ErrorKind::AgentNotFound);
    let done = branch(&mut client, "a", "latest", there("b")).expect("branched");
    assert_eq!(
        (done.agent.as_str(), done.saved_first.map(|session| session.header.agent_name)),
        ("b", Some("b".into()))
    );
    assert_eq!(
        (client.message_texts("a"), client.message_texts("b")),
        (vec!["one".into(), "two".into()], vec!["one".into(), "two".into()])
    );
    client.append("b", "goes on");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.message_texts("b"), ["one", "two", "goes on"], "after a crash, too");
    // The agent whose session it was goes; the other keeps every message.
    chorusctl(&home, ["agent", "destroy", "a", "--purge", "--yes"]).expect_success();
    let saved = client.save("b", "kept");
    assert_eq!((saved.header.message_count, saved.header.parent_id), (3, Some(first.header.id)));
}

#[test]
fn what_cannot_be_branched_from_is_said_and_nothing_changes() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    say(&mut client, &["one"]);
    let first = client.save("a", "first");
    client.append("b", "of b");
    let plain = BranchParams::default;
    assert_eq!(expect_error_kind(branch(&mut client, "a", "nothing", plain())), ErrorKind::SessionNotFound);
    let at = |at| BranchParams { at: Some(at), ..plain() };
    assert_eq!(expect_error_kind(branch(&mut client, "a", "latest", at(5))), ErrorKind::InvalidParams);
    let own = BranchParams { own: true, ..plain() };
    assert_eq!(expect_error_kind(branch(&mut client, "b", &first.short_id, own)), ErrorKind::Denied);
    fs::write(&first.file_path, "no session").expect("written");
    assert_eq!(expect_error_kind(branch(&mut client, "a", &first.short_id, plain())), ErrorKind::CorruptSession);
    fs::remove_file(&first.file_path).expect("removed");
    assert_eq!(expect_error_kind(branch(&mut client, "a", &first.short_id, plain())), ErrorKind::SessionNotFound);
    assert_eq!(
        (client.message_texts("a"), client.message_texts("b")),
        (vec!["one".to_owned()], vec!["of b".to_owned()])
    );
}

#[test]
fn the_command_line_branches() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    say(&mut client, &["one", "two"]);
    client.save("a", "first");
    let said =
        chorusctl(&home, ["--agent", "a", "session", "branch", "latest", "--at", "1", "--as", "b"]).expect_success();
    assert!(said.contains("b: branched from ") && said.contains("at message 1 of 2"), "{said}");
    let value = chorusctl(&home, ["--agent", "a", "session", "branch", "latest", "--json"]).expect_json();
    assert_eq!((value["messages"].as_u64(), value["agent"].as_str()), (Some(2), Some("a")));
    chorusctl(&home, ["--agent", "a", "session", "branch", "latest", "--as", "c"]).expect_failure_with_hint(3);
}
