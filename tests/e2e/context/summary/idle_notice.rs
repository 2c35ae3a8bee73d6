//! The notice of an idle context has the model's summary, where it comes in time.

use std::time::Duration;

use chorus_proto::{EventType, Trigger};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Home, InProcessDaemon, ManualClock, wait_until};

use super::{SUMMARY, answer, ready, talk};
use crate::context::idle::timeout::notices;
use crate::home;

const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// A daemon whose agent has gone idle, while the model that is asked about it waits at the gate `go`.
fn gone_idle(home: &Home, server: &ModelServer) -> (InProcessDaemon, ManualClock) {
    home.write_config(&server.config_toml());
    let hands = ManualClock::new("2026-02-27T10:00:00Z".parse().expect("a time"));
    let daemon = InProcessDaemon::start(home, &hands);
    let mut client = daemon.client();
    server.anthropic().queue(Response::empty().gate("go").then_text(&answer()));
    client.init("a");
    talk(&mut client, "a");
    hands.advance(TIMEOUT);
    server.wait_for_gate("go");
    (daemon, hands)
}

#[test]
fn it_waits_for_the_summary_while_the_context_is_cleared_at_once() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, _) = gone_idle(&home, &server);
    let mut client = daemon.client();
    wait_until("the context to be cleared", DEADLINE, || client.message_texts("a").is_empty().then_some(()));
    assert!(notices(&mut client).is_empty(), "the notice has not waited");
    server.open_gate("go");
    let told = wait_until("the notice", DEADLINE, || notices(&mut client).pop());
    let session = client.history("a").pop().expect("a session");
    assert_eq!(session.header.trigger, Trigger::IdleTimeout);
    let text = format!(
        "Session saved: {SUMMARY} Context cleared after 30 minutes of inactivity. Use /context restore {} to resume.",
        session.short_id
    );
    assert_eq!(told.data["text"], text);
}

#[test]
fn after_thirty_seconds_it_goes_out_with_the_own_words() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, hands) = gone_idle(&home, &server);
    let mut client = daemon.client();
    wait_until("the context to be cleared", DEADLINE, || {
        client.events(0).iter().any(|event| event.kind == EventType::ContextCleared).then_some(())
    });
    let own = client.history("a").pop().and_then(|session| session.header.summary).expect("own words");
    // Whenever it has begun to wait, it has waited for long enough.
    let told = wait_until("the notice", DEADLINE, || {
        hands.advance(Duration::from_secs(30));
        notices(&mut client).pop()
    });
    let text = told.data["text"].as_str().expect("a text").to_owned();
    assert!(text.starts_with(&format!("Session saved: {}. Context", own.trim_end_matches('.'))), "{text}");
    server.open_gate("go");
    let session = client.history("a").pop().expect("a session").header.id;
    assert_eq!(ready(&mut client, session)["source"], "llm");
}
