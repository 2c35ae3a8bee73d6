//! Streams as the providers' public documentation shows them: tests/fixtures/streams.

use std::fs;
use std::path::Path;

use chorus_llm::{ErrorClass, StopReason, StreamEvent};
use chorus_tests::model_server::Response;
use serde_json::Value;

use super::{CLAUDE, Called, ModelServerFixture, SMALL};

fn bytes(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/streams").join(name)).expect("a capture")
}

/// What the capture `name` is to whoever calls, with the line ends `ends`.
fn play(fixture: &ModelServerFixture, name: &str, ends: &str) -> Called {
    let text = String::from_utf8(bytes(name)).expect("text").replace('\n', ends);
    let (model, script) = if name.starts_with("anthropic") {
        (CLAUDE, fixture.server.anthropic())
    } else {
        (SMALL, fixture.server.openai())
    };
    script.queue(Response::raw(text));
    fixture.ask(model)
}

/// Calls as `name params`.
fn calls(fixture: &ModelServerFixture, name: &str) -> (Vec<String>, StopReason) {
    let reply = play(fixture, name, "\n").reply();
    (reply.tool_calls.iter().map(|call| format!("{} {}", call.name, call.params.get())).collect(), reply.stop)
}

#[test]
fn text_with_every_kind_of_line_end() {
    let fixture = ModelServerFixture::new();
    for ends in ["\n", "\r\n", "\r"] {
        for (name, cached) in [("anthropic_text.sse", None), ("openai_text.sse", Some(20))] {
            let called = play(&fixture, name, ends);
            assert_eq!(called.outputs, ["Hello", "!"].map(|text| StreamEvent::Text(text.into())), "{name}");
            let reply = called.reply();
            assert_eq!((&*reply.content, reply.stop), ("Hello!", StopReason::End));
            let usage = reply.usage;
            assert_eq!(
                (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens),
                (Some(25), Some(15), cached)
            );
        }
    }
}

#[test]
fn calls_of_every_server() {
    let fixture = ModelServerFixture::new();
    let (found, stop) = calls(&fixture, "anthropic_tools.sse");
    assert_eq!(found, [r#"get_weather {"location":"San Francisco, CA","days":1.0}"#, "get_time {}"]);
    assert_eq!(stop, StopReason::ToolCalls);
    let (found, stop) = calls(&fixture, "openai_tools.sse");
    assert_eq!(found, [r#"get_weather {"location":"Paris, France","days":1.0}"#, "get_time {}"]);
    assert_eq!(stop, StopReason::ToolCalls);
    // Without end marker, all with the index 0, one without an id and with an object for its arguments.
    let (found, stop) = calls(&fixture, "openai_whole_calls.sse");
    assert_eq!(found, [r#"get_weather {"location":"Paris"}"#, "get_time {}", r#"get_date {"zone":"UTC"}"#]);
    assert_eq!(stop, StopReason::ToolCalls);
    let usage = play(&fixture, "anthropic_tools.sse", "\n").reply();
    assert_eq!((usage.usage.input_tokens, usage.cache_write_tokens), (Some(2572), Some(100)), "all of the input");
}

#[test]
fn thinking_is_kept_as_it_came() {
    let fixture = ModelServerFixture::new();
    let reply = play(&fixture, "anthropic_thinking.sse", "\n").reply();
    let kept: Value = serde_json::from_str(reply.provider.expect("blocks").get()).expect("JSON");
    assert_eq!((&kept["kind"], &kept["provider"]), (&"anthropic".into(), &"anthropic".into()));
    let blocks = &kept["blocks"];
    let thought = "Let me solve this step by step:\n\n1. First break down 27 * 453\n2. 453 = 400 + 50 + 3";
    assert_eq!(blocks[0]["thinking"], thought);
    assert_eq!(blocks[0]["signature"], "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds...");
    assert_eq!(blocks[1]["data"], "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP");
    assert_eq!(reply.content, "27 * 453 = 12,231");

    let called = play(&fixture, "openai_reasoning.sse", "\n");
    assert_eq!(called.outputs[0], StreamEvent::Thinking("The user ".into()));
    let reply = called.reply();
    let kept: Value = serde_json::from_str(reply.provider.expect("blocks").get()).expect("JSON");
    assert_eq!(kept["blocks"][0]["reasoning_details"].as_array().map(Vec::len), Some(2));
    assert_eq!((&*reply.content, reply.usage.cost_usd), ("Hello!", Some(0.00014)));
}

#[test]
fn errors_in_mid_stream() {
    let fixture = ModelServerFixture::new();
    for (name, class, said) in [
        ("anthropic_error.sse", ErrorClass::Overloaded, "Overloaded"),
        ("openai_error.sse", ErrorClass::Server, "Provider disconnected unexpectedly"),
    ] {
        let error = play(&fixture, name, "\n").error();
        assert_eq!((error.class, &*error.partial), (class, "Half"), "{name}");
        assert!(error.message.contains(said), "{error}");
        // What was counted before is paid for.
        let counted = error.usage.and_then(|usage| usage.input_tokens);
        assert_eq!(counted, name.starts_with("anthropic").then_some(25));
    }
}

/// Wherever a stream is cut, there is either the whole answer or an error with what had arrived.
#[test]
fn cut_anywhere() {
    let fixture = ModelServerFixture::new();
    for (name, text) in [("anthropic_text.sse", "Hello!"), ("openai_text.sse", "Hello!")] {
        let whole = bytes(name);
        for end in (1..whole.len()).step_by(37) {
            let (model, script) = if name.starts_with("anthropic") {
                (CLAUDE, fixture.server.anthropic())
            } else {
                (SMALL, fixture.server.openai())
            };
            script.queue(Response::raw(&whole[..end]));
            script.set_fallback(Response::error(400, "{}"));
            match fixture.ask(model).result {
                Ok(reply) => assert_eq!(reply.content, text, "{name} cut at {end}"),
                Err(error) => assert!(text.starts_with(&error.partial), "{name} cut at {end}: {error:?}"),
            }
        }
    }
}
