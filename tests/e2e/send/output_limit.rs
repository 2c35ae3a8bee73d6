//! How long an answer may be.

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use serde_json::json;

use super::send;
use crate::home;

/// The longest answer that a model without a known window is asked for, with `keys` of its provider.
fn asked_for(keys: &str) -> u64 {
    let (server, home) = (ModelServer::start(), home());
    server.set_openai_models(200, &json!({"object": "list", "data": [{"id": "untold", "object": "model"}]}));
    let daemon = Daemon::start_with(&home, &server.config_toml_with(keys));
    let mut client = daemon.client();
    let params = InitParams { name: "a".into(), model: Some("local/untold".into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
    server.openai().queue(Response::text(["Yes."]));
    send(&mut client, "Well?").expect("a turn");
    assert_eq!(client.message_texts("a").len(), 2);
    server.requests()[0].body["max_tokens"].as_u64().expect("a bound")
}

#[test]
fn a_window_that_nobody_tells_bounds_it_and_what_is_configured_goes_before() {
    // A fifth of the 15,000 tokens that an agent's model is shown.
    assert_eq!(asked_for(""), 3000);
    assert_eq!(asked_for("max_output_tokens = 500"), 500);
    assert_eq!(asked_for("max_output_tokens = 20000"), 20_000);
}
