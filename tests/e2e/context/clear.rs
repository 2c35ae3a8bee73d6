//! `context clear`: says what went, and asks first.

use chorus_proto::Trigger;
use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use crate::home;

#[test]
fn it_says_how_many_messages_went() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.append("a", "two");
    let params = ClearParams { conversation: None, agent: Some("a".into()), save: false };
    let cleared = client.call::<Clear>(&params).expect("cleared");
    assert_eq!((cleared.discarded, cleared.saved), (2, None));
    assert_eq!(client.history("a"), [], "discarded means discarded");
    let again = client.call::<Clear>(&params).expect("nothing to clear is no error");
    assert_eq!(again.discarded, 0);
    client.append("a", "three");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), ["three"]);
}

#[test]
fn it_may_save_first() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let cleared = client
        .call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: true })
        .expect("cleared");
    let saved = cleared.saved.expect("a session");
    assert_eq!((saved.header.trigger, saved.header.message_count), (Trigger::ContextClear, 1));
    assert_eq!(client.message_texts("a"), Vec::<String>::new());
    assert_eq!(client.history("a"), [saved]);
}

#[test]
fn pins_go_with_it_and_are_told() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    chorusctl(&home, ["context", "pin", "the old column stays"]).expect_success();
    chorusctl(&home, ["context", "clear"]).expect_failure_with_hint(6);
    let said = chorusctl(&home, ["context", "clear", "--yes"]).expect_success();
    assert!(said.contains("discarded 1 pinned fact"), "{said}");
    let said = chorusctl(&home, ["context", "clear", "--yes"]).expect_success();
    assert!(said.contains("already empty"), "{said}");
}

#[test]
fn without_a_terminal_it_wants_a_yes() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    chorusctl(&home, ["context", "clear"]).expect_failure_with_hint(6);
    assert_eq!(client.message_texts("a"), ["one"]);
    let said = chorusctl(&home, ["--json", "context", "clear", "--yes"]).expect_json();
    assert_eq!(said["discarded"], 1);
    assert_eq!(client.message_texts("a"), Vec::<String>::new());
}
