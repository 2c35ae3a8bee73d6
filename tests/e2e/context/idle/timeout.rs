//! A context that is left alone is saved, cleared and announced; never twice, never while it is in use.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::{Client, Event, EventType, Trigger};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use crate::home;

pub fn notices(client: &mut Client) -> Vec<Event> {
    client.events(0).into_iter().filter(|event| event.kind == EventType::Notice).collect()
}

fn wait_for_notice(client: &mut Client, count: usize) -> String {
    let found = wait_until("the notice", DEADLINE, || Some(notices(client)).filter(|found| found.len() >= count));
    found[count - 1].data["text"].as_str().expect("a text").to_owned()
}

#[test]
fn it_is_saved_cleared_and_announced() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"200ms\"\n");
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Please move the invoice amounts to integer cents.");
    let text = wait_for_notice(&mut client, 1);
    let session = client.history("a").pop().expect("a session");
    assert_eq!((session.header.trigger, session.header.message_count), (Trigger::IdleTimeout, 1));
    let summary = session.header.summary.expect("a summary");
    let expected = format!(
        "Session saved: {}. Context cleared after 200 milliseconds of inactivity. Use /context restore {} to resume.",
        summary.trim_end_matches('.'),
        session.short_id
    );
    assert_eq!(text, expected);
    assert!(client.message_texts("a").is_empty());
    let kinds: Vec<_> = client.events(0).into_iter().map(|event| event.kind).collect();
    let end = &kinds[kinds.len() - 4..];
    let wanted = [EventType::ContextSaved, EventType::SummaryReady, EventType::ContextCleared, EventType::Notice];
    assert_eq!(end, wanted);
}

#[test]
fn what_a_session_holds_is_not_saved_again() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"300ms\"\n");
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Only once, please.");
    let saved = client.save("a", "by hand");
    let text = wait_for_notice(&mut client, 1);
    assert!(text.contains(&format!("/context restore {} ", saved.short_id)), "{text}");
    assert_eq!(client.history("a").len(), 1);
    client.restore("a", &saved.short_id);
    wait_for_notice(&mut client, 2);
    assert_eq!(client.history("a").len(), 1);
}

#[test]
fn the_deadline_outlives_the_daemon_and_leaves_a_grace() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"2s\"\n");
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Still here after a crash.");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_for_notice(&mut client, 1);
    let session = client.history("a").pop().expect("a session");
    assert_eq!((session.header.trigger, session.header.message_count), (Trigger::IdleTimeout, 1));
}

#[test]
fn never_is_never_and_a_new_timeout_holds_at_once() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"0\"\n");
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "No hurry.");
    let context = client.agent_status("a").context.expect("a live context");
    assert_eq!(context.idle_deadline_at, None);
    let params = ConfigParams { name: "a".into(), key: Some("idle_timeout".into()), value: Some("200ms".into()) };
    client.call::<Config>(&params).expect("set");
    wait_for_notice(&mut client, 1);
}

#[test]
fn a_message_in_that_instant_is_never_lost() {
    let home = home();
    let daemon = Daemon::start_with(&home, "[defaults]\nidle_timeout = \"20ms\"\n");
    let mut client = daemon.client();
    client.init("a");
    // Around the deadline again and again: each message is in a session or in the live context, once.
    let sent: Vec<String> = (0..60).map(|n| format!("message {n}")).collect();
    for (n, text) in sent.iter().enumerate() {
        client.append("a", text);
        let until = std::time::Instant::now() + std::time::Duration::from_millis(17 + n as u64 % 6);
        wait_until("the deadline to be near", DEADLINE, || (std::time::Instant::now() >= until).then_some(()));
    }
    wait_until("the last context to be put away", DEADLINE, || client.message_texts("a").is_empty().then_some(()));
    let mut sessions = client.history("a");
    sessions.sort_by_key(|session| session.header.saved_at);
    let mut found = Vec::new();
    for session in &sessions {
        found.extend(client.get_session("a", &session.header.id.to_string()).1.into_iter().map(|m| m.content));
    }
    assert_eq!(found, sent);
}
