//! A stop calls no model, and a crash may come before it has answered: the next start fills in.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::{Client, Session, SummarySource};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{answer, is_by_model, ready, save, talk, talked};
use crate::home;

/// The newest session once a model has summarised it.
fn filled_in(client: &mut Client) -> Session {
    wait_until("the summary to be filled in", DEADLINE, || {
        client.history("a").into_iter().next().filter(|session| session.header.summary_source == SummarySource::Llm)
    })
}

#[test]
fn a_stop_calls_no_model_and_the_next_start_fills_in() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, _) = talked(&home, &server);
    assert!(daemon.terminate().success());
    assert!(server.requests().is_empty(), "a model was called at shutdown");
    let file =
        std::fs::read_dir(home.sessions_dir("a")).expect("sessions/").next().expect("one").expect("an entry").path();
    assert!(std::fs::read_to_string(&file).expect("the file").contains("\"extractive\""));
    server.anthropic().set_fallback(Response::text([answer()]));
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let session = filled_in(&mut client);
    is_by_model(&mut client, session.header.id);
    assert!(daemon.terminate().success());
    // Once is enough.
    let daemon = Daemon::start(&home);
    daemon.client().save("a", "a sign that it has looked");
    assert_eq!(server.wait_for_requests(2).len(), 2);
}

#[test]
fn a_kill_between_the_save_and_the_summary() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, mut client) = talked(&home, &server);
    server.anthropic().queue(Response::empty().gate("never").then_text("x"));
    let saved = save(&mut client, Some("given"));
    assert!(saved.summary_pending);
    server.wait_for_gate("never");
    daemon.kill9();
    server.anthropic().set_fallback(Response::text([answer()]));
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let session = filled_in(&mut client);
    assert_eq!((session.header.id, session.header.description.as_deref()), (saved.session.header.id, Some("given")));
    is_by_model(&mut client, saved.session.header.id);
}

#[test]
fn a_stop_in_the_middle_of_a_call_hangs_up_and_the_next_start_asks_again() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, mut client) = talked(&home, &server);
    server.anthropic().queue(Response::empty().gate("never").then_text("x"));
    save(&mut client, None);
    server.wait_for_gate("never");
    assert!(daemon.terminate().success());
    server.wait_for_hang_ups(1);
    server.anthropic().set_fallback(Response::text([answer()]));
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let session = filled_in(&mut client);
    is_by_model(&mut client, session.header.id);
}

/// A provider that is down when the machine starts must not cost every summary.
#[test]
fn a_model_that_fails_is_asked_again_by_another_start() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, mut client) = talked(&home, &server);
    client.init("b");
    talk(&mut client, "b");
    assert!(daemon.terminate().success());
    server.anthropic().set_fallback(Response::error(401, "{}"));
    let daemon = Daemon::start(&home);
    assert!(!server.wait_for_requests(1).is_empty());
    assert!(daemon.terminate().success());
    server.anthropic().set_fallback(Response::text([answer()]));
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    filled_in(&mut client);
}

#[test]
fn a_provider_that_fails_does_not_keep_others_from_theirs() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, mut client) = talked(&home, &server);
    let local = ConfigParams { name: "a".into(), key: Some("model".into()), value: Some("local/small".into()) };
    client.call::<Config>(&local).expect("another model");
    for agent in ["b", "c", "d"] {
        client.init(agent);
        talk(&mut client, agent);
    }
    assert!(daemon.terminate().success());
    server.anthropic().set_fallback(Response::error(401, "{}"));
    server.openai().set_fallback(Response::text([answer()]));
    let daemon = Daemon::start(&home);
    filled_in(&mut daemon.client());
}

/// What is to be summarised is not forgotten where the catalog is made anew.
#[test]
fn a_rebuild_in_between_changes_nothing() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, _) = talked(&home, &server);
    assert!(daemon.terminate().success());
    assert_eq!(chorusctl(&home, ["doctor", "--rebuild", "--no-autostart"]).status, 0);
    server.anthropic().set_fallback(Response::text([answer()]));
    let daemon = Daemon::start(&home);
    filled_in(&mut daemon.client());
}

#[test]
fn at_most_four_models_are_asked_at_once() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    server.anthropic().set_fallback(Response::empty().gate("all").then_text(&answer()));
    let agents: Vec<String> = (0..7).map(|n| format!("a{n}")).collect();
    let sessions: Vec<_> = agents
        .iter()
        .map(|agent| {
            client.init(agent);
            talk(&mut client, agent);
            client.save(agent, "").header.id
        })
        .collect();
    assert_eq!(server.wait_for_requests(4).len(), 4);
    server.open_gate("all");
    for session in sessions {
        assert_eq!(ready(&mut client, session)["source"], "llm");
    }
    assert_eq!(server.requests().len(), 7);
}
