//! Many contexts that fall idle together, with a model.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::{Client, EventType};
use chorus_tests::bulk_data::create_agents;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{answer, talk};
use crate::home;

const CONTEXTS: usize = 500;

/// Summaries that a provider is asked for at once.
const AT_ONCE: usize = 4;

/// Bytes of each conversation.
const LONG: usize = 64 << 10;

/// What more memory they may take while they wait: all transcripts together are 32 MiB.
const GROWTH: u64 = 24 << 20;

fn count(client: &mut Client, kind: EventType) -> usize {
    client.events(0).into_iter().filter(|event| event.kind == kind).count()
}

#[test]
fn a_few_are_asked_for_at_once_and_the_others_wait_without_their_transcripts() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    create_agents(&home, CONTEXTS);
    // The pages of the search index count as memory, too.
    let config = format!("{}[defaults]\nidle_timeout = \"1s\"\n[search]\nindex = false\n", server.config_toml());
    let daemon = Daemon::start_with(&home, &config);
    let mut client = daemon.client();
    server.anthropic().set_fallback(Response::empty().gate("all").then_text(&answer()));
    let before = daemon.rss();
    let text = format!("Please look at this. {}", "word ".repeat(LONG / 5));
    for n in 0..CONTEXTS {
        client.append(&format!("agent-{n}"), &text);
    }
    wait_until("all to be put away", DEADLINE * 4, || {
        (count(&mut client, EventType::ContextCleared) == CONTEXTS).then_some(())
    });
    server.wait_for_gate("all");
    assert_eq!(server.requests().len(), AT_ONCE);
    // What it took to write them goes back.
    wait_until("memory to be given back", DEADLINE * 3, || {
        (daemon.rss().saturating_sub(before) < GROWTH).then_some(())
    });
    server.open_gate("all");
    wait_until("all summaries", DEADLINE * 4, || {
        (count(&mut client, EventType::SummaryReady) == CONTEXTS).then_some(())
    });
    assert_eq!(server.requests().len(), CONTEXTS);
}

#[test]
fn a_provider_that_does_not_answer_keeps_no_other_from_its_summaries() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    server.openai().set_fallback(Response::empty().gate("never"));
    server.anthropic().queue_text([answer()]);
    for n in 0..=AT_ONCE {
        let name = format!("slow-{n}");
        client.init(&name);
        let model = ConfigParams { name: name.clone(), key: Some("model".into()), value: Some("local/small".into()) };
        client.call::<Config>(&model).expect("agent.config");
        talk(&mut client, &name);
        client.save(&name, "slow");
    }
    assert_eq!(server.wait_for_requests(AT_ONCE).len(), AT_ONCE);
    client.init("a");
    talk(&mut client, "a");
    client.save("a", "fast");
    wait_until("its summary", DEADLINE, || (count(&mut client, EventType::SummaryReady) == 1).then_some(()));
    assert_eq!(server.requests().len(), AT_ONCE + 1);
}
