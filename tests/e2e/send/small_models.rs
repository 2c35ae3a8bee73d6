//! Models that take little: a conversation is worth more than tools.

use chorus_llm::model_client;
use chorus_proto::ToolsShown;
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::ModelServer;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::{Value, json};

use super::{send, start_with_server};

/// A daemon whose model takes so many tokens, and knows it.
fn taking(window: u64) -> Fixture {
    let server = ModelServer::start();
    // As vLLM lists it.
    let listed = json!({"id": "m", "object": "model", "created": 1, "owned_by": "vllm", "max_model_len": window});
    server.set_openai_models(200, &json!({"object": "list", "data": [listed]}));
    let fixture = start_with_server(server, "local/m", "");
    wait_until("discovery", DEADLINE, || {
        fixture.home.path.join(model_client::MODEL_CATALOG_FILE).exists().then_some(())
    });
    fixture
}

/// Tokens of a request and of the longest answer to it, about: four bytes are one.
fn tokens(body: &Value) -> u64 {
    let texts: usize = body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|said| said["content"].as_str())
        .map(str::len)
        .sum();
    let tools = body["tools"].as_array().map_or(0, |tools| tools.iter().map(|tool| tool.to_string().len()).sum());
    (texts + tools) as u64 / 4 + body["max_tokens"].as_u64().unwrap_or_default()
}

#[test]
fn a_model_that_takes_little_is_shown_few_tools_and_answers() {
    for (window, tools, cut, said) in [
        (1024, 0, Some(ToolsShown::None), "no tools"),
        (2048, 5, Some(ToolsShown::Few), "few tools"),
        (4096, 5, Some(ToolsShown::Few), "few tools"),
        (8192, 15, None, "/8.1k"),
    ] {
        let fixture = taking(window);
        let mut client = fixture.client();
        for n in 0..20 {
            fixture.reply(&format!("I have counted {n} sheep in the field behind the house. "));
            let reply = send(&mut client, &format!("Count them: {n} of the sheep are black.")).expect("a turn").reply;
            assert!(reply.contains("sheep"), "{reply}");
        }
        let request = fixture.models().requests().pop().expect("a request");
        let shown = request.body["tools"].as_array().map_or(0, Vec::len);
        assert!(if cut.is_some() { shown == tools } else { shown >= tools }, "{window}: {shown} tools");
        assert!(tokens(&request.body) <= window + window / 20, "{window}: {}", tokens(&request.body));
        let messages = request.body["messages"].as_array().map_or(0, Vec::len);
        assert!(messages > 2, "{window}: {messages} messages of the conversation are shown");
        let meter = client.agent_status("a").context.expect("a context").meter.expect("a meter");
        assert_eq!((meter.window, meter.tools), (Some(window), cut));
        let text = chorusctl(&fixture.home, ["status"]).expect_success();
        assert!(text.contains(said), "{text}");
    }
}
