//! Answers of every shape, in both wire formats.

use chorus_llm::{StopReason, StreamEvent};
use chorus_tests::model_server::{Response, Step};
use serde_json::json;

use super::{BOTH, CLAUDE, ModelServerFixture, SMALL};

/// Lays `answer` out in both formats and calls both models.
fn each(fixture: &ModelServerFixture, answer: &Response, check: impl Fn(&str, super::Called)) {
    fixture.server.anthropic().queue(answer.clone());
    fixture.server.openai().queue(answer.clone());
    for model in BOTH {
        check(model, fixture.ask(model));
    }
}

#[test]
fn text_comes_in_pieces_and_as_a_whole() {
    let fixture = ModelServerFixture::new();
    each(
        &fixture,
        &Response::text(["Hel", "lo ", "w\u{f6}rld \u{1f389}"]).usage(120, 7).cache_tokens(100, 0),
        |model, called| {
            assert_eq!(called.text(), "Hello w\u{f6}rld \u{1f389}", "{model}");
            assert_eq!(called.outputs.len(), 3, "{model}");
            let reply = called.reply();
            assert_eq!((&*reply.content, &reply.stop), ("Hello w\u{f6}rld \u{1f389}", &StopReason::End), "{model}");
            assert!(reply.tool_calls.is_empty() && reply.provider.is_none());
            let usage = reply.usage;
            assert_eq!(
                (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens),
                (Some(120), Some(7), Some(100))
            );
            assert!(usage.duration_ms.is_some());
        },
    );
}

#[test]
fn what_is_thought_between_tags_is_no_part_of_the_reply() {
    // llama.cpp without a reasoning format, in pieces: https://github.com/ggml-org/llama.cpp/issues/13867
    let fixture = ModelServerFixture::new();
    fixture.server.openai().queue(Response::text(["<thi", "nk>Let me", " see.\n</thi", "nk>\n\nHel", "lo."]));
    let called = fixture.ask(SMALL);
    let thought =
        |output: &StreamEvent| if let StreamEvent::Thinking(text) = output { Some(text.clone()) } else { None };
    assert_eq!(called.outputs.iter().filter_map(thought).collect::<String>(), "Let me see.\n");
    assert_eq!(called.text(), "Hello.");
    assert_eq!(called.reply().content, "Hello.");
}

#[test]
fn calls_come_in_parallel_with_their_parameters_digit_for_digit() {
    let fixture = ModelServerFixture::new();
    let answer = Response::text(["I look."])
        .then_call_text("c1", "view", "{\"path\": \"a\", \"n\": 1.50, \"big\": 123456789012345678901234567890}")
        .then_call("c2", "list_models", &json!({}));
    each(&fixture, &answer, |model, called| {
        let begun = called.outputs.iter().filter(|output| matches!(output, StreamEvent::ToolCall { .. })).count();
        assert_eq!(begun, 2, "{model}");
        let reply = called.reply();
        assert_eq!(reply.stop, StopReason::ToolCalls);
        let calls: Vec<_> = reply.tool_calls.iter().map(|c| (&*c.id, &*c.name, c.params.get())).collect();
        let params = "{\"path\":\"a\",\"n\":1.50,\"big\":123456789012345678901234567890}";
        assert_eq!(calls, [("c1", "view", params), ("c2", "list_models", "{}")], "{model}");
    });
}

#[test]
fn whatever_a_model_does_its_answer_is_legal() {
    let fixture = ModelServerFixture::new();
    // Nothing at all, only thinking, text after a call.
    each(&fixture, &Response::empty(), |_, called| {
        let reply = called.reply();
        assert!(reply.content.is_empty() && reply.tool_calls.is_empty() && reply.stop == StopReason::End);
    });
    each(&fixture, &Response::empty().thinking("Hm.", "sig"), |_, called| {
        assert!(called.outputs.contains(&StreamEvent::Thinking("Hm.".into())));
        let reply = called.reply();
        assert!(reply.content.is_empty() && reply.provider.is_some());
    });
    each(
        &fixture,
        &Response::text(["Before."]).then_call("c", "view", &json!({"a": 1})).then_text("After."),
        |_, called| {
            let text = called.text();
            let reply = called.reply();
            assert!(reply.content.starts_with("Before.") && reply.content.ends_with("After.") && reply.content == text);
            assert_eq!(reply.tool_calls.len(), 1);
        },
    );
    // 200 calls, some of them with the id of another, and one of a tool that nobody has.
    let many = (0..200)
        .fold(Response::empty(), |all, n| all.then_call(&format!("c{}", n / 2), "no_such_tool", &json!({"n": n})));
    each(&fixture, &many, |_, called| {
        let calls = called.reply().tool_calls;
        let ids: std::collections::BTreeSet<_> = calls.iter().map(|call| &call.id).collect();
        assert_eq!(ids.len(), 200);
        let numbers: Vec<_> = calls.iter().map(|call| call.params.get().to_owned()).collect();
        assert_eq!(numbers, (0..200).map(|n| format!("{{\"n\":{n}}}")).collect::<Vec<_>>());
    });
    // Parameters that are no JSON: the model's mistake, of which it must hear.
    each(&fixture, &Response::empty().then_call_text("c", "view", "{\"path\": oops}"), |_, called| {
        let calls = called.reply().tool_calls;
        assert_eq!(calls[0].params.get(), "\"{\\\"path\\\": oops}\"");
    });
}

#[test]
fn a_call_that_was_cut_is_left_out_and_the_text_stays() {
    let fixture = ModelServerFixture::new();
    for (model, script, word) in
        [(CLAUDE, fixture.server.anthropic(), "max_tokens"), (SMALL, fixture.server.openai(), "length")]
    {
        let whole = Response::text(["I write."]).then_call("c1", "view", &json!({"path": "a"}));
        script.queue(whole.then_call_text("c2", "create_file", "{\"path\": \"b\", \"text\": \"lon").stop_reason(word));
        let reply = fixture.ask(model).reply();
        assert_eq!((reply.stop, &*reply.content), (StopReason::MaxTokens, "I write."), "{model}");
        assert_eq!(reply.tool_calls.iter().map(|call| &*call.id).collect::<Vec<_>>(), ["c1"]);
    }
}

#[test]
fn reasons_to_stop() {
    let fixture = ModelServerFixture::new();
    for (word, stop) in [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("refusal", StopReason::Refused),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("pause_turn", StopReason::Other("pause_turn".into())),
    ] {
        fixture.server.anthropic().queue(Response::text(["x"]).stop_reason(word));
        assert_eq!(fixture.ask(CLAUDE).reply().stop, stop, "{word}");
    }
    for (word, stop) in [
        ("stop", StopReason::End),
        ("content_filter", StopReason::Refused),
        ("length", StopReason::MaxTokens),
        ("invented", StopReason::Other("invented".into())),
    ] {
        fixture.server.openai().queue(Response::text(["x"]).stop_reason(word));
        assert_eq!(fixture.ask(SMALL).reply().stop, stop, "{word}");
    }
    // Some servers say `stop` and mean that they wait for results.
    fixture.server.openai().queue(Response::tool_call("c", "view", &json!({})).stop_reason("stop"));
    assert_eq!(fixture.ask(SMALL).reply().stop, StopReason::ToolCalls);
}

#[test]
fn an_answer_in_one_piece_is_taken_too() {
    let fixture = ModelServerFixture::new();
    fixture.server.openai().queue(Response::json_body(&json!({
        "id": "x", "object": "chat.completion", "model": "small",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "Hi.",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "view", "arguments": {"a": 1}}}]}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    })));
    let called = fixture.ask(SMALL);
    assert_eq!(called.text(), "Hi.");
    let reply = called.reply();
    assert_eq!((reply.tool_calls[0].params.get(), reply.usage.output_tokens), ("{\"a\":1}", Some(4)));
    fixture.server.anthropic().queue(Response::json_body(&json!({
        "type": "message", "role": "assistant", "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2},
        "content": [{"type": "text", "text": "Hi."}, {"type": "tool_use", "id": "c", "name": "view", "input": {"a": 1.0}}],
    })));
    let reply = fixture.ask(CLAUDE).reply();
    assert_eq!((&*reply.content, reply.tool_calls[0].params.get()), ("Hi.", "{\"a\":1.0}"));
}

#[test]
fn ten_megabytes_in_one_event_pass() {
    let fixture = ModelServerFixture::new();
    each(&fixture, &Response::text(["x".repeat(10 << 20)]), |model, called| {
        assert_eq!(called.reply().content.len(), 10 << 20, "{model}");
    });
    each(&fixture, &Response::text(["x".repeat(17 << 20)]), |model, called| {
        let error = called.error();
        assert!(error.message.contains("an event of more than 16777216 bytes"), "{model}: {error}");
    });
}

#[test]
fn pings_and_comments_say_nothing() {
    let fixture = ModelServerFixture::new();
    each(&fixture, &Response::empty().step(Step::Ping).then_text("a").step(Step::Ping).then_text("b"), |_, called| {
        assert_eq!(called.reply().content, "ab");
    });
}
