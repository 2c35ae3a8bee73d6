//! What ends a question without an answer: time, the turn, a stop, a crash, a profile that denies it by now.

use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::approvals::{Approve, ApproveParams};
use chorus_proto::methods::send::{Cancel, CancelParams, Send, SendParams};
use chorus_proto::{ErrorKind, Trigger};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, InProcessDaemon, ManualClock, wait_until};
use jiff::Timestamp;

use super::{
    agent, approve, ask, ask_for_two_agents, audit, calls_of, config, decisions, list, open, results, start_fixture,
};
use crate::context::idle::timeout::notices;
use crate::home;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn what_nobody_answers_in_time_is_denied_and_no_idle_timer_fires_meanwhile() {
    let (server, home) = (ModelServer::start(), home());
    home.write_config(&config(&server, "approval_timeout = \"40m\""));
    let hands = ManualClock::new(Timestamp::from_second(1_771_000_000).expect("a time"));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    agent(&mut client, "a");
    client.init("sentinel");
    server.anthropic().queue(calls_of(1));
    server.anthropic().queue(Response::text(["Then not."]));
    let mut other = daemon.client();
    let params = SendParams { agent: Some("a".into()), text: "Which are there?".into(), ..Default::default() };
    let turn = std::thread::spawn(move || other.call::<Send>(&params));
    let asked = open(&mut client, 1).remove(0);
    client.append("sentinel", "A word.");
    // The time of day is nothing to go by.
    hands.shift_time_of_day(jiff::SignedDuration::from_hours(24));
    hands.advance(MINUTE * 31);
    wait_until("the sentinel", DEADLINE, || (notices(&mut client).len() == 1).then_some(()));
    assert_eq!(notices(&mut client)[0].agent.as_deref(), Some("sentinel"));
    assert_eq!(list(&mut client).len(), 1, "31 of 40 minutes have passed");
    hands.advance(MINUTE * 10);
    assert_eq!(turn.join().expect("the client").expect("a turn").reply, "Then not.");
    let (is_error, text) = results(&mut client, "a").remove(0);
    assert!(is_error && text.contains("the approval expired"), "{text}");
    assert_eq!(expect_error_kind(approve(&mut client, &asked.id)), ErrorKind::Expired);
    let decisions: Vec<String> = audit(&mut client).into_iter().map(|row| row.decision).collect();
    assert_eq!(decisions, ["ask", "expired"]);
    let said = chorusctl(&home, ["audit"]).expect_success();
    assert!(said.contains("nobody answered in time: list_models for a"), "{said}");
    hands.advance(MINUTE * 31);
    wait_until("the other", DEADLINE, || (notices(&mut client).len() == 2).then_some(()));
}

#[test]
fn a_turn_that_is_cancelled_takes_its_questions_with_it() {
    let fixture = start_fixture();
    let (asked, turn) = ask(&fixture, 3);
    let mut client = fixture.client();
    client
        .call::<Cancel>(&CancelParams { conversation: None, agent: Some("a".into()), turn_id: None })
        .expect("cancelled");
    assert_eq!(expect_error_kind(turn.join().expect("the client")), ErrorKind::Interrupted);
    assert!(list(&mut client).is_empty());
    for asked in &asked {
        assert_eq!(expect_error_kind(approve(&mut client, &asked.id)), ErrorKind::Conflict);
    }
    let results = results(&mut fixture.client(), "a");
    assert!(results.len() == 3 && results.iter().all(|(is_error, _)| *is_error), "{results:?}");
    assert!(results[0].1.contains("the turn ended") && results[2].1.contains("was cancelled"), "{results:?}");
    assert_eq!(decisions(&fixture), ["ask", "withdrawn"]);
    let said = chorusctl(&fixture.home, ["audit"]).expect_success();
    assert!(said.contains("withdrawn before an answer: list_models for a"), "{said}");
}

#[test]
fn a_stop_while_somebody_is_asked_saves_and_ends_in_time() {
    let mut fixture = start_fixture();
    let (asked, turn) = ask(&fixture, 2);
    let begun = Instant::now();
    assert!(fixture.stop().success());
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(turn.join().expect("the client").is_err());
    fixture.start();
    let mut client = fixture.client();
    let sessions = client.history("a");
    assert_eq!((sessions.len(), sessions[0].header.trigger), (1, Trigger::Shutdown));
    assert_eq!(results(&mut client, "a").len(), 2, "each call has its result");
    assert_eq!(expect_error_kind(approve(&mut client, &asked[0].id)), ErrorKind::Conflict);
}

#[test]
fn after_a_crash_what_was_asked_is_denied_and_the_call_has_its_result() {
    let mut fixture = start_fixture();
    let (asked, turn) = ask(&fixture, 1);
    fixture.kill();
    assert!(turn.join().expect("the client").is_err());
    fixture.start();
    let mut client = fixture.client();
    assert!(list(&mut client).is_empty());
    let refused = approve(&mut client, &asked[0].id);
    assert!(matches!(&refused, Err(error) if error.to_string().contains("restarted")), "{refused:?}");
    assert_eq!(expect_error_kind(refused), ErrorKind::Conflict);
    let (is_error, text) = results(&mut client, "a").remove(0);
    assert!(is_error && text.contains("interrupted"), "{text}");
    let rows = audit(&mut client);
    let last = rows.last().expect("a row");
    assert_eq!((&*last.decision, &*last.rule), ("withdrawn", "the daemon restarted"));
}

#[test]
fn other_permissions_close_what_was_asked_under_the_old_ones() {
    let fixture = start_fixture();
    let (turn, other) = ask_for_two_agents(&fixture, 2);
    let (of_b, asked): (Vec<_>, Vec<_>) =
        open(&mut fixture.client(), 2).into_iter().partition(|asked| asked.agent == "b");
    let set = |key: &str, value: &str| {
        let params = ConfigParams { name: "a".into(), key: Some(key.into()), value: Some(value.into()) };
        fixture.client().call::<Config>(&params).expect("set");
    };
    set("idle_timeout", "2h");
    set("permissions", "asking");
    assert_eq!(list(&mut fixture.client()).len(), 2, "they are the same as before");
    set("permissions", "locked");
    assert_eq!(turn.join().expect("the client").expect("a turn").reply, "Done.");
    let results = results(&mut fixture.client(), "a");
    // What comes behind it is judged by the new ones.
    assert!(results[0].0 && results[0].1.contains("permissions changed") && !results[1].0, "{results:?}");
    for asked in &asked {
        assert_eq!(expect_error_kind(approve(&mut fixture.client(), &asked.id)), ErrorKind::Conflict);
    }
    assert_eq!(list(&mut fixture.client()), of_b);
    approve(&mut fixture.client(), &of_b[0].id).expect("heard");
    other.join().expect("the client").expect("a turn");
    assert_eq!(decisions(&fixture)[2..], ["changed", "changed", "withdrawn", "allow", "approved"]);
}

#[test]
fn an_edit_of_agent_json_closes_it_before_anybody_can_answer() {
    for always in [false, true] {
        let fixture = start_fixture();
        let (asked, turn) = ask(&fixture, 1);
        let path = fixture.home.agent_dir("a").join("agent.json");
        let text = std::fs::read_to_string(&path).expect("agent.json");
        std::fs::write(&path, text.replace("\"asking\"", "\"locked\"")).expect("written");
        let params = ApproveParams { id: asked[0].id.clone(), always, ..Default::default() };
        assert_eq!(expect_error_kind(fixture.client().call::<Approve>(&params)), ErrorKind::Conflict);
        turn.join().expect("the client").expect("a turn");
        assert!(
            results(&mut fixture.client(), "a")[0].1.contains("permissions changed"),
            "{:?}",
            results(&mut fixture.client(), "a")
        );
        assert_eq!(decisions(&fixture), ["ask", "withdrawn"]);
    }
}
