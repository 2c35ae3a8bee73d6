//! P16: a call that stalls ends at its limit, and the next one works. Cancelling ends one at once.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use chorus_llm::{ErrorClass, ModelRef, StreamEvent};
use chorus_tests::model_server::{ModelServer, Response, Step};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{BOTH, CLAUDE, Called, ModelServerFixture, about, request};

const LIMITS: &str = "first_byte_timeout = \"600ms\"\nidle_timeout = \"900ms\"\ntotal_timeout = \"1500ms\"";
const FIRST_BYTE: Duration = Duration::from_millis(600);
const IDLE: Duration = Duration::from_millis(900);
const TOTAL: Duration = Duration::from_millis(1500);

/// Both models with this answer: each ends with a time-out after `due`, hangs up, and answers the next call.
fn stalls(answer: &Response, due: Duration, key: &str) {
    let fixture = ModelServerFixture::with(LIMITS);
    let mut hung_up = 0;
    for model in BOTH {
        for script in [fixture.server.anthropic(), fixture.server.openai()] {
            script.set_fallback(answer.clone());
        }
        let (called, took) = timed(&fixture, model, due, &mut hung_up);
        let text = called.text();
        let error = called.error();
        assert_eq!((error.class, &error.partial), (ErrorClass::Timeout, &text), "{model}: {error}");
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains(key)), "{model}: {error:?}");
        assert!(about(took, due), "{model}: {took:?} and not {due:?}");
        for script in [fixture.server.anthropic(), fixture.server.openai()] {
            script.set_fallback(Response::text(["fine"]));
        }
        assert_eq!(fixture.ask(model).reply().content, "fine");
    }
}

/// Calls, and how long it took: never shorter than it should, and where the machine was busy, the best of a few times.
fn timed(fixture: &ModelServerFixture, model: &str, due: Duration, hung_up: &mut usize) -> (Called, Duration) {
    let mut tries = 0;
    loop {
        tries += 1;
        let before = fixture.server.requests().len();
        let began = Instant::now();
        let called = fixture.ask(model);
        let took = began.elapsed();
        assert_eq!(fixture.server.requests().len(), before + 1, "a limit is not waited for again");
        *hung_up += 1;
        fixture.server.wait_for_hang_ups(*hung_up);
        if tries == 4 || about(took, due) || took < due {
            return (called, took);
        }
    }
}

#[test]
fn after_the_headers() {
    stalls(&Response::empty().stall(), FIRST_BYTE, "first_byte_timeout");
}

#[test]
fn after_some_events() {
    stalls(&Response::text(["a", "b", "c"]).stall(), IDLE, "idle_timeout");
}

#[test]
fn with_nothing_but_pings() {
    stalls(&Response::text(["a"]).step(Step::Pings(Duration::from_millis(100))), IDLE, "idle_timeout");
}

#[test]
fn byte_by_byte() {
    stalls(&Response::text(["a"]).step(Step::Drip(Duration::from_millis(50))).then_text("b"), IDLE, "idle_timeout");
}

#[test]
fn for_ever_but_always_on_the_move() {
    let pause = || Step::Pause(Duration::from_millis(200));
    let answer = (0..50).fold(Response::text(["a"]), |answer, _| answer.step(pause()).then_text("."));
    stalls(&answer, TOTAL, "total_timeout");
}

#[test]
fn without_a_connection() {
    // Nobody answers the greeting of TLS.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its number");
    let config =
        format!("[providers.dumb]\nkind = \"openai\"\nbase_url = \"https://{address}\"\nconnect_timeout = \"300ms\"\n");
    let fixture = ModelServerFixture::on(ModelServer::start(), &config);
    let began = Instant::now();
    let error = fixture.ask("dumb/x").error();
    assert_eq!(error.class, ErrorClass::Network, "{error}");
    assert!(error.message.contains("no connection to dumb") && error.message.contains("within 300ms"), "{error}");
    // Four tries, for it may pass; a busy machine takes longer over each.
    assert!(began.elapsed() >= Duration::from_millis(1080), "{:?}", began.elapsed());
}

#[test]
fn cancelling_closes_the_connection_at_once() {
    let fixture = ModelServerFixture::new();
    for (count, model) in BOTH.into_iter().enumerate() {
        for script in [fixture.server.anthropic(), fixture.server.openai()] {
            script.set_fallback(Response::text(["Half"]).stall());
        }
        let target = ModelRef::parse(model).expect("a model");
        let (outputs, mut taken) = mpsc::channel(8);
        let cancel = CancellationToken::new();
        let (models, stop) = (fixture.models.clone(), cancel.clone());
        let calling = fixture.runtime.spawn(async move {
            let hear = |output| _ = outputs.try_send(output);
            models.call(&target, &request("Hi."), &hear, stop).await
        });
        assert_eq!(taken.blocking_recv(), Some(StreamEvent::Text("Half".into())));
        let began = Instant::now();
        cancel.cancel();
        let error = fixture.runtime.block_on(calling).expect("the call").expect_err("a cancelled call");
        assert_eq!((error.class, &*error.partial), (ErrorClass::Cancelled, "Half"));
        fixture.server.wait_for_hang_ups(count + 1);
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    }
}

#[test]
fn dropping_a_call_and_cancelling_a_wait() {
    let fixture = ModelServerFixture::new();
    fixture.server.anthropic().queue(Response::text(["Half"]).stall());
    let target = ModelRef::parse(CLAUDE).expect("a model");
    let (outputs, mut taken) = mpsc::channel(8);
    let (models, to) = (fixture.models.clone(), target.clone());
    let calling = fixture.runtime.spawn(async move {
        let hear = |output| _ = outputs.try_send(output);
        models.call(&to, &request("Hi."), &hear, CancellationToken::new()).await
    });
    assert!(taken.blocking_recv().is_some());
    calling.abort();
    fixture.server.wait_for_hang_ups(1);
    // While it waits for the next try, it ends at once too.
    fixture.server.anthropic().set_fallback(Response::error(429, "{}").header("retry-after", "50"));
    let (outputs, mut taken) = mpsc::channel(8);
    let cancel = CancellationToken::new();
    let (models, stop) = (fixture.models.clone(), cancel.clone());
    let calling = fixture.runtime.spawn(async move {
        let hear = |output| _ = outputs.try_send(output);
        models.call(&target, &request("Hi."), &hear, stop).await
    });
    assert!(matches!(taken.blocking_recv(), Some(StreamEvent::Retry { attempt: 2, .. })));
    cancel.cancel();
    let ended = fixture.runtime.block_on(calling).expect("the call");
    assert_eq!(ended.expect_err("a cancelled call").class, ErrorClass::Cancelled);
}

#[test]
fn a_connection_is_used_again_after_an_answer() {
    let fixture = ModelServerFixture::new();
    for script in [fixture.server.anthropic(), fixture.server.openai()] {
        script.set_fallback(Response::text(["ok"]));
    }
    // The end of an answer is read beside the caller: a few calls may begin before it was.
    for _ in 0..20 {
        fixture.ask(CLAUDE).reply();
    }
    let connections: std::collections::BTreeSet<_> = fixture.server.requests().iter().map(|r| r.connection).collect();
    assert!(connections.len() < 20, "every call made a connection of its own");
}

#[test]
fn a_flood_of_pings_is_no_answer() {
    stalls(&Response::text(["a"]).step(Step::Pings(Duration::ZERO)), IDLE, "idle_timeout");
}

#[test]
fn an_answer_without_end_is_cut_and_what_came_is_kept() {
    let fixture = ModelServerFixture::new();
    let piece = "x".repeat(1 << 20);
    let text = (0..40).fold(Response::empty(), |answer, _| answer.then_text(&piece));
    let thinking = (0..40).fold(Response::empty(), |answer, _| answer.step(Step::Thinking(piece.clone())));
    let params = Response::empty().then_call_text("c1", "view", &format!("{{\"path\": \"{}\"}}", piece.repeat(13)));
    for (answer, kept) in [(text, 12..14), (thinking, 0..1), (params, 0..1)] {
        for model in BOTH {
            for script in [fixture.server.anthropic(), fixture.server.openai()] {
                script.set_fallback(answer.clone());
            }
            let error = fixture.ask(model).error();
            assert_eq!(error.class, ErrorClass::Malformed, "{model}: {error}");
            assert!(error.message.contains("exceeded 12 MiB") && error.hint.is_some(), "{error}");
            assert!(kept.contains(&(error.partial.len() >> 20)), "{model}: {}", error.partial.len());
        }
    }
}
