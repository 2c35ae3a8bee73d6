//! How many conversations an agent has live at once.

use std::time::Duration;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Pin, PinParams, Restore, RestoreParams, Show, ShowParams};
use chorus_proto::methods::conversations::{Close, CloseParams};
use chorus_proto::{EventType, Trigger};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, InProcessDaemon, ManualClock};

use super::{append, list, live, open, texts};
use crate::home;

#[test]
fn one_too_many_puts_away_the_one_that_was_quiet_for_longest_and_says_so() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let limit = ConfigParams { name: "a".into(), key: Some("max_conversations".into()), value: Some("3".into()) };
    client.call::<Config>(&limit).expect("agent.config");
    append(&mut client, None, "main always stays");
    for name in ["one", "two", "three"] {
        open(&mut client, name);
    }
    append(&mut client, Some("one"), "1");
    append(&mut client, Some("two"), "2");
    append(&mut client, Some("one"), "1 again");
    append(&mut client, Some("three"), "3");
    assert_eq!(live(&mut client), ["main", "one", "three"]);
    let told = client.events(0).into_iter().find(|event| event.kind == EventType::Notice).expect("a notice");
    assert_eq!(told.conversation.as_deref(), Some("two"));
    let text = told.data["text"].as_str().expect("a text");
    assert!(
        text.starts_with("The conversation two was saved and cleared to make room: a may have 3 at once"),
        "{text}"
    );
    let two = list(&mut client, false).into_iter().find(|found| found.name == "two").expect("it stays open");
    let saved = two.last_session.expect("its session");
    assert!(text.contains(&saved.short_id), "{text}");
    let (session, messages) = client.get_session("a", &saved.session_id);
    assert_eq!((session.header.trigger, messages.len()), (Trigger::ContextClear, 1));
    // It starts with an empty context, and another one makes room.
    append(&mut client, Some("two"), "2 again");
    assert_eq!(live(&mut client), ["main", "three", "two"]);
    assert_eq!(texts(&mut client, "two"), ["2 again"]);
}

#[test]
fn each_goes_idle_by_itself() {
    let (home, hands) = (home(), ManualClock::new("2026-02-12T10:00:00Z".parse().expect("a time")));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    client.init("a");
    open(&mut client, "review");
    let minutes = |n: u64| Duration::from_secs(60 * n);
    append(&mut client, None, "of main");
    hands.advance(minutes(20));
    append(&mut client, Some("review"), "of the review");
    hands.advance(minutes(11));
    let gone = |client: &mut chorus_proto::Client, count: usize| {
        chorus_tests::wait_until("the notices", chorus_tests::DEADLINE, || {
            let events = client.events(0);
            let notices: Vec<_> = events.into_iter().filter(|event| event.kind == EventType::Notice).collect();
            (notices.len() == count).then_some(notices)
        })
    };
    let notices = gone(&mut client, 1);
    assert_eq!(notices[0].conversation, None);
    assert_eq!(live(&mut client), ["review"]);
    hands.advance(minutes(20));
    let notices = gone(&mut client, 2);
    assert_eq!(notices[1].conversation.as_deref(), Some("review"));
    assert!(live(&mut client).is_empty());
    assert!(list(&mut client, false).iter().all(|found| found.last_session.is_some()), "both are saved");
}

#[test]
fn where_main_is_all_that_may_be_live_the_refusal_says_so_and_leaves_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    append(&mut client, None, "main is live");
    client.save("a", "saved");
    let limit = ConfigParams { name: "a".into(), key: Some("max_conversations".into()), value: Some("1".into()) };
    client.call::<Config>(&limit).expect("agent.config");
    let restore = RestoreParams {
        agent: Some("a".into()),
        session: "saved".into(),
        as_conversation: Some("copy".into()),
        ..RestoreParams::default()
    };
    let refused = client.call::<Restore>(&restore).expect_err("there is no room");
    assert!(refused.to_string().contains("agent a may have 1 live conversation, and that is main"), "{refused}");
    assert!(list(&mut client, false).iter().all(|found| found.name != "copy"));
    // The same request works once there is room.
    let limit = ConfigParams { value: Some("2".into()), ..limit };
    client.call::<Config>(&limit).expect("agent.config");
    client.call::<Restore>(&restore).expect("there is room");
    assert_eq!(live(&mut client), ["main", "copy"]);
}

#[test]
fn what_is_pinned_without_messages_is_neither_put_away_nor_closed_away() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let limit = ConfigParams { name: "a".into(), key: Some("max_conversations".into()), value: Some("2".into()) };
    client.call::<Config>(&limit).expect("agent.config");
    for name in ["plan", "one", "two"] {
        open(&mut client, name);
    }
    let pin =
        PinParams { agent: Some("a".into()), conversation: Some("plan".into()), fact: "never on a Friday".into() };
    client.call::<Pin>(&pin).expect("context.pin");
    for name in ["one", "two", "one"] {
        append(&mut client, Some(name), "hello");
    }
    let pinned = |client: &mut chorus_proto::Client| {
        let params = ShowParams { agent: Some("a".into()), conversation: Some("plan".into()), ..ShowParams::default() };
        client.call::<Show>(&params).expect("context.show").working_set.pinned_facts.len()
    };
    assert_eq!(pinned(&mut client), 1);
    let close = CloseParams { agent: Some("a".into()), conversation: "plan".into() };
    let closed = client.call::<Close>(&close).expect("conversations.close").conversation;
    assert!(closed.closed_at.is_some());
    assert_eq!(pinned(&mut client), 1);
    append(&mut client, Some("plan"), "shall we deploy?");
    assert_eq!(pinned(&mut client), 1);
}
