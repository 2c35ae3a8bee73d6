//! Summaries by the agent's model: after the save, in place of the one in the conversation's own words, or not at all.

mod by_rules;
mod cli;
mod concurrent_changes;
mod idle_notice;
mod many;
mod model_replies;
mod restart;
mod wait;

use chorus_proto::methods::context::{Save, SaveParams, SaveResult};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{Client, EventType, NewMessage, Role, Session, SummarySource};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::ModelServer;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::Value;
use uuid::Uuid;

const TALK: [(Role, &str); 4] = [
    (Role::User, "The nightly import drops rows. Can you find out why the country column is empty?"),
    (
        Role::Assistant,
        "I changed the loader to keep rows without a country and to mark them as unknown. All tests pass now.",
    ),
    (Role::User, "Good. We still need a back-fill for March."),
    (Role::Assistant, "The back-fill for March is open. I will write it as a script that can run twice without harm."),
];

const TITLE: &str = "Rows without a country";
const SUMMARY: &str = "The loader keeps rows without a country now. The back-fill for March was left open.";

fn answer() -> String {
    format!("{TITLE}\n\n{SUMMARY}")
}

/// A daemon whose default model is at `server`, and an agent `a` that has talked.
fn talked(home: &Home, server: &ModelServer) -> (Daemon, Client) {
    let daemon = Daemon::start_with(home, &server.config_toml());
    let mut client = daemon.client();
    client.init("a");
    talk(&mut client, "a");
    (daemon, client)
}

fn talk(client: &mut Client, agent: &str) {
    client.append_all(agent, TALK.iter().map(|(role, text)| NewMessage::text(*role, *text)).collect());
}

fn save(client: &mut Client, description: Option<&str>) -> SaveResult {
    let params =
        SaveParams { agent: Some("a".into()), description: description.map(str::to_owned), ..SaveParams::default() };
    client.call::<Save>(&params).expect("context.save")
}

/// What is told when the summary of `session` is there: once.
fn ready(client: &mut Client, session: Uuid) -> Value {
    let of = |client: &mut Client| -> Vec<Value> {
        let ready = client.events(0).into_iter().filter(|event| event.kind == EventType::SummaryReady);
        ready.map(|event| event.data).filter(|data| data["id"] == session.to_string()).collect()
    };
    let found = wait_until("summary.ready", DEADLINE, || Some(of(client)).filter(|found| !found.is_empty()));
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// The session as it is now, and whether a summary is on its way.
fn now(client: &mut Client, session: Uuid) -> (Session, bool) {
    let params =
        GetParams { agent: Some("a".into()), session: session.to_string(), limit: Some(0), ..GetParams::default() };
    let found = client.call::<Get>(&params).expect("session.get");
    (found.session, found.summary_pending)
}

/// Waits for the model's summary of `session` and checks all that it changes.
fn is_by_model(client: &mut Client, session: Uuid) {
    let told = ready(client, session);
    assert_eq!((&told["summary"], &told["source"]), (&SUMMARY.into(), &"llm".into()));
    let (found, pending) = now(client, session);
    assert_eq!((found.header.summary.as_deref(), pending), (Some(SUMMARY), false));
    assert_eq!(found.header.summary_source, SummarySource::Llm);
}
