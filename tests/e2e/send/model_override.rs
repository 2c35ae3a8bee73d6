//! `send --model`: another model for one turn.

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::ModelServer;

use super::params;
use crate::home;

#[test]
fn one_turn_has_another_model_and_the_next_the_agents_own() {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    let init = InitParams { name: "a".into(), model: Some("anthropic/claude-test".into()), ..Default::default() };
    client.call::<Init>(&init).expect("agent.init");
    server.openai().queue_text(["From the other."]);
    assert_eq!(chorusctl(&home, ["send", "-m", "local/large", "Who?"]).expect_success(), "From the other.\n");
    assert_eq!(server.requests()[0].body["model"], "large");
    server.anthropic().queue_text(["From its own."]);
    assert_eq!(chorusctl(&home, ["send", "And now?"]).expect_success(), "From its own.\n");
    assert_eq!(server.requests()[1].body["model"], "claude-test");
    assert_eq!(client.agent_status("a").model.as_deref(), Some("anthropic/claude-test"));
}

#[test]
fn an_unknown_model_is_refused_before_anything_is_written() {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let mut client = daemon.client();
    client.init("a");
    let other = SendParams { model: Some("nowhere/model".into()), ..params("Who?") };
    assert_eq!(expect_error_kind(client.call::<Send>(&other)), ErrorKind::ModelUnavailable);
    assert_eq!(client.agent_status("a").context, None);
    assert!(server.requests().is_empty());
}
