//! A real server, where there is one: `CHORUS_TEST_OPENAI_URL` (for example http://127.0.0.1:8080/v1), and
//! `CHORUS_TEST_OPENAI_MODEL` where it has more than one model. docs/OPERATIONS.md says how to start one.

use chorus_llm::{DiscoveryStatus, ModelRequest};
use chorus_tests::model_server::ModelServer;
use chorus_tests::{Need, skip_without};

use super::{ModelServerFixture, request};

#[test]
fn a_real_server_lists_its_models_and_answers() {
    let Ok(url) = std::env::var("CHORUS_TEST_OPENAI_URL") else {
        return skip_without(Need::ModelServer, "CHORUS_TEST_OPENAI_URL names no server");
    };
    let config = format!("[providers.real]\nkind = \"openai\"\nbase_url = \"{url}\"\nfirst_byte_timeout = \"10m\"\n");
    let fixture = ModelServerFixture::on(ModelServer::start(), &config);
    let found = fixture.runtime.block_on(fixture.models.discover());
    assert_eq!(found.providers[0].found, DiscoveryStatus::Ok, "{:?}", found.providers[0].problem);
    let model = std::env::var("CHORUS_TEST_OPENAI_MODEL").unwrap_or_else(|_| found.providers[0].models[0].id.clone());
    let request = ModelRequest { system: vec!["Answer in one word.".into()], max_tokens: 64, ..request("Say hello.") };
    let called = fixture.call(&format!("real/{model}"), &request);
    assert!(!called.outputs.is_empty());
    assert!(called.reply().usage.output_tokens.is_some_and(|tokens| tokens > 0));
}
