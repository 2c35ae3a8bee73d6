//! `context save`: a checkpoint, durable before it is answered.

use chorus_proto::methods::context::{Save, SaveParams, Show, ShowParams};
use chorus_proto::{ErrorKind, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

#[test]
fn the_context_goes_on_after_a_save() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let first = client.save("a", "first");
    client.append("a", "two");
    let second = client.save("a", "second");
    assert_eq!((first.header.message_count, second.header.message_count), (1, 2));
    assert_eq!(client.message_texts("a"), ["one", "two"]);
    assert_eq!(first.header.started_at, second.header.started_at);
    assert_eq!(client.get_session("a", &first.short_id).1.len(), 1);
    let third = client.save("a", "second");
    assert_ne!(third.header.id, second.header.id, "an explicit save always writes");
}

#[test]
fn a_save_may_clear() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let params =
        SaveParams { agent: Some("a".into()), clear: true, tag: vec!["x".into(), "y".into()], ..Default::default() };
    let saved = client.call::<Save>(&params).expect("saved");
    assert!(saved.cleared);
    assert_eq!(saved.session.header.tags, ["x", "y"]);
    assert_eq!(client.message_texts("a"), Vec::<String>::new());
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), Vec::<String>::new(), "after a crash too");
    client = daemon.client();
    let context = client.call::<Show>(&ShowParams { agent: Some("a".into()), ..Default::default() }).expect("shown");
    assert!(context.context.is_none());
}

#[test]
fn an_empty_context_is_nothing_to_save() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let params = SaveParams { agent: Some("a".into()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Save>(&params)), ErrorKind::NothingToSave);
    chorusctl(&home, ["context", "save"]).expect_failure_with_hint(5);
    assert_eq!(client.history("a"), []);
}

#[test]
fn a_saved_session_survives_a_crash_with_everything_it_said() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let saved = client.save("a", "kept");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let (again, messages) = daemon.client().get_session("a", &saved.header.id.to_string());
    assert_eq!(again, saved);
    assert_eq!(messages.len(), 1);
}

#[test]
fn the_command_line_saves_with_description_and_tags() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let said = chorusctl(&home, ["--json", "context", "save", "My words", "--tag", "x", "--tag", "y"]).expect_json();
    assert_eq!(said["session"]["description"], "My words");
    assert_eq!(said["session"]["tags"], serde_json::json!(["x", "y"]));
    assert_eq!(said["cleared"], false);
    let text = chorusctl(&home, ["context", "save", "Again", "--clear"]).expect_success();
    let session = client.history("a").remove(0);
    assert!(text.contains(&session.short_id), "{text}");
    assert_eq!(session.header.trigger, Trigger::ManualSave);
    assert_eq!(client.message_texts("a"), Vec::<String>::new());
}
