//! The last turns can be taken back, and brought back.

use chorus_proto::methods::context::{Rewind, RewindParams};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::{ErrorKind, NewMessage, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

#[test]
fn turns_go_and_come_back_over_a_crash_too() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let talk = [(Role::User, "q1"), (Role::Assistant, "a1"), (Role::User, "q2"), (Role::Assistant, "a2")];
    client.append_all("a", talk.map(|(role, text)| NewMessage::text(role, text)).into());
    client.save("a", "all four");
    let rewind = |n, undo| RewindParams { conversation: None, agent: Some("a".into()), n, undo };
    let result = client.call::<Rewind>(&rewind(None, false)).expect("rewound");
    assert_eq!((result.moved, result.messages), (2, 2));
    assert_eq!(client.message_texts("a"), ["q1", "a1"]);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.message_texts("a"), ["q1", "a1"]);
    client.call::<Rewind>(&rewind(None, true)).expect("undone");
    assert_eq!(client.message_texts("a"), ["q1", "a1", "q2", "a2"]);
    assert_eq!(client.agent_status("a").context.expect("live").unsaved, 0);
    client.call::<Rewind>(&rewind(Some(2), false)).expect("rewound");
    assert!(client.message_texts("a").is_empty());
    client.append("a", "another beginning");
    assert_eq!(expect_error_kind(client.call::<Rewind>(&rewind(None, true))), ErrorKind::Denied);
    assert_eq!(client.agent_status("a").context.expect("live").unsaved, 1);
    daemon.terminate();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.message_texts("a"), ["another beginning"]);
    assert_eq!(client.get_session("a", "latest").1.len(), 1, "the stop saved what was there");
}

#[test]
fn what_comes_back_after_a_save_is_unsaved_over_a_crash_too() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append_all("a", ["one", "two"].map(|text| NewMessage::text(Role::User, text)).into());
    client.save("a", "both");
    let rewind = |undo| RewindParams { conversation: None, agent: Some("a".into()), n: None, undo };
    client.call::<Rewind>(&rewind(false)).expect("rewound");
    client.save("a", "only the first");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.call::<Rewind>(&rewind(true)).expect("undone");
    assert_eq!(client.message_texts("a"), ["one", "two"]);
    // The session that the context was saved in last lacks the second message.
    assert_eq!(client.agent_status("a").context.expect("live").unsaved, 1);
}

#[test]
fn the_command_line_rewinds() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    chorusctl(&home, ["context", "rewind"]).expect_failure_with_hint(5);
    chorusctl(&home, ["context", "append", "one"]).expect_success();
    chorusctl(&home, ["context", "rewind", "2"]).expect_failure_with_hint(2);
    assert!(chorusctl(&home, ["context", "rewind"]).expect_success().contains("removed the last 1 message (0 left)"));
    chorusctl(&home, ["context", "rewind", "--undo"]).expect_success();
    chorusctl(&home, ["context", "rewind", "--undo"]).expect_failure_with_hint(6);
    let events = chorusctl(&home, ["events"]).expect_success();
    let at = |text: &str| events.find(text).unwrap_or_else(|| panic!("{text:?} is not in {events}"));
    assert!(at("undo: removed 1 message (0 total)") < at("undo: restored 1 message (1 total)"));
}

/// A save in between holds less: what comes back after it is in no session that the context counts on.
#[test]
fn what_comes_back_after_a_save_counts_as_unsaved_over_a_crash_too() {
    for crash in [false, true] {
        let home = home();
        let mut daemon = Daemon::start(&home);
        let mut client = daemon.client();
        client.init("a");
        for text in ["one", "two", "three"] {
            client.append("a", text);
        }
        let first = client.save("a", "all three");
        let rewind = |undo| RewindParams { conversation: None, agent: Some("a".into()), n: None, undo };
        client.call::<Rewind>(&rewind(false)).expect("rewound");
        client.save("a", "two of them");
        if crash {
            daemon.kill9();
            daemon = Daemon::start(&home);
            client = daemon.client();
        }
        client.call::<Rewind>(&rewind(true)).expect("undone");
        assert_eq!(client.agent_status("a").context.expect("live").unsaved, 1, "after a crash: {crash}");
        let delete = DeleteParams { agent: Some("a".into()), session: first.short_id, ..Default::default() };
        client.call::<Delete>(&delete).expect("deleted");
        assert!(daemon.terminate().success());
        let daemon = Daemon::start(&home);
        assert_eq!(daemon.client().get_session("a", "latest").1.len(), 3, "the stop saved all of it");
    }
}
