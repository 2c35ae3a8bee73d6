//! Conversations come and go: names, the selected one, closing, and what their agent does.

use chorus_proto::methods::agent::{Config, ConfigParams, Destroy, DestroyParams};
use chorus_proto::methods::conversations::{Close, CloseParams, New, NewParams, Rename, RenameParams, Use, UseParams};
use chorus_proto::methods::trash::{self, Restore};
use chorus_proto::{Client, ErrorKind, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};

use super::{append, list, live, open, save, texts};
use crate::home;

fn close(client: &mut Client, name: &str) -> Option<String> {
    let params = CloseParams { agent: Some("a".into()), conversation: name.into() };
    let closed = client.call::<Close>(&params).expect("conversations.close");
    assert!(closed.conversation.closed_at.is_some());
    closed.saved.map(|session| session.header.session_id)
}

#[test]
fn names_are_valid_and_unique_and_may_change() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    let review = open(&mut client, "review");
    open(&mut client, "other");
    let new = |name: &str| NewParams { agent: Some("a".into()), name: name.into(), ..Default::default() };
    for (name, kind) in [
        ("main", ErrorKind::AlreadyExists),
        ("review", ErrorKind::AlreadyExists),
        ("Review", ErrorKind::InvalidName),
        ("../x", ErrorKind::InvalidName),
        ("", ErrorKind::InvalidName),
    ] {
        assert_eq!(expect_error_kind(client.call::<New>(&new(name))), kind, "{name}");
    }
    let elsewhere = NewParams { agent: Some("b".into()), ..new("review") };
    client.call::<New>(&elsewhere).expect("another agent's");
    append(&mut client, Some("review"), "one");
    save(&mut client, Some("review"), "as review");
    let rename =
        |from: &str, to: &str| RenameParams { agent: Some("a".into()), conversation: from.into(), name: to.into() };
    assert_eq!(expect_error_kind(client.call::<Rename>(&rename("review", "other"))), ErrorKind::AlreadyExists);
    assert_eq!(expect_error_kind(client.call::<Rename>(&rename("main", "x"))), ErrorKind::Denied);
    let renamed = client.call::<Rename>(&rename("review", "second-look")).expect("conversations.rename");
    assert_eq!((renamed.conversation.id, &*renamed.conversation.name), (review.id, "second-look"));
    assert_eq!(texts(&mut client, "second-look"), ["one"]);
    append(&mut client, Some(&review.id.to_string()), "by its id");
    drop(client);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(texts(&mut client, "second-look"), ["one", "by its id"]);
    let names: Vec<_> = list(&mut client, false).into_iter().map(|found| found.name).collect();
    assert_eq!(names, ["main", "other", "second-look"]);
}

#[test]
fn the_selected_one_is_meant_by_an_at_sign_until_it_is_closed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    open(&mut client, "review");
    let select = |name: &str| UseParams { agent: Some("a".into()), conversation: name.into() };
    append(&mut client, Some("@"), "main is selected first");
    client.call::<Use>(&select("review")).expect("conversations.use");
    append(&mut client, Some("@"), "to the review");
    append(&mut client, None, "to main, as clients of before mean it");
    drop(client);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    append(&mut client, Some("@"), "still selected");
    assert_eq!(texts(&mut client, "review"), ["to the review", "still selected"]);
    assert_eq!(list(&mut client, false).iter().filter(|found| found.selected).count(), 1);
    close(&mut client, "@");
    append(&mut client, Some("@"), "main again");
    assert_eq!(texts(&mut client, "main").len(), 3);
}

#[test]
fn closing_saves_and_a_message_opens_it_again() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let review = open(&mut client, "review");
    assert_eq!(close(&mut client, "review"), None, "there was nothing to save");
    open(&mut client, "review");
    append(&mut client, Some("review"), "one");
    let session = close(&mut client, "review").expect("a session");
    assert_eq!(list(&mut client, false).len(), 1);
    let closed = list(&mut client, true).pop().expect("the closed one");
    assert_eq!((closed.id, closed.context), (review.id, None));
    assert_eq!(closed.last_session.expect("its session").session_id, session);
    append(&mut client, Some("review"), "two");
    let opened = list(&mut client, false).pop().expect("the open one");
    assert_eq!((opened.id, opened.closed_at), (review.id, None));
    assert_eq!(texts(&mut client, "review"), ["two"]);
    let main = CloseParams { agent: Some("a".into()), conversation: "main".into() };
    assert_eq!(expect_error_kind(client.call::<Close>(&main)), ErrorKind::Denied);
}

#[test]
fn an_agent_takes_its_conversations_along_when_it_is_renamed_destroyed_and_brought_home() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    open(&mut client, "review");
    append(&mut client, None, "of main");
    append(&mut client, Some("review"), "of the review");
    let rename =
        |from: &str, to: &str| ConfigParams { name: from.into(), key: Some("name".into()), value: Some(to.into()) };
    client.call::<Config>(&rename("a", "b")).expect("a rename");
    assert_eq!(client.messages_in("b", "review").len(), 1);
    client.call::<Config>(&rename("b", "a")).expect("a rename");
    append(&mut client, Some("review"), "more");
    let saved = save(&mut client, Some("review"), "after the move");
    assert!(saved.file_path.contains("/agents/a/"), "{}", saved.file_path);
    append(&mut client, Some("review"), "unsaved");
    let destroyed =
        client.call::<Destroy>(&DestroyParams { name: "a".into(), ..Default::default() }).expect("agent.destroy");
    assert_eq!(destroyed.saved.expect("a session").header.trigger, Trigger::Destroy);
    let entry = client.call::<trash::List>(&trash::ListParams::default()).expect("trash.list").entries;
    let id = entry[0].id.clone();
    client.call::<Restore>(&trash::RestoreParams { id }).expect("trash.restore");
    assert!(live(&mut client).is_empty(), "all contexts were saved");
    let sessions = client.history("a");
    let of_review = sessions.iter().filter(|session| session.header.conversation.is_some()).count();
    assert_eq!((sessions.len(), of_review), (3, 2), "two of the review, one of main");
    append(&mut client, Some("review"), "goes on");
    assert_eq!(texts(&mut client, "review"), ["goes on"]);
}
