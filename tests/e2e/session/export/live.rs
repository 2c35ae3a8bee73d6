//! `@` in an export: the live conversation as it is now.

use std::fs;

use chorus_proto::methods::context::{Rewind, RewindParams};
use chorus_proto::methods::export::{ExportFormat, Read, ReadParams, Select, SelectParams};
use chorus_proto::{ErrorKind, NewMessage, Role, SessionHeader};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::{Output, chorusctl};
use chorus_tests::{Daemon, Home};

use crate::home;

fn export(home: &Home, args: &[&str]) -> Output {
    chorusctl(home, ["export", "@"].iter().chain(args))
}

#[test]
fn what_was_said_since_the_last_save_is_exported_and_nothing_is_saved() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let saved = client.save("a", "Port numbers");
    client.append("a", "two");
    let live = export(&home, &[]).expect_json();
    let texts: Vec<_> = live["messages"].as_array().expect("messages").iter().map(|m| m["content"].clone()).collect();
    assert_eq!(texts, ["one", "two"]);
    let header: SessionHeader = serde_json::from_value(live).expect("a header");
    assert_ne!(header.id, saved.header.id);
    // The name that a save would choose, so that no file of a saved session is overwritten.
    assert!(header.session_id.ends_with("_port-numbers-2"), "{header:?}");
    assert_eq!((header.description.as_deref(), header.message_count), (Some("Port numbers"), 2));
    for (form, text) in [("md", "**Saved:** not yet"), ("html", "<dt>Saved</dt><dd>not yet"), ("jsonl", "\"two\"")] {
        let exported = export(&home, &["--as", form]).expect_success();
        assert!(exported.contains(text) && exported.contains("two"), "{exported}");
    }
    assert_eq!(client.history("a").len(), 1, "nothing was saved");
    assert_eq!(client.agent_status("a").context.expect("a context").unsaved, 1);
    // To files: unchanged as long as nothing is said, and beside the saved one.
    let dir = home.temp_dir().join("out");
    let to = dir.to_str().expect("a path");
    let said = export(&home, &["latest", "--output", to]).expect_success();
    assert!(said.starts_with("exported 2 sessions"), "{said}");
    assert_eq!(fs::read_dir(&dir).expect("the directory").count(), 2);
    assert_eq!(export(&home, &["latest", "--output", to]).expect_success(), "");
    // What was exported can be imported.
    let file = dir.join(format!("{}.json", header.session_id));
    chorusctl(&home, ["import", file.to_str().expect("a path")]).expect_success();
    assert_eq!(client.message_texts("a"), ["one", "two"]);
}

#[test]
fn a_session_that_holds_everything_is_exported_itself() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    expect_empty(&home);
    client.append("a", "one");
    client.append("a", "two");
    let saved = client.save("a", "both");
    assert_eq!(export(&home, &[]).expect_success(), fs::read_to_string(&saved.file_path).expect("the file"));
    // After an undo the session has more than the conversation.
    client.call::<Rewind>(&RewindParams { agent: Some("a".into()), ..RewindParams::default() }).expect("undone");
    let shown = chorusctl(&home, ["show"]).expect_success();
    assert!(shown.contains(", no unsaved messages") && !shown.contains("all saved"), "{shown}");
    let live = export(&home, &["--as", "jsonl"]).expect_success();
    assert_eq!(live.lines().count(), 1, "{live}");
    chorusctl(&home, ["context", "clear", "--yes"]).expect_success();
    expect_empty(&home);
}

fn expect_empty(home: &Home) {
    let refused = export(home, &[]);
    assert!(refused.expect_failure_with_hint(3).contains("is empty"), "{refused:?}");
}

#[test]
fn a_long_one_comes_in_pieces_which_a_new_message_makes_invalid() {
    let home = home();
    let daemon = Daemon::start_with(&home, "max_frame = \"64KiB\"\n");
    let mut client = daemon.client();
    client.init("a");
    let text = "line\n".repeat(10_000);
    client.append_all("a", vec![NewMessage::text(Role::User, &text), NewMessage::text(Role::User, "the end")]);
    let selected = client.call::<Select>(&SelectParams { session: vec!["@".into()], ..SelectParams::default() });
    assert_eq!(selected.expect("selected").sessions[0].file_path, "", "it has no file");
    let first = ReadParams { session: "@".into(), form: ExportFormat::Jsonl, ..ReadParams::default() };
    let piece = client.call::<Read>(&first).expect("a piece");
    let next = ReadParams { offset: piece.next, fingerprint: piece.fingerprint, ..first };
    assert!(client.call::<Read>(&next).expect("the next piece").fingerprint == next.fingerprint);
    let exported = export(&home, &["--as", "jsonl"]).expect_success();
    assert!(exported.lines().count() == 2 && exported.contains("the end"), "{}", exported.len());
    client.append("a", "one more");
    assert_eq!(expect_error_kind(client.call::<Read>(&next)), ErrorKind::Conflict);
}

/// Otherwise what was said since the last save would be missing in what continues from it.
#[test]
fn what_continues_from_the_live_conversation_has_what_was_said_since_its_save() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    client.append("a", "one");
    let first = client.save("a", "first").header;
    client.append("a", "two");
    let diff = chorusctl(&home, ["--agent", "a", "--json", "session", "diff", &first.session_id, "@"]).expect_json();
    assert_eq!((diff["common"].as_u64(), diff["lines"][0]["message"]["content"].as_str()), (Some(1), Some("two")));
    let shown = chorusctl(&home, ["--agent", "a", "--json", "session", "show", "@"]).expect_json();
    assert_eq!(shown["messages"].as_array().map(Vec::len), Some(2));
    assert_eq!(client.history("a").len(), 1);
    let branched = chorusctl(&home, ["--agent", "a", "--json", "session", "branch", "@", "--as", "b"]).expect_json();
    assert_eq!(branched["saved_first"]["message_count"], 2, "{branched}");
    assert_eq!(client.message_texts("b"), ["one", "two"]);
    client.append("a", "three");
    let resumed = chorusctl(&home, ["--agent", "a", "--json", "resume", "@"]).expect_json();
    assert_eq!(resumed["session"]["message_count"], 3, "{resumed}");
    assert_eq!(resumed["saved_first"]["id"], resumed["session"]["id"]);
}
