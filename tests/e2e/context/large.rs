//! A context so large that after `kill -9` its last page can be read before its first messages are loaded.

use chorus_proto::methods::context::{self, Rewind, RewindParams};
use chorus_proto::methods::events::{List, ListParams};
use chorus_proto::{CallError, Client, ErrorKind, EventType, NewMessage, Role};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use rusqlite::Connection;

use crate::home;

/// More than the number from which a context is large.
const MESSAGES: usize = 12_000;

fn nth_text(n: usize) -> String {
    format!("message {n}")
}

fn first_texts(count: usize) -> Vec<String> {
    (0..count).map(nth_text).collect()
}

/// Returns a home whose daemon was killed, with a large context of `a` and a small one of `b` whose records are
/// between.
fn home_after_kill() -> Home {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    for first in (0..MESSAGES).step_by(1000) {
        let role = |n: usize| if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let messages = (first..first + 1000).map(|n| NewMessage::text(role(n), nth_text(n)));
        client.append_all("a", messages.collect());
        client.append("b", "between");
    }
    daemon.kill9();
    home
}

fn show_last(client: &mut Client, count: u64) -> Result<context::ShowResult, CallError> {
    client.call::<context::Show>(&context::ShowParams {
        agent: Some("a".into()),
        last: Some(count),
        ..Default::default()
    })
}

fn contents(page: &context::ShowResult) -> Vec<&str> {
    page.messages.iter().map(|message| &*message.content).collect()
}

#[test]
fn the_last_page_and_an_append_come_first_and_nothing_is_missing_behind_them() {
    let home = home_after_kill();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let page = show_last(&mut client, 50).expect("the last page");
    assert_eq!(contents(&page), first_texts(MESSAGES)[MESSAGES - 50..]);
    let info = page.context.expect("live");
    assert_eq!((info.messages, info.unsaved, page.next), (MESSAGES as u64, MESSAGES as u64, None));
    assert_eq!(client.append("a", &nth_text(MESSAGES)), MESSAGES as u64 + 1);
    assert_eq!(client.messages("a").len(), MESSAGES + 1);
    assert_eq!(client.message_texts("a"), first_texts(MESSAGES + 1));
    assert_eq!(client.message_texts("b"), ["between"; MESSAGES / 1000]);
    // The early append survives the next kill, too.
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.append("a", &nth_text(MESSAGES + 1)), MESSAGES as u64 + 2);
    assert_eq!(contents(&show_last(&mut client, 2).expect("the end")), first_texts(MESSAGES + 2)[MESSAGES..]);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts("a"), first_texts(MESSAGES + 2));
}

#[test]
fn a_save_right_after_the_first_touch_has_every_message() {
    let home = home_after_kill();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.append("a", &nth_text(MESSAGES));
    let saved = client.save("a", "all of it");
    assert_eq!(saved.header.message_count, MESSAGES as u64 + 1);
    let (_, messages) = client.get_session("a", "latest");
    let found: Vec<_> = messages.into_iter().map(|message| message.content).collect();
    assert_eq!(found, first_texts(MESSAGES + 1));
    assert_eq!(client.agent_status("a").context.expect("live").unsaved, 0);
}

#[test]
fn a_rewind_and_pins_right_after_the_first_touch_see_the_whole() {
    let home = home_after_kill();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let rewind = |n, undo| RewindParams { conversation: None, agent: Some("a".into()), n: Some(n), undo };
    let turns = MESSAGES as u64 / 2 - 1;
    let result = client.call::<Rewind>(&rewind(turns, false)).expect("rewound");
    assert_eq!((result.moved, result.messages), (turns * 2, 2));
    daemon.kill9();
    // The newest record is a rewind, so the page has to wait for all messages.
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(contents(&show_last(&mut client, 1).expect("the end")), [nth_text(1)]);
    client.call::<Rewind>(&RewindParams { n: None, ..rewind(1, true) }).expect("brought back");
    chorusctl(&home, ["--agent", "a", "context", "pin", "a fact"]);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let page = show_last(&mut client, 1).expect("the end");
    assert_eq!((contents(&page), page.working_set.pinned_facts.len()), (vec![&*nth_text(MESSAGES - 1)], 1));
    client.append("a", &nth_text(MESSAGES));
    assert_eq!(client.message_texts("a"), first_texts(MESSAGES + 1));
    assert_eq!(client.pinned_facts("a"), ["a fact"]);
}

#[test]
fn damage_far_back_is_told_and_what_was_added_before_it_was_found_is_kept() {
    let home = home_after_kill();
    let database = Connection::open(home.path.join("db/live.db")).expect("the journal");
    let damage = "UPDATE records SET envelope = zeroblob(length(envelope)) WHERE number = 7 AND id < 20";
    assert_eq!(database.execute(damage, []).expect("damaged"), 1);
    drop(database);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    // The page comes from the newest records. How many appends succeed before the damage is found depends on the
    // machine.
    let shown = show_last(&mut client, 50);
    assert!(shown.is_ok_and(|page| contents(&page) == first_texts(MESSAGES)[MESSAGES - 50..]));
    let mut added = 0;
    let refused = wait_until("an append to be refused", DEADLINE, || {
        let text = Some(nth_text(MESSAGES + added));
        let params = context::AppendParams { agent: Some("a".into()), text, ..Default::default() };
        let answer = client.call::<context::Append>(&params);
        added += usize::from(answer.is_ok());
        answer.err()
    });
    assert!(matches!(refused, CallError::Rpc(error) if error.kind() == ErrorKind::StorageFailed));
    // From then on every request is refused, and observers get a notice.
    let one = context::AppendParams { agent: Some("a".into()), text: Some("more".into()), ..Default::default() };
    for _ in 0..3 {
        assert_eq!(expect_error_kind(client.call::<context::Append>(&one)), ErrorKind::StorageFailed);
    }
    assert_eq!(expect_error_kind(show_last(&mut client, 1)), ErrorKind::StorageFailed);
    let events = client.call::<List>(&ListParams::default()).expect("events").events;
    let told = |text: &str| text.contains("cannot load the live context") && text.contains("doctor --salvage");
    let notice =
        events.iter().find(|event| event.kind == EventType::Notice && event.data["text"].as_str().is_some_and(told));
    assert_eq!(notice.expect("a notice").agent.as_deref(), Some("a"));
    daemon.kill9();
    chorusctl(&home, ["doctor", "--salvage"]);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut found = Vec::new();
    for session in client.history("a") {
        let (_, messages) = client.get_session("a", &session.header.id.to_string());
        found.extend(messages.into_iter().map(|message| message.content));
    }
    let mut expected = first_texts(MESSAGES + added);
    expected.remove(7);
    assert_eq!(found, expected, "all but the one that was damaged");
}
