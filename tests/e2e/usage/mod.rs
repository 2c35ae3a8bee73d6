//! What calls of models used is counted, shown, and capped. The calls here are those of summaries.

mod caps;
mod context_meter;
mod estimated;
mod imported;
mod pictures;
mod token_count;
mod totals;

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::methods::usage::{Show, UsageParams, UsageResult};
use chorus_proto::{Client, EventType};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};

/// A summary of 1,000 tokens in, 600 of them out of the cache and 100 into it, and 20 out.
fn summary() -> Response {
    Response::text(["Cents\n\nThe amounts are in cents."]).usage(1000, 20).cache_tokens(600, 100)
}

/// Saves something worth a summary, and waits until there is one; false where no model was to be asked.
fn summarised(client: &mut Client, agent: &str) -> bool {
    client.append(agent, "Please move the invoice amounts to integer cents, in every table of billing.");
    let params = SaveParams { agent: Some(agent.into()), ..SaveParams::default() };
    let saved = client.call::<Save>(&params).expect("context.save");
    wait_until("summary.ready", DEADLINE, || {
        let id = saved.session.header.id.to_string();
        let ready = |event: &chorus_proto::Event| event.kind == EventType::SummaryReady && event.data["id"] == id;
        client.events(0).iter().any(ready).then_some(())
    });
    saved.summary_pending
}

fn used(client: &mut Client, agent: Option<&str>, since: Option<&str>) -> UsageResult {
    let params = UsageParams { agent: agent.map(str::to_owned), since: since.map(str::to_owned), by: None };
    client.call::<Show>(&params).expect("usage")
}

fn set(client: &mut Client, agent: &str, key: &str, value: &str) {
    let params = ConfigParams { name: agent.into(), key: Some(key.into()), value: Some(value.into()) };
    client.call::<Config>(&params).expect("agent.config");
}
