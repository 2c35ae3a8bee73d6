//! `context compact --undo` of a compaction by hand.

use chorus_proto::methods::context::{Rewind, RewindParams};
use chorus_proto::methods::continuation::{Compact, CompactParams, CompactResult};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::{CallError, Client, ErrorKind, Message};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

fn compact(client: &mut Client, undo: bool) -> Result<CompactResult, CallError> {
    client.call::<Compact>(&CompactParams { conversation: None, agent: Some("a".into()), undo })
}

fn lines(messages: &[Message]) -> String {
    serde_json::to_string(messages).expect("serialises")
}

#[test]
fn the_saved_messages_are_live_again_and_what_was_said_since_is_behind_them() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    for crash in [false, true] {
        let mut client = daemon.client();
        if !crash {
            client.init("a");
        }
        let texts = ["one", "two", "three"];
        for text in texts {
            client.append("a", text);
        }
        let before = client.messages("a");
        let saved = compact(&mut client, false).expect("compacted").session.expect("a session");
        client.append("a", "four");
        client.append("a", "five");
        if crash {
            daemon.kill9();
            daemon = Daemon::start(&home);
        }
        let mut client = daemon.client();
        let undone = compact(&mut client, true).expect("undone");
        assert_eq!(undone.session.expect("the session").header.id, saved.header.id);
        assert_eq!((undone.messages, undone.receipt.left), (before.len() as u64 + 2, before.len() as u64));
        for _ in 0..2 {
            let messages = client.messages("a");
            let (first, since) = messages.split_at(before.len());
            assert_eq!(lines(first), lines(&before));
            assert!(since.iter().map(|said| &*said.content).eq(["four", "five"]), "{messages:?}");
            let context = client.agent_status("a").context.expect("a context");
            assert_eq!((context.unsaved, context.parent_id), (2, Some(saved.header.id)));
            daemon.kill9();
            daemon = Daemon::start(&home);
            client = daemon.client();
        }
        assert_eq!(expect_error_kind(compact(&mut client, true)), ErrorKind::Denied, "it is undone");
        // A rewind reaches into what was compacted.
        client
            .call::<Rewind>(&RewindParams { conversation: None, agent: Some("a".into()), n: Some(3), undo: false })
            .expect("rewound");
        assert_eq!(client.messages("a").len(), before.len() - 1);
        chorusctl(&home, ["context", "clear", "--yes"]).expect_success();
    }
}

#[test]
fn a_session_that_is_gone_is_named_and_nothing_changes() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let saved = compact(&mut client, false).expect("compacted").session.expect("a session");
    client.append("a", "two");
    let before = client.messages("a");
    let params = DeleteParams { agent: Some("a".into()), session: saved.short_id, ..Default::default() };
    client.call::<Delete>(&params).expect("session.delete");
    assert_eq!(expect_error_kind(compact(&mut client, true)), ErrorKind::SessionNotFound);
    chorusctl(&home, ["context", "compact", "--undo"]).expect_failure_with_hint(3);
    assert_eq!(lines(&client.messages("a")), lines(&before));
    let trashed = chorusctl(&home, ["trash", "list", "--json"]).expect_success();
    let trashed: serde_json::Value = serde_json::from_str(&trashed).expect("JSON");
    let id = trashed["entries"][0]["id"].as_str().expect("an id");
    chorusctl(&home, ["trash", "restore", id]).expect_success();
    let undone = chorusctl(&home, ["context", "compact", "--undo"]).expect_success();
    assert!(undone.contains("1 message") && undone.contains("followed by 1 message since then"), "{undone}");
    assert_eq!(client.message_texts("a"), ["one", "two"]);
}
