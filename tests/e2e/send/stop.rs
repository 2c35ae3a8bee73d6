//! P13: a stop in the middle of turns saves all of them, without a call of the model.

use std::time::{Duration, Instant};

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{Role, Trigger};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;

use super::{MODELS, params, start_fixture};

#[test]
fn ten_agents_in_mid_turn_are_all_saved() {
    let mut fixture = start_fixture();
    let mut client = fixture.client();
    fixture.models().anthropic().set_fallback(Response::text(["Half a word"]).gate("never"));
    let names: Vec<String> = (0..10).map(|n| format!("agent-{n}")).collect();
    let mut turns = Vec::new();
    for name in &names {
        let init = InitParams { name: name.clone(), model: Some(MODELS[0].into()), ..Default::default() };
        client.call::<Init>(&init).expect("agent.init");
        let (mut client, sent) = (fixture.client(), SendParams { agent: Some(name.clone()), ..params("Talk.") });
        turns.push(std::thread::spawn(move || client.call::<Send>(&sent)));
    }
    let calls = fixture.models().wait_for_requests(10).len();
    let begun = Instant::now();
    fixture.stop();
    assert!(begun.elapsed() < Duration::from_secs(10));
    for turn in turns {
        assert!(turn.join().expect("a client").is_err());
    }
    assert_eq!(fixture.models().requests().len(), calls, "no model is called on the way out");
    fixture.start();
    let mut client = fixture.client();
    for name in &names {
        let sessions = client.history(name);
        assert_eq!(sessions.len(), 1, "{name}");
        assert_eq!(sessions[0].header.trigger, Trigger::Shutdown);
        let (_, messages) = client.get_session(name, "latest");
        assert_eq!((messages[0].role, messages[0].content.as_str()), (Role::User, "Talk."));
        assert_eq!(client.agent_status(name).context.expect("live").unsaved, 0);
    }
}
