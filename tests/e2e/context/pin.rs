//! Pinned facts stay with the conversation.

use chorus_proto::methods::context::{Pin, PinParams, Unpin, UnpinParams};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

fn pin(client: &mut Client, fact: &str) -> Vec<String> {
    let params = PinParams { conversation: None, agent: Some("a".into()), fact: fact.into() };
    client.call::<Pin>(&params).expect("pinned").pinned_facts.into_iter().map(|fact| fact.text).collect()
}

#[test]
fn they_survive_crash_save_and_restore_and_clear_drops_them() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    pin(&mut client, "the old column stays");
    let agent = client.agent_status("a");
    assert_eq!(agent.context.and_then(|context| context.idle_deadline_at), None, "pins alone start no timer");
    chorusctl(&home, ["context", "save", "nothing"]).expect_failure_with_hint(5);
    client.append("a", "one");
    assert_eq!(pin(&mut client, "DATEV comes first"), ["the old column stays", "DATEV comes first"]);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.pinned_facts("a"), ["the old column stays", "DATEV comes first"]);
    let session = client.save("a", "with pins");
    assert_eq!(session.header.working_set.pinned_facts.len(), 2);
    chorusctl(&home, ["context", "clear", "--yes"]).expect_success();
    assert!(client.pinned_facts("a").is_empty());
    client.restore("a", "latest");
    assert_eq!(client.pinned_facts("a").len(), 2);
    let unpin = |n| UnpinParams { conversation: None, agent: Some("a".into()), n };
    assert_eq!(expect_error_kind(client.call::<Unpin>(&unpin(3))), ErrorKind::NotFound);
    client.call::<Unpin>(&unpin(1)).expect("unpinned");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().pinned_facts("a"), ["DATEV comes first"]);
}

#[test]
fn those_that_are_younger_than_the_save_are_saved_before_another_conversation_comes() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "another conversation");
    let other = daemon.client().save("a", "another");
    chorusctl(&home, ["context", "clear", "--yes"]).expect_success();
    for crash in [false, true] {
        let mut client = daemon.client();
        client.append("a", "one");
        let saved = client.save("a", "without pins");
        pin(&mut client, "DATEV comes first");
        if crash {
            daemon.kill9();
            daemon = Daemon::start(&home);
        }
        let mut client = daemon.client();
        let first = client.restore("a", &other.header.session_id).saved_first.expect("a session with the pin");
        assert_ne!(first.header.id, saved.header.id);
        assert_eq!(first.header.working_set.pinned_facts[0].text, "DATEV comes first");
        assert!(client.restore("a", &first.header.session_id).saved_first.is_none());
        assert_eq!(client.pinned_facts("a"), ["DATEV comes first"]);
        // Held by a session, it is not saved again.
        assert!(client.restore("a", &other.header.session_id).saved_first.is_none());
    }
}

#[test]
fn the_command_line_pins_lists_and_unpins() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    assert!(
        chorusctl(&home, ["context", "pin", "the old column stays"])
            .expect_success()
            .contains("1  the old column stays")
    );
    chorusctl(&home, ["context", "append", "hello"]).expect_success();
    assert!(chorusctl(&home, ["context", "show"]).expect_success().contains("f1        the old column stays"));
    chorusctl(&home, ["context", "pin", " "]).expect_failure_with_hint(2);
    chorusctl(&home, ["context", "unpin", "1"]).expect_success();
    chorusctl(&home, ["context", "unpin", "1"]).expect_failure_with_hint(3);
}
