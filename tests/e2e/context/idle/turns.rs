//! Idle timers beside turns, by a clock that the test moves.

use std::time::Duration;

use chorus_proto::Client;
use chorus_proto::methods::send::Send;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{InProcessDaemon, ManualClock};
use jiff::Timestamp;

use crate::context::idle::timeout::notices;
use crate::home;
use crate::send::{params, send};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_timer_never_fires_in_a_turn_and_runs_from_its_end() {
    let (server, home) = (ModelServer::start(), home());
    home.write_config(&server.config_toml());
    let hands = ManualClock::new(Timestamp::from_second(1_771_000_000).expect("a time"));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    client.init("a");
    client.init("sentinel");
    server.anthropic().queue(Response::text(["A long"]).gate("late").then_text(" thought."));
    let mut other = daemon.client();
    let turn = std::thread::spawn(move || other.call::<Send>(&params("Think.")));
    server.wait_for_gate("late");
    client.append("sentinel", "A word.");
    hands.advance(MINUTE * 31);
    let put_away =
        |client: &mut _| -> Vec<String> { notices(client).into_iter().filter_map(|event| event.agent).collect() };
    chorus_tests::wait_until("the sentinel", chorus_tests::DEADLINE, || {
        (put_away(&mut client) == ["sentinel"]).then_some(())
    });
    server.open_gate("late");
    assert_eq!(turn.join().expect("the client").expect("a turn").reply, "A long thought.");
    client.append("sentinel", "Another word.");
    hands.advance(MINUTE * 29);
    server.anthropic().queue_text(["Yes."]);
    assert_eq!(send(&mut client, "Still there?").expect("a turn").reply, "Yes.");
    hands.advance(MINUTE * 31);
    chorus_tests::wait_until("both", chorus_tests::DEADLINE, || (put_away(&mut client).len() == 3).then_some(()));
    assert_eq!(client.history("a")[0].header.message_count, 4);
}

#[test]
fn a_turn_that_ends_without_a_word_sets_the_timer_too() {
    let (server, home) = (ModelServer::start(), home());
    home.write_config(&server.config_toml());
    let hands = ManualClock::new(Timestamp::from_second(1_771_000_000).expect("a time"));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    client.init("a");
    client.init("sentinel");
    server.anthropic().queue(Response::empty().gate("never"));
    let mut other = daemon.client();
    let turn = std::thread::spawn(move || other.call::<Send>(&params("Think.")));
    server.wait_for_gate("never");
    let put_away =
        |client: &mut _| -> Vec<String> { notices(client).into_iter().filter_map(|event| event.agent).collect() };
    let pass = |client: &mut Client, minutes: u32, due: &[&str]| {
        client.append("sentinel", "A word.");
        hands.advance(MINUTE * minutes);
        chorus_tests::wait_until("idle contexts", chorus_tests::DEADLINE, || (put_away(client) == due).then_some(()));
    };
    pass(&mut client, 31, &["sentinel"]);
    assert!(crate::send::cancel(&mut client).is_some() && turn.join().expect("the client").is_err());
    hands.advance(MINUTE * 29);
    assert_eq!(client.message_texts("a"), ["Think."], "it has its whole time again");
    hands.advance(MINUTE * 2);
    chorus_tests::wait_until("the context", chorus_tests::DEADLINE, || {
        (put_away(&mut client).len() == 2).then_some(())
    });
    assert_eq!(client.history("a").len(), 1);
}
