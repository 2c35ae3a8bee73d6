//! What damage and crashes leave of conversations.

use chorus_proto::methods::conversations::{Close, CloseParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, Fixture};
use rusqlite::Connection;

use super::{append, list, open, save, texts};
use crate::home;

#[test]
fn a_context_whose_conversation_is_lost_can_be_reached() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    open(&mut client, "review");
    append(&mut client, Some("review"), "of the review");
    drop(client);
    assert!(daemon.terminate().success());
    let database = Connection::open(home.path.join("db/live.db")).expect("the journal");
    assert_eq!(database.execute("DELETE FROM conversations", []).expect("deleted"), 1);
    drop(database);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let found = list(&mut client, false).pop().expect("the conversation");
    assert!(found.name.starts_with("recovered-"), "{}", found.name);
    assert_eq!(texts(&mut client, &found.name), ["of the review"]);
}

#[test]
fn a_turn_that_a_crash_interrupts_is_closed_in_its_conversation() {
    use chorus_tests::model_server::Response;
    let mut fixture = Fixture::builder(home()).models().start();
    fixture.create_agent("a", None);
    open(&mut fixture.client(), "review");
    fixture.answer(Response::text(["Half"]).gate("never"));
    let params = chorus_proto::methods::send::SendParams {
        agent: Some("a".into()),
        conversation: Some("review".into()),
        text: "hello".into(),
        ..Default::default()
    };
    let mut client = fixture.client();
    let sending = std::thread::spawn(move || client.call::<chorus_proto::methods::send::Send>(&params));
    fixture.models().wait_for_gate("never");
    fixture.kill();
    assert!(sending.join().expect("the client").is_err());
    fixture.start();
    let mut client = fixture.client();
    assert_eq!(texts(&mut client, "review"), ["hello"]);
    assert!(client.messages("a").is_empty());
    let told = fixture.wait_for_events(chorus_proto::EventType::TurnInterrupted, 1);
    assert_eq!(told[0].conversation.as_deref(), Some("review"));
}

#[test]
fn a_conversation_that_only_sessions_know_has_them_again() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let review = open(&mut client, "review");
    append(&mut client, Some("review"), "of the review");
    let saved = save(&mut client, Some("review"), "what was reviewed");
    let close = CloseParams { agent: Some("a".into()), conversation: "review".into() };
    client.call::<Close>(&close).expect("conversations.close");
    drop(client);
    assert!(daemon.terminate().success());
    let database = Connection::open(home.path.join("db/live.db")).expect("the journal");
    assert_eq!(database.execute("DELETE FROM conversations", []).expect("deleted"), 1);
    drop(database);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(list(&mut client, true).len(), 1);
    let again = open(&mut client, "review");
    assert_eq!(again.id, review.id);
    assert_eq!(again.last_session.expect("its session").id, saved.header.id);
}
