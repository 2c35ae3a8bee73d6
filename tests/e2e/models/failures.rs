//! P17: a failure has its class, and a retry fits it.

use std::time::{Duration, Instant};

use chorus_llm::{CallError, ErrorClass, ModelRef, ModelRequest, StreamEvent};
use chorus_proto::{Attachment, Message};
use chorus_tests::ManualClock;
use chorus_tests::model_server::{API_KEY, ModelServer, Response, Step};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{BOTH, CLAUDE, ModelServerFixture, SMALL, request, user};

fn body(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}}).to_string()
}

/// The next answers in both formats.
fn lay_out(fixture: &ModelServerFixture, answers: &[Response]) {
    for script in [fixture.server.anthropic(), fixture.server.openai()] {
        answers.iter().for_each(|answer| script.queue(answer.clone()));
    }
}

#[test]
fn what_does_not_pass_is_tried_once() {
    let fixture = ModelServerFixture::new();
    let mut count = 0;
    for (status, kind, message, class) in [
        (401, "authentication_error", "no such key", ErrorClass::Auth),
        (403, "permission_error", "not for you", ErrorClass::Denied),
        (404, "not_found_error", "no such model", ErrorClass::NotFound),
        (400, "invalid_request_error", "tools.0: bad", ErrorClass::BadRequest),
        (422, "invalid_request_error", "bad", ErrorClass::BadRequest),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            ErrorClass::ContextTooLong,
        ),
        (
            400,
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens",
            ErrorClass::ContextTooLong,
        ),
        (413, "request_too_large", "too large", ErrorClass::ContextTooLong),
        (400, "invalid_request_error", "Your credit balance is too low", ErrorClass::SpendCap),
        (429, "insufficient_quota", "You exceeded your current quota", ErrorClass::SpendCap),
        (402, "billing_error", "pay", ErrorClass::SpendCap),
        (418, "unheard_of", "?", ErrorClass::BadRequest),
    ] {
        lay_out(&fixture, &[Response::error(status, &body(kind, message)).header("retry-after", "0")]);
        for model in BOTH {
            let called = fixture.ask(model);
            assert!(called.outputs.is_empty());
            let error = called.error();
            assert_eq!(error.class, class, "{model}: {error}");
            assert!(error.message.contains(message) && error.message.contains(&status.to_string()), "{error}");
            count += 1;
            assert_eq!(fixture.server.requests().len(), count, "{model}: {status} {kind}");
        }
    }
}

#[test]
fn what_passes_is_tried_four_times_at_most() {
    let fixture = ModelServerFixture::new();
    for (status, kind, class) in [
        (429, "rate_limit_error", ErrorClass::RateLimited),
        (529, "overloaded_error", ErrorClass::Overloaded),
        (503, "overloaded_error", ErrorClass::Overloaded),
        (500, "api_error", ErrorClass::Server),
        (502, "api_error", ErrorClass::Server),
        (408, "timeout_error", ErrorClass::Server),
    ] {
        for model in BOTH {
            let refusal = Response::error(status, &body(kind, "later"));
            let before = fixture.server.requests().len();
            lay_out(&fixture, &[refusal.clone(), refusal.clone(), refusal.clone(), Response::text(["at last"])]);
            let called = fixture.ask(model);
            let attempts: Vec<_> = called
                .outputs
                .iter()
                .filter_map(
                    |output| if let StreamEvent::Retry { attempt, .. } = output { Some(*attempt) } else { None },
                )
                .collect();
            assert_eq!(attempts, [2, 3, 4], "{model}: {status}");
            assert_eq!(called.reply().content, "at last");
            lay_out(&fixture, &[refusal.clone(), refusal.clone(), refusal.clone(), refusal]);
            // The other format's answers of the first round are still there: one model at a time.
            let other = BOTH.into_iter().find(|other| *other != model).expect("another");
            assert_eq!(fixture.ask(other).reply().content, "at last");
            let error = fixture.ask(model).error();
            assert_eq!(error.class, class, "{error}");
            assert!(error.message.contains("tried 4 times") && error.hint.is_some(), "{error}");
            assert_eq!(fixture.ask(other).error().class, class);
            assert_eq!(fixture.server.requests().len() - before, 16);
        }
    }
}

#[test]
fn retry_after_is_obeyed_in_every_form_and_not_for_ever() {
    let fixture = ModelServerFixture::new();
    let refusal = |name: &str, value: &str| Response::error(429, &body("rate_limit_error", "slow")).header(name, value);
    for (name, value, wait) in [("retry-after", "1", 1000), ("retry-after-ms", "300", 300), ("retry-after", "0.2", 200)]
    {
        fixture.server.anthropic().queue(refusal(name, value));
        fixture.server.anthropic().queue_text(["ok"]);
        let began = Instant::now();
        let called = fixture.ask(CLAUDE);
        assert!(began.elapsed() >= Duration::from_millis(wait), "{name}: {value}");
        assert!(
            matches!(&called.outputs[0], StreamEvent::Retry { wait: told, .. } if told.as_millis() == u128::from(wait))
        );
        called.reply();
    }
    let date = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let date = jiff::fmt::strtime::format("%a, %d %b %Y %H:%M:%S GMT", date).expect("a date");
    fixture.server.anthropic().queue(refusal("retry-after", &date));
    fixture.server.anthropic().queue_text(["ok"]);
    let called = fixture.ask(CLAUDE);
    assert!(
        matches!(called.outputs[0], StreamEvent::Retry { wait, .. } if wait > Duration::ZERO && wait.as_secs() <= 2)
    );
    called.reply();
    for value in ["61", "1336", "Sun, 22 Nov 2099 08:49:37 GMT"] {
        let before = fixture.server.requests().len();
        fixture.server.anthropic().queue(refusal("retry-after", value));
        let error = fixture.ask(CLAUDE).error();
        assert_eq!((error.class, fixture.server.requests().len()), (ErrorClass::RateLimited, before + 1), "{value}");
        assert!(error.retry_after.is_some_and(|asked| asked > Duration::from_secs(60)));
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("requests a wait")), "{error:?}");
    }
    fixture.server.anthropic().queue(refusal("retry-after", "1336"));
    assert!(fixture.ask(CLAUDE).error().hint.is_some_and(|hint| hint.contains("22m 16s")));
}

#[test]
fn a_date_to_wait_for_is_one_of_the_daemons_clock() {
    let hands = ManualClock::new("2001-02-03T04:05:06Z".parse().expect("a time"));
    let server = ModelServer::start();
    let config = server.config_toml();
    let fixture = ModelServerFixture::by(server, &config, hands.clock());
    for (date, waits) in [("Sat, 03 Feb 2001 04:05:07 GMT", true), ("Sat, 03 Feb 2001 04:05:05 GMT", false)] {
        let refusal = Response::error(429, &body("rate_limit_error", "slow")).header("retry-after", date);
        fixture.server.anthropic().queue(refusal);
        fixture.server.anthropic().queue_text(["ok"]);
        let called = fixture.ask(CLAUDE);
        let due = Duration::from_secs(u64::from(waits));
        assert!(matches!(called.outputs[0], StreamEvent::Retry { wait, .. } if wait == due), "{:?}", called.outputs);
        called.reply();
    }
}

#[test]
fn nothing_is_tried_again_once_a_part_was_handed_out() {
    let fixture = ModelServerFixture::new();
    for answer in [
        Response::text(["Half an"]).disconnect(),
        Response::text(["Half an"]).without_final_event(),
        Response::text(["Half an"]).step(Step::Error("overloaded_error".into(), "Overloaded".into())),
        Response::text(["Half an"]).step(Step::Raw(b"event: content_block_delta\ndata: {nonsense\n\n".to_vec())),
    ] {
        for model in BOTH {
            let before = fixture.server.requests().len();
            lay_out(&fixture, std::slice::from_ref(&answer));
            let called = fixture.ask(model);
            assert_eq!(called.text(), "Half an");
            let error = called.error();
            assert_eq!((&*error.partial, fixture.server.requests().len()), ("Half an", before + 1), "{model}: {error}");
            let other = BOTH.into_iter().find(|other| *other != model).expect("another");
            assert_eq!(fixture.ask(other).error().class, error.class);
        }
    }
}

#[test]
fn a_stream_that_breaks_before_it_says_anything_is_tried_again() {
    let fixture = ModelServerFixture::new();
    for answer in [
        Response::empty().disconnect(),
        Response::empty().step(Step::Ping).without_final_event(),
        Response::empty().step(Step::Error("overloaded_error".into(), "Overloaded".into())),
        Response::raw(""),
    ] {
        lay_out(&fixture, &[answer, Response::text(["whole"])]);
        for model in BOTH {
            assert_eq!(fixture.ask(model).reply().content, "whole", "{model}");
        }
    }
}

#[test]
fn what_nobody_expects_is_an_error_that_can_be_read() {
    let fixture = ModelServerFixture::new();
    fixture.server.anthropic().queue(Response::error(302, "").header("location", "https://elsewhere.example/v1"));
    let error = fixture.ask(CLAUDE).error();
    assert!(error.message.contains("redirects to https://elsewhere.example/v1"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("base_url")));
    fixture.server.openai().queue(Response::error(200, "<html>hello</html>"));
    assert_eq!(fixture.ask(SMALL).error().class, ErrorClass::Malformed);
    fixture.server.openai().queue(Response::raw("<html>hello</html>").header("content-type", "text/html"));
    let error = fixture.ask(SMALL).error();
    assert!(error.class == ErrorClass::Malformed && error.message.contains("a web page"), "{error}");
    fixture.server.anthropic().queue(Response::error(200, &body("overloaded_error", "busy")));
    fixture.server.anthropic().queue_text(["ok"]);
    assert_eq!(fixture.ask(CLAUDE).reply().content, "ok");
    fixture.server.openai().queue(Response::error(403, &format!("<html>{}</html>", "x".repeat(200_000))));
    let error = fixture.ask(SMALL).error();
    assert!(error.class == ErrorClass::Denied && error.message.len() < 1000, "{}", error.message.len());
}

#[test]
fn a_key_that_a_server_says_back_is_not_passed_on() {
    let fixture = ModelServerFixture::new();
    fixture
        .server
        .anthropic()
        .queue(Response::error(401, &body("authentication_error", &format!("{API_KEY} is no key"))));
    let error = fixture.ask(CLAUDE).error();
    assert!(error.message.contains("[redacted] is no key"), "{error}");
    let refusal = body("overloaded_error", &format!("busy, {API_KEY}"));
    (0..4).for_each(|_| fixture.server.anthropic().queue(Response::error(529, &refusal)));
    let called = fixture.ask(CLAUDE);
    assert!(!format!("{:?}", called.outputs).contains(API_KEY));
    assert!(!format!("{:?}", called.error()).contains(API_KEY));
}

/// Calls by a clock that moves on by `step` whenever the server is waited for; what was told meanwhile.
fn call_by_hand(
    fixture: &ModelServerFixture,
    hands: &ManualClock,
    model: &str,
    step: Duration,
) -> (Result<String, CallError>, Vec<String>) {
    let target = ModelRef::parse(model).expect("a model");
    let (notes, mut told) = mpsc::channel(256);
    let models = fixture.models.clone();
    let calling = fixture.runtime.spawn(async move {
        let hear = |output| _ = notes.try_send(output);
        models.call(&target, &request("Hello?"), &hear, CancellationToken::new()).await
    });
    let mut heard = Vec::new();
    while let Some(output) = told.blocking_recv() {
        if let StreamEvent::Note(note) = output {
            heard.push(note);
            hands.advance(step);
        }
    }
    (fixture.runtime.block_on(calling).expect("the call").map(|reply| reply.content), heard)
}

const GONE: &str = "[providers.gone]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n";

#[test]
fn a_server_that_is_not_there_is_waited_for_and_then_says_so() {
    let hands = ManualClock::new("2001-02-03T04:05:06Z".parse().expect("a time"));
    let fixture = ModelServerFixture::by(ModelServer::start(), GONE, hands.clock());
    let (result, told) = call_by_hand(&fixture, &hands, "gone/x", Duration::from_secs(12));
    let error = result.expect_err("nobody");
    assert_eq!(error.class, ErrorClass::ConnectionRefused);
    assert!(error.message.contains("cannot reach gone (http://127.0.0.1:1): Connection refused"), "{error}");
    assert!(error.message.ends_with("(waited 60 s)"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("start the server")));
    let due = [0, 12, 24, 36, 48].map(|s| format!("the server gone is not responding yet (connection refused), {s} s"));
    assert_eq!(told, due);
    assert_eq!(fixture.ask("nobody/x").error().class, ErrorClass::NotFound);
    let fixture = ModelServerFixture::on(ModelServer::start(), &format!("{GONE}start_timeout = \"0\"\n"));
    assert!(fixture.ask("gone/x").error().message.ends_with("(tried 4 times)"), "as for any other failure");
}

#[test]
fn a_server_that_loads_its_model_is_waited_for() {
    // mostlygeek/llama-swap#146.
    let loading = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    let hands = ManualClock::new("2001-02-03T04:05:06Z".parse().expect("a time"));
    let server = ModelServer::start();
    let config = server.config_toml();
    let fixture = ModelServerFixture::by(server, &config, hands.clock());
    (0..7).for_each(|_| fixture.server.openai().queue(Response::error(503, loading)));
    fixture.server.openai().queue_text(["I am up."]);
    let (result, told) = call_by_hand(&fixture, &hands, SMALL, Duration::from_secs(8));
    assert_eq!(result.as_deref(), Ok("I am up."));
    assert_eq!(told.len(), 7, "more often than other failures are tried again");
    assert_eq!(told[2], "the server local is loading the model, 16 s");
    // One that never ends is given up after a minute.
    fixture.server.openai().set_fallback(Response::error(503, loading));
    let (result, told) = call_by_hand(&fixture, &hands, SMALL, Duration::from_secs(20));
    assert!(result.is_err_and(|error| error.class == ErrorClass::Loading && error.message.ends_with("(waited 60 s)")));
    assert_eq!(told.len(), 3);
}

#[test]
fn an_answer_that_would_be_too_long_is_asked_for_at_less_length() {
    // stepfun-ai/Step-Audio-R1#3 (vLLM).
    let left = r#"{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 4096 tokens and your request has 3700 input tokens (1000 > 4096 - 3700).","type":"BadRequestError","param":null,"code":400}"#;
    // ChatGPTNextWeb/NextChat#4964.
    let most = body(
        "invalid_request_error",
        "max_tokens: 1000 > 300, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20240620",
    );
    for (refused, later) in [(left, 1000), (&*most, 256)] {
        for model in BOTH {
            let fixture = ModelServerFixture::new();
            let asked = || -> Vec<u64> {
                fixture.server.requests().iter().filter_map(|request| request.body["max_tokens"].as_u64()).collect()
            };
            let refusal = Response::error(400, refused);
            lay_out(
                &fixture,
                &[refusal.clone(), refusal.clone(), Response::text(["Short."]), Response::text(["Short."])],
            );
            assert_eq!(fixture.ask(model).reply().content, "Short.");
            assert_eq!(asked(), [1000, 500, 256]);
            fixture.ask(model).reply();
            assert_eq!(asked().pop(), Some(later), "what holds for every prompt is remembered");
            lay_out(&fixture, &[refusal.clone(), refusal.clone(), refusal]);
            assert_eq!(fixture.ask(model).error().class, ErrorClass::ContextTooLong, "no answer is short enough");
        }
    }
}

/// What servers say to an image whose model takes none, and where that was reported.
const NO_IMAGES: [(u16, &str, &str); 8] = [
    (
        500,
        r#"{"error":{"code":500,"message":"image input is not supported by this server","type":"server_error"}}"#,
        "ggml-org/llama.cpp#13566",
    ),
    (
        500,
        r#"{"error":{"code":500,"message":"Failed to parse messages: Unsupported content part type: \"image_url\"; messages = []","type":"server_error"}}"#,
        "ggml-org/llama.cpp#12947",
    ),
    (
        400,
        r#"{"object":"error","message":"facebook/opt-125m is not a multimodal model None","type":"BadRequestError","param":null,"code":400}"#,
        "studio-dots-ai/dots.ocr#61 (vLLM)",
    ),
    (
        400,
        r#"{"error":"Model does not support images. Please use a model that does."}"#,
        "lmstudio-ai/lmstudio-bug-tracker#908",
    ),
    (
        400,
        r#"{"error":{"message":"this model does not support image input (ref: b8bd630e)","type":"api_error","param":null,"code":null}}"#,
        "ollama/ollama#17301",
    ),
    (
        404,
        r#"{"error":{"code":"404","message":"No endpoints found that support image input","param":"","type":""}}"#,
        "JohnnyZ93/oai-compatible-copilot#229, NousResearch/hermes-agent#23411 (OpenRouter)",
    ),
    (
        400,
        r#"{"error":{"message":"Failed to deserialize the JSON body into the target type: messages[7]: unknown variant `image_url`, expected `text` at line 1 column 114708","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}"#,
        "1jehuang/jcode#310 (DeepSeek)",
    ),
    (
        400,
        r#"{"error":{"message":"'messages.0' : for 'role:user' the following must be satisfied[('messages.0.content' : value must be a string)] message[0].content must be a string","type":"invalid_request_error"}}"#,
        "vercel/ai#2837 (Groq)",
    ),
];

#[test]
fn a_model_that_takes_no_images_is_asked_again_in_words() {
    for (status, body, source) in NO_IMAGES {
        for model in BOTH {
            let fixture = ModelServerFixture::new();
            lay_out(&fixture, &[Response::error(status, body), Response::text(["a cat"])]);
            let image = Attachment {
                name: "cat.png".into(),
                media_type: Some("image/png".into()),
                size: Some(48_000),
                path: None,
                url: Some("https://example.org/cat.png".into()),
                data: None,
            };
            let message = Message { attachments: vec![image], ..user("What is this?") };
            let called = fixture
                .call(model, &ModelRequest { messages: vec![message], max_tokens: 10, ..ModelRequest::default() });
            assert!(
                matches!(&called.outputs[0], StreamEvent::Note(note) if note.contains("does not accept images")),
                "{source}"
            );
            assert_eq!(called.reply().content, "a cat", "{source}");
            let asked = fixture.server.requests();
            assert_eq!(asked.len(), 2, "{source}");
            assert!(asked[0].text.contains("example.org") && !asked[1].text.contains("example.org"), "{source}");
            assert!(
                asked[1].text.contains("[image cat.png, 48 kB: this model does not accept images]"),
                "{}",
                asked[1].text
            );
            // Where there is no image to leave out, something else is wrong with the request.
            let other = BOTH.into_iter().find(|other| *other != model).expect("another");
            let refused = fixture.ask(other).error();
            assert_eq!(refused.class, ErrorClass::BadRequest, "{source}");
            assert!(!refused.message.contains("does not accept images"), "{source}: {}", refused.message);
        }
    }
}
