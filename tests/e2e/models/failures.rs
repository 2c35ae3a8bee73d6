//! P17: a failure has its class, and a retry fits it.

use std::time::{Duration, Instant};

use chorus_tests::Hands;
use chorus_tests::model_server::{Answer, KEY, ModelServer, Step};
use chorusd::llm::{Class, Output};
use serde_json::json;

use super::{BOTH, CLAUDE, Rig, SMALL};

fn body(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}}).to_string()
}

/// The next answers in both formats.
fn lay_out(rig: &Rig, answers: &[Answer]) {
    for script in [rig.server.anthropic(), rig.server.openai()] {
        answers.iter().for_each(|answer| script.answer(answer.clone()));
    }
}

#[test]
fn what_does_not_pass_is_tried_once() {
    let rig = Rig::new();
    let mut count = 0;
    for (status, kind, message, class) in [
        (401, "authentication_error", "no such key", Class::Auth),
        (403, "permission_error", "not for you", Class::Denied),
        (404, "not_found_error", "no such model", Class::NotFound),
        (400, "invalid_request_error", "tools.0: bad", Class::BadRequest),
        (422, "invalid_request_error", "bad", Class::BadRequest),
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", Class::ContextTooLong),
        (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens", Class::ContextTooLong),
        (413, "request_too_large", "too large", Class::ContextTooLong),
        (400, "invalid_request_error", "Your credit balance is too low", Class::SpendCap),
        (429, "insufficient_quota", "You exceeded your current quota", Class::SpendCap),
        (402, "billing_error", "pay", Class::SpendCap),
        (418, "unheard_of", "?", Class::BadRequest),
    ] {
        lay_out(&rig, &[Answer::error(status, &body(kind, message)).header("retry-after", "0")]);
        for model in BOTH {
            let called = rig.ask(model);
            assert!(called.outputs.is_empty());
            let error = called.error();
            assert_eq!(error.class, class, "{model}: {error}");
            assert!(error.message.contains(message) && error.message.contains(&status.to_string()), "{error}");
            count += 1;
            assert_eq!(rig.server.requests().len(), count, "{model}: {status} {kind}");
        }
    }
}

#[test]
fn what_passes_is_tried_four_times_at_most() {
    let rig = Rig::new();
    for (status, kind, class) in [
        (429, "rate_limit_error", Class::RateLimited),
        (529, "overloaded_error", Class::Overloaded),
        (503, "overloaded_error", Class::Overloaded),
        (500, "api_error", Class::Server),
        (502, "api_error", Class::Server),
        (408, "timeout_error", Class::Server),
    ] {
        for model in BOTH {
            let refusal = Answer::error(status, &body(kind, "later"));
            let before = rig.server.requests().len();
            lay_out(&rig, &[refusal.clone(), refusal.clone(), refusal.clone(), Answer::text(["at last"])]);
            let called = rig.ask(model);
            let attempts: Vec<_> = called
                .outputs
                .iter()
                .filter_map(|output| if let Output::Retry { attempt, .. } = output { Some(*attempt) } else { None })
                .collect();
            assert_eq!(attempts, [2, 3, 4], "{model}: {status}");
            assert_eq!(called.reply().content, "at last");
            lay_out(&rig, &[refusal.clone(), refusal.clone(), refusal.clone(), refusal]);
            // The other format's answers of the first round are still there: one model at a time.
            let other = BOTH.into_iter().find(|other| *other != model).expect("another");
            assert_eq!(rig.ask(other).reply().content, "at last");
            let error = rig.ask(model).error();
            assert_eq!(error.class, class, "{error}");
            assert!(error.message.contains("tried 4 times") && error.hint.is_some(), "{error}");
            assert_eq!(rig.ask(other).error().class, class);
            assert_eq!(rig.server.requests().len() - before, 16);
        }
    }
}

#[test]
fn retry_after_is_obeyed_in_every_form_and_not_for_ever() {
    let rig = Rig::new();
    let refusal = |name: &str, value: &str| Answer::error(429, &body("rate_limit_error", "slow")).header(name, value);
    for (name, value, wait) in [("retry-after", "1", 1000), ("retry-after-ms", "300", 300), ("retry-after", "0.2", 200)]
    {
        rig.server.anthropic().answer(refusal(name, value));
        rig.server.anthropic().say(["ok"]);
        let began = Instant::now();
        let called = rig.ask(CLAUDE);
        assert!(began.elapsed() >= Duration::from_millis(wait), "{name}: {value}");
        assert!(matches!(&called.outputs[0], Output::Retry { wait: told, .. } if told.as_millis() == u128::from(wait)));
        called.reply();
    }
    let date = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let date = jiff::fmt::strtime::format("%a, %d %b %Y %H:%M:%S GMT", date).expect("a date");
    rig.server.anthropic().answer(refusal("retry-after", &date));
    rig.server.anthropic().say(["ok"]);
    let called = rig.ask(CLAUDE);
    assert!(matches!(called.outputs[0], Output::Retry { wait, .. } if wait > Duration::ZERO && wait.as_secs() <= 2));
    called.reply();
    for value in ["61", "1336", "Sun, 22 Nov 2099 08:49:37 GMT"] {
        let before = rig.server.requests().len();
        rig.server.anthropic().answer(refusal("retry-after", value));
        let error = rig.ask(CLAUDE).error();
        assert_eq!((error.class, rig.server.requests().len()), (Class::RateLimited, before + 1), "{value}");
        assert!(error.retry_after.is_some_and(|asked| asked > Duration::from_secs(60)));
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("asks to wait")), "{error:?}");
    }
    rig.server.anthropic().answer(refusal("retry-after", "1336"));
    assert!(rig.ask(CLAUDE).error().hint.is_some_and(|hint| hint.contains("22m 16s")));
}

#[test]
fn a_date_to_wait_for_is_one_of_the_daemons_clock() {
    let hands = Hands::at("2001-02-03T04:05:06Z".parse().expect("a time"));
    let server = ModelServer::start();
    let config = server.config_toml();
    let rig = Rig::by(server, &config, hands.clock());
    for (date, waits) in [("Sat, 03 Feb 2001 04:05:07 GMT", true), ("Sat, 03 Feb 2001 04:05:05 GMT", false)] {
        let refusal = Answer::error(429, &body("rate_limit_error", "slow")).header("retry-after", date);
        rig.server.anthropic().answer(refusal);
        rig.server.anthropic().say(["ok"]);
        let called = rig.ask(CLAUDE);
        let due = Duration::from_secs(u64::from(waits));
        assert!(matches!(called.outputs[0], Output::Retry { wait, .. } if wait == due), "{:?}", called.outputs);
        called.reply();
    }
}

#[test]
fn nothing_is_tried_again_once_a_part_was_handed_out() {
    let rig = Rig::new();
    for answer in [
        Answer::text(["Half an"]).cut(),
        Answer::text(["Half an"]).without_end(),
        Answer::text(["Half an"]).step(Step::Error("overloaded_error".into(), "Overloaded".into())),
        Answer::text(["Half an"]).step(Step::Raw(b"event: content_block_delta\ndata: {nonsense\n\n".to_vec())),
    ] {
        for model in BOTH {
            let before = rig.server.requests().len();
            lay_out(&rig, std::slice::from_ref(&answer));
            let called = rig.ask(model);
            assert_eq!(called.text(), "Half an");
            let error = called.error();
            assert_eq!((&*error.partial, rig.server.requests().len()), ("Half an", before + 1), "{model}: {error}");
            let other = BOTH.into_iter().find(|other| *other != model).expect("another");
            assert_eq!(rig.ask(other).error().class, error.class);
        }
    }
}

#[test]
fn a_stream_that_breaks_before_it_says_anything_is_tried_again() {
    let rig = Rig::new();
    for answer in [
        Answer::empty().cut(),
        Answer::empty().step(Step::Ping).without_end(),
        Answer::empty().step(Step::Error("overloaded_error".into(), "Overloaded".into())),
        Answer::raw(""),
    ] {
        lay_out(&rig, &[answer, Answer::text(["whole"])]);
        for model in BOTH {
            assert_eq!(rig.ask(model).reply().content, "whole", "{model}");
        }
    }
}

#[test]
fn what_nobody_expects_is_an_error_that_can_be_read() {
    let rig = Rig::new();
    rig.server.anthropic().answer(Answer::error(302, "").header("location", "https://elsewhere.example/v1"));
    let error = rig.ask(CLAUDE).error();
    assert!(error.message.contains("redirects to https://elsewhere.example/v1"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("base_url")));
    rig.server.openai().answer(Answer::error(200, "<html>hello</html>"));
    assert_eq!(rig.ask(SMALL).error().class, Class::Malformed);
    rig.server.openai().answer(Answer::raw("<html>hello</html>").header("content-type", "text/html"));
    let error = rig.ask(SMALL).error();
    assert!(error.class == Class::Malformed && error.message.contains("a web page"), "{error}");
    rig.server.anthropic().answer(Answer::error(200, &body("overloaded_error", "busy")));
    rig.server.anthropic().say(["ok"]);
    assert_eq!(rig.ask(CLAUDE).reply().content, "ok");
    rig.server.openai().answer(Answer::error(403, &format!("<html>{}</html>", "x".repeat(200_000))));
    let error = rig.ask(SMALL).error();
    assert!(error.class == Class::Denied && error.message.len() < 1000, "{}", error.message.len());
}

#[test]
fn a_key_that_a_server_says_back_is_not_passed_on() {
    let rig = Rig::new();
    rig.server.anthropic().answer(Answer::error(401, &body("authentication_error", &format!("{KEY} is no key"))));
    let error = rig.ask(CLAUDE).error();
    assert!(error.message.contains("[redacted] is no key"), "{error}");
    let refusal = body("overloaded_error", &format!("busy, {KEY}"));
    (0..4).for_each(|_| rig.server.anthropic().answer(Answer::error(529, &refusal)));
    let called = rig.ask(CLAUDE);
    assert!(!format!("{:?}", called.outputs).contains(KEY));
    assert!(!format!("{:?}", called.error()).contains(KEY));
}

#[test]
fn a_server_that_is_not_there_says_so() {
    let rig = Rig::on(ModelServer::start(), "[providers.gone]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\n");
    let error = rig.ask("gone/x").error();
    assert_eq!(error.class, Class::Network);
    assert!(error.message.contains("cannot reach gone (http://127.0.0.1:1): Connection refused"), "{error}");
    assert!(error.hint.is_some_and(|hint| hint.contains("start the server")));
    assert_eq!(rig.ask("nobody/x").error().class, Class::NotFound);
}
