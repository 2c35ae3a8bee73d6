//! A cap stops before the call, survives a restart, and ends at midnight.

use std::time::Duration;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::ModelServer;
use chorus_tests::{InProcessDaemon, ManualClock};

use super::{set, summarised, summary, used};
use crate::home;

const PRICES: &str = "[prices.\"anthropic/claude-test\"]\ninput = 10\noutput = 10\n";

/// A cap that one summary uses up.
fn ends_at_midnight(key: &str, limit: &str, raised: &str) {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    home.write_config(&format!("{}{PRICES}", server.config_toml()));
    server.anthropic().set_fallback(summary());
    let hands = ManualClock::new("2026-02-27T12:00:00Z".parse().expect("a time"));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    client.init("a");
    client.init("other");
    set(&mut client, "a", key, limit);
    assert!(summarised(&mut client, "a"), "nothing was used yet");
    assert!(!summarised(&mut client, "a"), "{key}: a model was asked past the cap");
    assert!(summarised(&mut client, "other"), "it is the cap of one agent");
    assert_eq!(server.requests().len(), 2);

    daemon.stop().expect("an orderly stop");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    assert!(!summarised(&mut client, "a"), "{key}: a restart has forgotten the cap");
    set(&mut client, "a", key, raised);
    assert!(summarised(&mut client, "a"), "{key}: it was raised");
    assert!(!summarised(&mut client, "a"), "{key}: it was used up again");

    hands.advance(Duration::from_secs(24 * 60 * 60));
    assert!(summarised(&mut client, "a"), "{key}: another day");
    assert_eq!(used(&mut client, Some("a"), None).total.calls, 3);
}

#[test]
fn of_tokens() {
    ends_at_midnight("daily_token_limit", "1000", "1021");
}

#[test]
fn of_cost() {
    ends_at_midnight("daily_cost_limit", "0.005", "0.011");
}

#[test]
fn of_cost_counts_a_call_without_a_price_as_nothing() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let daemon = chorus_tests::Daemon::start_with(&home, &server.config_toml());
    server.anthropic().set_fallback(summary());
    let mut client = daemon.client();
    client.init("a");
    set(&mut client, "a", "daily_cost_limit", "0.000001");
    for _ in 0..3 {
        assert!(summarised(&mut client, "a"));
    }
    assert_eq!(used(&mut client, Some("a"), None).total.unpriced_calls, 3);
}

#[test]
fn of_a_day_stops_what_the_next_start_would_fill_in() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    home.write_config(&server.config_toml());
    server.anthropic().set_fallback(summary());
    let hands = ManualClock::new("2026-02-27T12:00:00Z".parse().expect("a time"));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    client.init("a");
    set(&mut client, "a", "daily_token_limit", "1000");
    assert!(summarised(&mut client, "a"));
    client.append("a", "What a stop saves is to be summarised by the next start, of another day.");
    daemon.stop().expect("an orderly stop");
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    client.init("b");
    assert!(summarised(&mut client, "b"));
    assert_eq!(server.requests().len(), 2, "the cap holds for what is filled in");
    daemon.stop().expect("an orderly stop");
    hands.advance(Duration::from_secs(24 * 60 * 60));
    let _daemon = InProcessDaemon::start(&home, &hands);
    assert!(server.wait_for_requests(3).len() >= 3, "another day");
}
