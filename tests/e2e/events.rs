//! Events: numbered over restarts, replayed, followed; a slow listener harms only itself.

use chorus_proto::event::Lagged;
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::methods::conversations::{New, NewParams};
use chorus_proto::methods::events::{List, ListParams, Subscribe, SubscribeParams};
use chorus_proto::{Client, Event, EventType};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, RawConnection};

use crate::home;

fn next(client: &mut Client) -> Event {
    let (method, params) = client.next_notification().expect("a notification");
    assert_eq!(method, "event");
    serde_json::from_str(params.get()).expect("an event")
}

/// Messages that are sent at once.
const BURST: u64 = 100;

/// Adds so many to `a`, one event each.
fn burst(writer: &mut RawConnection) {
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"context.append","params":{"agent":"a","text":"x"}}"#;
    (0..BURST).for_each(|_| writer.send_frame(line));
    (0..BURST).for_each(|_| _ = writer.receive().expect("an answer"));
}

#[test]
fn numbers_go_on_over_restarts_without_gaps() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.append("a", "two");
    client.save("a", "both");
    daemon.terminate();
    let daemon = Daemon::start(&home);
    let found = daemon.client().events(0);
    let numbers: Vec<u64> = found.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let kinds: Vec<_> = found.iter().map(|event| event.kind).collect();
    use EventType::{AgentCreated, ContextSaved, DaemonStopping, MessageAppended, SummaryReady};
    assert_eq!(kinds[..5], [AgentCreated, MessageAppended, MessageAppended, ContextSaved, SummaryReady]);
    assert!(kinds.contains(&DaemonStopping));
    assert_eq!(found[1].agent.as_deref(), Some("a"));
    assert_eq!(found[2].data, serde_json::json!({"appended": 1, "messages": 2}));
}

#[test]
fn a_listener_hears_what_was_and_what_comes_each_once() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "before");
    let mut listener = daemon.client();
    listener.call::<Subscribe>(&SubscribeParams { after: Some(0) }).expect("subscribed");
    client.append("a", "after");
    let heard: Vec<_> = (0..3).map(|_| next(&mut listener)).collect();
    assert_eq!(heard.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(heard[2].data["messages"], 2);
    let mut late = daemon.client();
    assert_eq!(late.call::<Subscribe>(&SubscribeParams::default()).expect("subscribed").seq, 3);
    client.append("a", "third");
    assert_eq!(next(&mut late).seq, 4);
}

#[test]
fn what_is_no_longer_kept_is_counted() {
    let home = home().without_index();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut writer = daemon.raw_connection();
    (0..12_000 / BURST).for_each(|_| burst(&mut writer));
    let page = client.call::<List>(&ListParams { after: Some(1), limit: Some(1) }).expect("events");
    let newest = 1 + 12_000;
    assert_eq!(page.lagged, newest - 10_000 - 1);
    assert_eq!(page.events[0].seq, newest - 10_000 + 1);
    let mut listener = daemon.client();
    listener.call::<Subscribe>(&SubscribeParams { after: Some(1) }).expect("subscribed");
    let (method, params) = listener.next_notification().expect("a notification");
    let lagged: Lagged = serde_json::from_str(params.get()).expect("lagged");
    assert_eq!((method.as_str(), lagged.missed), ("lagged", page.lagged));
    assert_eq!(next(&mut listener).seq, page.events[0].seq);
}

/// P11, but for how late the others hear: that is for the bench.
#[test]
fn a_listener_that_stopped_harms_itself_only_and_is_told_what_it_missed() {
    /// More than wait for one listener, and what its socket takes.
    const EVENTS: u64 = 6_000;
    let home = home().without_index();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let subscribed = || {
        let mut listener = daemon.client();
        listener.call::<Subscribe>(&SubscribeParams { after: Some(0) }).expect("subscribed");
        assert_eq!(next(&mut listener).kind, EventType::AgentCreated);
        listener
    };
    let mut stopped = subscribed();
    let before = daemon.memory();
    let mut others: Vec<Client> = (0..3).map(|_| subscribed()).collect();
    let mut writer = daemon.raw_connection();
    // The others hear each burst before the next: how late they may be on a busy machine is for the bench.
    for last in (1..=EVENTS).step_by(BURST as usize) {
        burst(&mut writer);
        for listener in &mut others {
            (1..=BURST).for_each(|n| assert_eq!(next(listener).seq, last + n, "others miss nothing"));
        }
    }
    let growth = daemon.memory().saturating_sub(before);
    assert!(growth < 16 << 20, "{growth} bytes, the {EVENTS} messages included");
    let (mut heard, mut missed) = (0, 0);
    while heard + missed < EVENTS {
        let (method, params) = stopped.next_notification().expect("a notification");
        if method == "lagged" {
            missed += serde_json::from_str::<Lagged>(params.get()).expect("lagged").missed;
        } else {
            heard += 1;
        }
    }
    assert!(missed > 0 && heard + missed == EVENTS, "{heard} heard, {missed} missed");
}

#[test]
fn the_command_line_lists_them() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    chorusctl(&home, ["context", "append", "hello"]).expect_success();
    assert!(chorusctl(&home, ["events"]).expect_success().contains("message.appended"));
    let listed = chorusctl(&home, ["events", "--json", "--after", "1"]).expect_json();
    assert_eq!(listed["events"][0]["type"], "message.appended");
    assert_eq!(chorusctl(&home, ["events", "--format", "jsonl"]).expect_success().lines().count(), 2);
}

#[test]
fn who_hears_of_the_first_message_of_a_context_can_read_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut writer = daemon.client();
    writer.init("a");
    let names: Vec<String> = (0..BURST).map(|number| format!("conversation-{number}")).collect();
    for name in &names {
        let params = NewParams { agent: Some("a".into()), name: name.clone(), ..Default::default() };
        writer.call::<New>(&params).expect("conversations.new");
    }
    let (mut listener, mut reader) = (daemon.client(), daemon.client());
    listener.call::<Subscribe>(&SubscribeParams { after: None }).expect("subscribed");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for name in &names {
                let (agent, text) = (Some("a".into()), Some("first".into()));
                let params = AppendParams { agent, conversation: Some(name.clone()), text, ..Default::default() };
                writer.call::<Append>(&params).expect("context.append");
            }
        });
        for name in &names {
            assert_eq!(next(&mut listener).conversation.as_ref(), Some(name));
            let read: Vec<_> = reader.messages_in("a", name).into_iter().map(|message| message.content).collect();
            assert_eq!(read, ["first"]);
        }
    });
}
