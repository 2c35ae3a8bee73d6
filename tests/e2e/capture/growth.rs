//! A conversation is kept while it is held; nothing that was kept goes because its source went.

use std::fs;
use std::time::{Duration, Instant};

use chorus_proto::methods::search::{Search, SearchParams};
use chorus_tests::Daemon;

use super::*;

#[test]
fn what_is_written_is_kept_and_found_while_the_conversation_goes_on() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    chorusctl(&home, ["capture", "on", "claude-code"]).expect_success();
    // The directory did not exist when capture was turned on.
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("why is checkout slow");
    let first = wait_until_kept(&mut client, &talk);
    for n in 0..20 {
        talk.say(&format!("message {n} about gooseberries"));
    }
    let after = wait_until_kept(&mut client, &talk);
    assert_eq!(after.header.id, first.header.id, "the conversation grows in place");
    let said = Instant::now();
    talk.say("the quetzal flies");
    let params = SearchParams { query: "quetzal".into(), all_agents: true, ..SearchParams::default() };
    wait_until("the message in the index", DEADLINE, || {
        let found = client.call::<Search>(&params).expect("a search");
        (!found.hits.is_empty()).then_some(())
    });
    let took = said.elapsed();
    assert!(took < Duration::from_secs(5), "found after {took:?}");
}

#[test]
fn a_torn_line_waits_until_it_is_complete() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("one");
    let line = talk.next_line("two");
    let (begin, end) = line.split_at(line.len() / 2);
    append(&talk.path, begin);
    chorusctl(&home, ["capture", "on"]).expect_success();
    let session = wait_until_kept(&mut client, &talk);
    assert_eq!(kept(&session), ["one"]);
    let status = status_of(&mut client, "claude-code");
    assert_eq!((status.skipped_lines, status.failed), (0, 0), "{status:?}");
    append(&talk.path, end);
    assert_eq!(kept(&wait_until_kept(&mut client, &talk)), ["one", "two"]);
}

#[test]
fn a_rewritten_transcript_is_a_revision_and_a_deleted_one_changes_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("one");
    talk.say("two");
    chorusctl(&home, ["capture", "on"]).expect_success();
    let before = wait_until_kept(&mut client, &talk);
    talk.lines = 0;
    let changed = [talk.next_line("one, rewritten"), talk.next_line("another reply")].concat();
    fs::write(&talk.path, changed).expect("rewritten");
    let after = wait_until_kept(&mut client, &talk);
    assert_ne!(after.header.id, before.header.id);
    assert_eq!(after.header.source.as_ref().expect("a source").revision, 2);
    fs::remove_dir_all(home.user_home.join(".claude")).expect("removed");
    let mut other = Transcript::claude_code(&home, "/home/mara/shop", "bbbbbbbb");
    other.say("another conversation");
    wait_until_kept(&mut client, &other);
    assert_eq!((kept(&before), kept(&after).len()), (vec!["one".to_owned(), "two".to_owned()], 2));
    assert_eq!(captured(&mut client).len(), 3);
}

#[test]
fn after_a_restart_it_continues_with_what_was_written_meanwhile() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("one");
    chorusctl(&home, ["capture", "on"]).expect_success();
    daemon.terminate();
    talk.say("two");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until_kept(&mut client, &talk);
    assert_eq!(captured(&mut client).len(), 1);
}
