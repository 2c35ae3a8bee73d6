//! `context save` waits for the model's summary, or does not.

use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, wait_until};

use super::{SUMMARY, TITLE, answer, is_by_model, ready, save, talked};
use crate::home;

#[test]
fn it_waits_and_shows_what_the_model_wrote() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().queue(Response::empty().gate("go").then_text(&answer()));
    let said = std::thread::scope(|scope| {
        let save = scope.spawn(|| chorusctl(&home, ["--json", "context", "save"]).expect_json());
        server.wait_for_gate("go");
        assert!(!save.is_finished());
        server.open_gate("go");
        save.join().expect("the command")
    });
    assert_eq!((&said["session"]["summary"], &said["session"]["description"]), (&SUMMARY.into(), &TITLE.into()));
    assert!(said.get("summary_pending").is_none(), "{said}");
    server.anthropic().queue_text([answer()]);
    let text = chorusctl(&home, ["context", "save"]).expect_success();
    assert!(text.contains(SUMMARY), "{text}");
    assert_eq!(client.history("a").len(), 2);
}

#[test]
fn it_ends_too_where_the_model_has_nothing_to_say() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, _client) = talked(&home, &server);
    server.anthropic().set_fallback(Response::empty());
    let said = chorusctl(&home, ["--json", "context", "save"]).expect_json();
    assert_eq!(said["session"]["summary_source"], "extractive");
    assert!(said.get("summary_pending").is_none(), "{said}");
}

#[test]
fn with_no_wait_it_is_filled_in_later() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().queue(Response::empty().gate("go").then_text(&answer()));
    let said = chorusctl(&home, ["--json", "context", "save", "--no-wait"]).expect_json();
    assert_eq!((&said["summary_pending"], &said["session"]["summary_source"]), (&true.into(), &"extractive".into()));
    server.open_gate("go");
    let session = wait_until("the session", DEADLINE, || client.history("a").pop()).header.id;
    ready(&mut client, session);
    is_by_model(&mut client, session);
}

#[test]
fn it_waits_for_so_long_and_says_that_the_summary_comes_later() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().queue(Response::empty().gate("go").then_text(&answer()));
    let said = chorusctl(&home, ["--timeout", "2s", "context", "save"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    assert!(said.stderr.contains("the summary is not ready after 2 s"), "{}", said.stderr);
    server.open_gate("go");
    let session = client.history("a").remove(0).header.id;
    ready(&mut client, session);
    is_by_model(&mut client, session);
}

#[test]
fn on_a_server_of_ones_own_a_turn_cuts_a_summary_off_and_it_comes_behind_the_turn() {
    let (home, server) = (home(), ModelServer::start_for_summaries());
    let (_daemon, mut client) = talked(&home, &server);
    server.anthropic().queue(Response::empty().gate("never"));
    let session = save(&mut client, None).session.header.id;
    server.wait_for_gate("never");
    server.anthropic().queue_text(["First me."]);
    server.anthropic().queue_text([answer()]);
    let params = SendParams { agent: Some("a".into()), text: "Quick?".into(), ..Default::default() };
    assert_eq!(client.call::<Send>(&params).expect("a turn").reply, "First me.");
    ready(&mut client, session);
    is_by_model(&mut client, session);
    server.wait_for_hang_ups(1);
}
