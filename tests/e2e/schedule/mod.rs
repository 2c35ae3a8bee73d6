//! Messages that agents get at certain times, by a clock that the test moves.

mod agents;
mod approvals;
mod backup;
mod commands;
mod crash;
mod firing;
mod missed;
mod show;
mod time_zones;
mod tools;

use std::time::Duration;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::schedule::{Add, AddParams, List, ListParams, MissedRuns, RunOutcome, Schedule};
use chorus_proto::{Client, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Home, ManualClock, wait_until};
use jiff::Timestamp;

use crate::home;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A home whose model always says the same, and its clock at `now`.
fn start(now: &str) -> (ModelServer, Home, ManualClock) {
    let (server, home) = (ModelServer::start(), home());
    home.write_config(&server.config_toml());
    server.anthropic().set_fallback(Response::text(["Done."]));
    (server, home, ManualClock::new(now.parse().expect("a time")))
}

/// An agent whose conversations are not cleared in the hours that pass.
fn create_agent(client: &mut Client, name: &str) {
    let params = InitParams { name: name.into(), idle_timeout: Some("1000h".into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
}

fn cron(name: &str, expression: &str, zone: &str) -> AddParams {
    let (cron, time_zone) = (Some(expression.into()), Some(zone.into()));
    AddParams { cron, time_zone, ..message(name) }
}

fn every(name: &str, interval: Duration) -> AddParams {
    AddParams { every_seconds: Some(interval.as_secs()), ..message(name) }
}

fn once(name: &str, wait: Duration) -> AddParams {
    AddParams { in_seconds: Some(wait.as_secs()), ..message(name) }
}

fn skipping(params: AddParams) -> AddParams {
    AddParams { missed: MissedRuns::Skip, ..params }
}

fn message(name: &str) -> AddParams {
    AddParams { agent: Some("a".into()), name: name.into(), message: format!("This is {name}."), ..Default::default() }
}

fn add(client: &mut Client, params: AddParams) -> Vec<Timestamp> {
    client.call::<Add>(&params).expect("schedule.add").next
}

fn listed(client: &mut Client) -> Vec<Schedule> {
    client.call::<List>(&ListParams { agent: Some("a".into()), ..Default::default() }).expect("schedule.list").schedules
}

fn find(client: &mut Client, name: &str) -> Schedule {
    listed(client).into_iter().find(|schedule| schedule.name == name).expect("the schedule")
}

/// Waits until so many runs of a schedule have ended, and returns it.
fn ran(client: &mut Client, name: &str, runs: usize) -> Schedule {
    wait_until("the runs", DEADLINE, || {
        let schedule = find(client, name);
        (schedule.runs.len() >= runs && schedule.pending_at.is_none()).then_some(schedule)
    })
}

/// Lets a minute pass and waits until the timer has looked at what is due. Add the schedule before: it is due now and then.
fn let_the_timer_look(client: &mut Client, hands: &ManualClock, name: &str) {
    add(client, once(name, MINUTE));
    hands.advance(MINUTE);
    assert_eq!(ran(client, name, 1).runs[0].outcome, RunOutcome::Ok);
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// The messages of people in the conversation of a schedule.
fn sent(client: &mut Client, conversation: &str) -> Vec<String> {
    let messages = client.messages_in("a", conversation).into_iter();
    messages.filter(|message| message.role == Role::User).map(|message| message.content).collect()
}
