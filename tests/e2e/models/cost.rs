//! What a call costs: as configured, else as the call itself says, else by the provider's list.

use chorus_tests::model_server::{ModelServer, Response};

use super::{CLAUDE, ModelServerFixture, SMALL};

/// The cost of a call of 1,000 tokens in, of which 600 are out of the cache and 100 into it, and 10 out.
fn cost(fixture: &ModelServerFixture, model: &str, said: Option<f64>) -> Option<f64> {
    let answer = Response::text(["x"]).usage(1000, 10).cache_tokens(600, 100);
    match said {
        None if model == CLAUDE => fixture.server.anthropic().queue(answer),
        None => fixture.server.openai().queue(answer),
        Some(cost) => {
            let usage = format!("{{\"prompt_tokens\":1000,\"completion_tokens\":10,\"cost\":{cost}}}");
            let chunk = "{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}";
            let stream = format!("data: {{\"choices\":[{chunk}],\"usage\":{usage}}}\n\ndata: [DONE]\n\n");
            fixture.server.openai().queue(Response::raw(stream));
        }
    }
    fixture.ask(model).reply().usage.cost_usd
}

fn near(found: Option<f64>, due: f64) {
    assert!(found.is_some_and(|found| (found - due).abs() < 1e-12), "{found:?} and not {due}");
}

#[test]
fn the_configuration_knows_best_then_the_call_then_the_list() {
    let server = ModelServer::start();
    let prices = "[prices.\"anthropic/claude-test\"]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write = 3.75\n\
                  [prices.\"local/small\"]\ninput = 1\noutput = 2\n";
    let config = format!("{}{prices}", server.config_toml());
    let fixture = ModelServerFixture::on(server, &config);
    near(cost(&fixture, CLAUDE, None), (300.0 * 3.0 + 600.0 * 0.3 + 100.0 * 3.75 + 10.0 * 15.0) / 1e6);
    near(cost(&fixture, SMALL, Some(0.5)), (1000.0 + 20.0) / 1e6);
    assert_eq!(cost(&fixture, "local/large", None), None, "nobody knows");
    near(cost(&fixture, "local/large", Some(0.5)), 0.5);
    fixture.runtime.block_on(fixture.models.discover());
    near(cost(&fixture, "local/large", None), (1000.0 + 20.0) / 1e6);
    near(cost(&fixture, "local/large", Some(0.5)), 0.5);
}
