//! What happens to a session while its model thinks.

use chorus_proto::methods::session::{Delete, DeleteParams, Purge, PurgeParams, Tag, TagParams};
use chorus_proto::methods::{agent, context};
use chorus_proto::{Client, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home};

use super::{SUMMARY, answer, is_by_model, now, ready, save, talk, talked};
use crate::home;

/// A saved session whose model waits for the gate `go`.
fn thinking(home: &Home, server: &ModelServer) -> (Daemon, Client, Session) {
    let (daemon, mut client) = talked(home, server);
    server.anthropic().queue(Response::empty().gate("go").then_text(&answer()));
    let saved = save(&mut client, None);
    server.wait_for_gate("go");
    (daemon, client, saved.session)
}

fn files(home: &Home) -> usize {
    std::fs::read_dir(home.sessions_dir("a")).expect("sessions/").count()
}

#[test]
fn one_that_is_deleted_is_left_alone() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client, session) = thinking(&home, &server);
    let params = DeleteParams {
        conversation: None,
        agent: Some("a".into()),
        session: session.header.id.to_string(),
        own: false,
    };
    client.call::<Delete>(&params).expect("session.delete");
    server.open_gate("go");
    assert!(ready(&mut client, session.header.id)["summary"].is_null());
    assert_eq!((files(&home), client.history("a").len()), (0, 0));
}

#[test]
fn one_that_is_purged_does_not_come_back() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (daemon, mut client, session) = thinking(&home, &server);
    let params =
        PurgeParams { conversation: None, agent: Some("a".into()), session: session.header.id.to_string(), own: false };
    client.call::<Purge>(&params).expect("session.purge");
    server.open_gate("go");
    assert!(ready(&mut client, session.header.id)["summary"].is_null());
    assert_eq!((files(&home), client.history("a").len()), (0, 0));
    assert!(daemon.terminate().success());
    for database in ["live.db", "chorus.db"] {
        let bytes = std::fs::read(home.path.join("db").join(database)).expect("a database");
        let found = bytes.windows(SUMMARY.len()).any(|window| window == SUMMARY.as_bytes());
        assert!(!found, "{database} has the summary of a purged session");
    }
}

#[test]
fn one_that_is_edited_by_hand_is_left_alone() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client, session) = thinking(&home, &server);
    let file = std::fs::read_to_string(&session.file_path).expect("the file");
    let summary = session.header.summary.expect("a summary");
    let edited = file.replace(&summary, "My own words, longer than before: nobody writes over them.");
    assert_ne!(edited, file);
    std::fs::write(&session.file_path, &edited).expect("an edit");
    server.open_gate("go");
    ready(&mut client, session.header.id);
    assert_eq!(std::fs::read_to_string(&session.file_path).expect("the file"), edited);
}

#[test]
fn a_tag_and_a_summary_do_not_lose_each_other() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client, session) = thinking(&home, &server);
    let params = TagParams {
        agent: Some("a".into()),
        session: session.header.id.to_string(),
        tag: vec!["kept".into()],
        ..TagParams::default()
    };
    client.call::<Tag>(&params).expect("session.tag");
    server.open_gate("go");
    is_by_model(&mut client, session.header.id);
    assert_eq!(now(&mut client, session.header.id).0.header.tags, ["kept"]);
}

#[test]
fn the_agent_may_be_renamed_or_destroyed() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client, session) = thinking(&home, &server);
    let rename = agent::ConfigParams { name: "a".into(), key: Some("name".into()), value: Some("b".into()) };
    client.call::<agent::Config>(&rename).expect("renamed");
    server.open_gate("go");
    assert_eq!(ready(&mut client, session.header.id)["source"], "llm");
    let found = client.history("b").pop().expect("the session");
    assert_eq!(found.header.summary.as_deref(), Some(SUMMARY));

    client.append("b", "One more thing, before it goes: the ledger of March is to be checked by somebody.");
    server.anthropic().queue_text([answer()]);
    let destroy = agent::DestroyParams { name: "b".into(), ..Default::default() };
    let saved = client.call::<agent::Destroy>(&destroy).expect("destroyed").saved.expect("a session");
    assert_eq!(ready(&mut client, saved.header.id)["source"], "llm");
    let params = context::HistoryParams { all_agents: true, ..Default::default() };
    let all = client.call::<context::History>(&params).expect("history").sessions;
    let found = all.iter().find(|session| session.header.id == saved.header.id).expect("listed");
    assert_eq!(found.header.summary.as_deref(), Some(SUMMARY));
}

#[test]
fn a_purge_of_the_agent_calls_no_model_into_being() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().set_fallback(Response::text([answer()]));
    let destroy = agent::DestroyParams { name: "a".into(), purge: true, ..Default::default() };
    let saved = client.call::<agent::Destroy>(&destroy).expect("destroyed").saved.expect("a session");
    ready(&mut client, saved.header.id);
    assert!(!home.agent_dir("a").exists());
}

#[test]
fn clear_and_restore_have_theirs_too() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().set_fallback(Response::text([answer()]));
    let params = context::ClearParams { conversation: None, agent: Some("a".into()), save: true };
    let cleared = client.call::<context::Clear>(&params).expect("cleared").saved.expect("a session");
    is_by_model(&mut client, cleared.header.id);
    talk(&mut client, "a");
    let first = client.restore("a", &cleared.header.id.to_string()).saved_first.expect("saved first");
    is_by_model(&mut client, first.header.id);
}
