//! Runs that wait for approvals.

use chorus_proto::Client;
use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::approvals::{List as Approvals, ListParams as ApprovalsParams};
use chorus_proto::methods::schedule::{AddParams, List, ListParams};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, InProcessDaemon, wait_until};
use serde_json::json;

use super::{MINUTE, add, once, start};

/// More runs than are carried out at a time, each of which asks.
const AGENTS: usize = 5;
const RUNS_PER_AGENT: usize = 27;

fn create(client: &mut Client, name: &str, model: &str) {
    let params = InitParams {
        name: name.into(),
        model: Some(model.into()),
        permissions: Some("standard".into()),
        idle_timeout: Some("1000h".into()),
        ..Default::default()
    };
    client.call::<Init>(&params).expect("agent.init");
}

#[test]
fn runs_that_wait_for_approvals_do_not_block_the_others() {
    let (server, home, hands) = start("2026-03-02T06:00:00Z");
    server.anthropic().set_fallback(Response::tool_call("c1", "bash", &json!({"command": "make deploy"})));
    server.openai().set_fallback(Response::text(["Done."]));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    for agent in 0..AGENTS {
        let name = format!("asks{agent}");
        create(&mut client, &name, "anthropic/claude-test");
        for run in 0..RUNS_PER_AGENT {
            add(&mut client, AddParams { agent: Some(name.clone()), ..once(&format!("r{run}"), MINUTE) });
        }
    }
    create(&mut client, "other", "local/small");
    let other = AddParams { agent: Some("other".into()), ..once("last", MINUTE * 2) };
    add(&mut client, other);
    hands.advance(MINUTE);
    wait_until("the questions", DEADLINE * 6, || {
        let open = client.call::<Approvals>(&ApprovalsParams::default()).expect("approvals.list").approvals.len();
        (open == AGENTS * RUNS_PER_AGENT).then_some(())
    });
    hands.advance(MINUTE);
    wait_until("the run of the other agent", DEADLINE, || {
        let params = ListParams { agent: Some("other".into()), ..Default::default() };
        let listed = client.call::<List>(&params).expect("schedule.list").schedules;
        (listed[0].runs.len() == 1).then_some(())
    });
}
