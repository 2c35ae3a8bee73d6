//! Calls that no server has counted to the end: what they used is estimated, and the caps count it.
//!
//! Servers without `stream_options` send no usage at all (<https://github.com/ollama/ollama/issues/4448>), and one that
//! is cut off sends none either (<https://github.com/openai/openai-openapi/pull/240>).

use std::sync::mpsc::SyncSender;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::send::{Cancel, CancelParams, Progress, Send, SendParams, TurnEvent};
use chorus_proto::methods::usage::UsageSums;
use chorus_proto::{CallError, Client, ErrorKind};
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home};
use serde_json::value::RawValue;

use super::{set, used};
use crate::home;

const LONG: &str = "An answer of some length, so that something is there to be counted. ";

fn start(keys: &str, model: &str) -> (Home, ModelServer, Daemon, Client) {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml_with(keys));
    let mut client = daemon.client();
    let params = InitParams { name: "a".into(), model: Some(model.into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
    (home, server, daemon, client)
}

fn send(client: &mut Client) -> Result<(), CallError> {
    let params = SendParams { agent: Some("a".into()), text: "Tell me of it.".into(), ..Default::default() };
    client.call::<Send>(&params).map(|_| ())
}

/// Sends and tells what is heard meanwhile.
fn listen(client: &mut Client, heard: &SyncSender<TurnEvent>) -> Result<(), CallError> {
    let params =
        SendParams { agent: Some("a".into()), text: "Tell me of it.".into(), stream: true, ..Default::default() };
    let mut hear = |progress: &RawValue| -> Result<(), CallError> {
        let _ = heard.send(serde_json::from_str::<Progress>(progress.get())?.said);
        Ok(())
    };
    client.call_streaming("send", &params, &mut hear).map(drop)
}

fn total(client: &mut Client) -> UsageSums {
    used(client, Some("a"), None).total
}

#[test]
fn a_server_that_reports_nothing_is_counted_by_the_estimate() {
    let (home, server, _daemon, mut client) = start("", "local/small");
    server.openai().queue(Response::text([LONG.repeat(10)]).without_usage());
    send(&mut client).expect("a turn");
    let sums = total(&mut client);
    assert_eq!((sums.calls, sums.estimated_calls), (1, 1), "{sums:?}");
    assert!(sums.input_tokens > 20 && sums.output_tokens >= 100, "{sums:?}");
    let said = chorusctl(&home, ["usage"]);
    assert!(said.stderr.contains("1 call with estimated token counts"), "{}", said.stderr);
    // The cap sees it.
    set(&mut client, "a", "daily_token_limit", "100");
    assert_eq!(expect_error_kind(send(&mut client)), ErrorKind::LimitReached);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_turn_that_is_cancelled_leaves_its_row() {
    for model in ["anthropic/claude-test", "local/small"] {
        let (_home, server, daemon, mut client) = start("", model);
        let answer = Response::text([LONG.repeat(10)]).gate("never");
        server.anthropic().queue(answer.clone());
        server.openai().queue(answer);
        let (heard, hears) = std::sync::mpsc::sync_channel(256);
        let turn = {
            let mut client = daemon.client();
            std::thread::spawn(move || listen(&mut client, &heard))
        };
        let text = |said: TurnEvent| matches!(said, TurnEvent::Text(_)).then_some(());
        hears.iter().find_map(text).expect("a part of the answer");
        client
            .call::<Cancel>(&CancelParams { conversation: None, agent: Some("a".into()), turn_id: None })
            .expect("cancelled");
        assert_eq!(expect_error_kind(turn.join().expect("the client")), ErrorKind::Interrupted);
        let sums = total(&mut client);
        assert_eq!((sums.calls, sums.estimated_calls), (1, 1), "{model}: {sums:?}");
        assert!(sums.input_tokens > 0 && sums.output_tokens >= 100, "{model}: {sums:?}");
    }
}

#[test]
fn a_call_that_failed_counts_as_far_as_it_came() {
    let (_home, server, _daemon, mut client) = start("first_byte_timeout = \"200ms\"", "local/small");
    server.openai().queue(Response::error(400, r#"{"error":{"message":"no"}}"#));
    assert_eq!(expect_error_kind(send(&mut client)), ErrorKind::ModelUnavailable);
    let refused = total(&mut client);
    assert_eq!((refused.calls, refused.estimated_calls, refused.input_tokens), (1, 0, 0), "{refused:?}");
    // A prompt that a server has is read, whether somebody waits for the answer or not.
    server.openai().queue(Response::empty().stall());
    assert_eq!(expect_error_kind(send(&mut client)), ErrorKind::ModelUnavailable);
    let late = total(&mut client);
    assert_eq!((late.calls, late.estimated_calls), (2, 1), "{late:?}");
    assert!(late.input_tokens > 0, "{late:?}");
}
