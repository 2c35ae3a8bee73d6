//! Traces: what a collector gets, read with the official parser, and what one that fails costs.

use std::time::{Duration, Instant};

use chorus_proto::EventType;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::free_port::free_port;
use chorus_tests::model_server::Response;
use chorus_tests::otlp_collector::{CollectorAnswer, OtlpCollector};
use chorus_tests::{DEADLINE, Fixture, Home, wait_until};
use serde_json::{Value, json};

use crate::home;
use crate::metrics::samples;

const FREE: &str = "[permissions.free]\nallow = [\".*\"]\n";

/// A secret that is not the daemon's.
const SECRET: &str = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");

/// The span of a turn of `a`.
const ROOT: &str = "invoke_agent a";

/// Starts a daemon that sends traces to `collector`, with the agent `a`.
fn start(collector: &OtlpCollector, keys: &str) -> Fixture {
    start_in(home(), &collector.config(keys))
}

fn start_in(home: Home, tables: &str) -> Fixture {
    let fixture = Fixture::builder(home).models().tables(tables).tables(FREE).start();
    fixture.create_agent("a", Some("free"));
    fixture
}

/// Runs a turn of `a` that succeeds.
fn run_turn(fixture: &Fixture) {
    fixture.reply("Fine.");
    fixture.send("a", "How are you?").expect("a reply");
}

fn log(fixture: &Fixture) -> String {
    std::fs::read_to_string(fixture.home.path.join("log/chorusd.log")).expect("the log")
}

/// Waits for so many turns of `a`, and returns the spans of each with its root first.
fn wait_for_turns(collector: &OtlpCollector, count: usize) -> Vec<Vec<Value>> {
    wait_until("the spans of the turns", DEADLINE, || {
        let mut spans = collector.wait_for_span(ROOT);
        spans.sort_by_key(|span| span["name"] != ROOT);
        let roots = spans.iter().filter(|span| span["name"] == ROOT);
        let traces: Vec<&Value> = roots.map(|root| &root["trace"]).collect();
        let of = |trace: &&Value| spans.iter().filter(|span| span["trace"] == **trace).cloned().collect();
        (traces.len() >= count).then(|| traces.iter().map(of).collect())
    })
}

fn has(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[test]
fn a_turn_is_a_tree_of_its_calls() {
    let Some(collector) = OtlpCollector::start() else { return };
    let fixture = start(&collector, "service_name = \"chorus-of-a-test\"");
    let calls = Response::tool_call("c1", "list_models", &json!({})).then_call("c2", "view", &json!({"path": "no"}));
    fixture.answer(calls.usage(100, 7).cache_tokens(40, 20));
    fixture.answer(Response::text(["Done, friend."]).usage(200, 9));
    fixture.send("a", "Which are there, friend?").expect("a reply");
    fixture
        .answer(Response::error(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"odd"}}"#));
    fixture.send("a", "And now?").expect_err("the model refuses");

    let turns = wait_for_turns(&collector, 2);
    let [good, bad] = &turns[..] else { panic!("{turns:#?}") };
    let root = &good[0];
    let file = std::fs::read(fixture.home.agent_dir("a").join("agent.json")).expect("agent.json");
    let agent = &serde_json::from_slice::<Value>(&file).expect("JSON")["id"];
    for (key, value) in [
        ("gen_ai.operation.name", json!("invoke_agent")),
        ("gen_ai.provider.name", json!("anthropic")),
        ("gen_ai.request.model", json!("claude-test")),
        ("gen_ai.agent.name", json!("a")),
        ("gen_ai.agent.id", agent.clone()),
        ("gen_ai.conversation.id", agent.clone()),
        ("gen_ai.usage.output_tokens", json!(16)),
    ] {
        assert_eq!(root["attributes"][key], value, "{key} in {root:#}");
    }
    assert_eq!((&root["parent"], &root["kind"]), (&json!(""), &json!("SPAN_KIND_INTERNAL")), "{root:#}");
    assert_eq!(root["status"], "STATUS_CODE_UNSET", "{root:#}");
    assert_eq!((&root["resource"]["service.name"], &root["scope"]), (&json!("chorus-of-a-test"), &json!("chorus")));
    let names: Vec<_> = good[1..].iter().map(|span| span["name"].as_str().expect("a name")).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["chat claude-test", "chat claude-test", "execute_tool list_models", "execute_tool view"]);
    for span in &good[1..] {
        assert_eq!(span["parent"], root["id"], "{span:#}");
        let time = |span: &Value, key: &str| span[key].as_u64().expect("a time");
        assert!(time(root, "start") <= time(span, "start") && time(span, "end") <= time(root, "end"), "{good:#?}");
        assert_eq!(&span["attributes"]["gen_ai.conversation.id"], agent, "{span:#}");
    }
    let first_chat = good.iter().find(|span| span["name"] == "chat claude-test").expect("a chat");
    for (key, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.response.finish_reasons", json!(["tool_call"])),
        ("gen_ai.usage.output_tokens", json!(7)),
        ("gen_ai.usage.cache_read.input_tokens", json!(40)),
        ("gen_ai.usage.cache_creation.input_tokens", json!(20)),
        ("server.address", json!("127.0.0.1")),
    ] {
        assert_eq!(first_chat["attributes"][key], value, "{key} in {first_chat:#}");
    }
    assert!(first_chat["attributes"]["gen_ai.request.max_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    let tool = |name: &str| good.iter().find(|span| span["name"] == format!("execute_tool {name}")).expect("the tool");
    let (listed, read) = (tool("list_models"), tool("view"));
    assert_eq!(
        (&listed["attributes"]["gen_ai.tool.call.id"], &listed["status"]),
        (&json!("c1"), &json!("STATUS_CODE_UNSET"))
    );
    assert_eq!(
        (&read["attributes"]["error.type"], &read["status"]),
        (&json!("tool_error"), &json!("STATUS_CODE_ERROR"))
    );

    for (span, name) in bad.iter().zip([ROOT, "chat claude-test"]) {
        assert_eq!((&span["name"], &span["status"]), (&json!(name), &json!("STATUS_CODE_ERROR")), "{bad:#?}");
        assert_eq!(span["attributes"]["error.type"], "bad_request", "{span:#}");
    }
    assert_ne!(bad[0]["trace"], root["trace"]);

    // Without texts: names only.
    for text in ["friend", "And now", "odd", "gen_ai.input.messages", "gen_ai.tool.call.arguments"] {
        assert!(!collector.requests().iter().any(|request| has(&request.body, text)), "{text} was sent");
    }
    let checks = chorusctl(&fixture.home, ["doctor"]);
    assert!(checks.stdout.contains("sent, 0 dropped"), "{checks:?}");
}

#[test]
fn texts_are_sent_on_request_and_without_secrets() {
    let Some(collector) = OtlpCollector::start() else { return };
    let fixture = start(&collector, "content = true");
    let params = json!({"path": "notes.txt", "content": format!("token {SECRET}")});
    fixture.answer(Response::tool_call("c1", "create_file", &params));
    fixture.answer(Response::text([format!("I wrote {SECRET} down.")]));
    fixture.send("a", &format!("Please note {SECRET} for me")).expect("a reply");
    fixture.models().set_summary_response(Response::text([r#"{"summary": "A note"}"#]));
    fixture.client().save("a", "Notes");

    let turns = wait_for_turns(&collector, 1);
    let span = |name: &str| turns[0].iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{turns:#?}"));
    let parse = |value: &Value| serde_json::from_str::<Value>(value.as_str().expect("a text")).expect("JSON");
    let chat = &span("chat claude-test")["attributes"];
    let input = parse(&chat["gen_ai.input.messages"]);
    assert_eq!((&input[0]["role"], &input[0]["parts"][0]["type"]), (&json!("user"), &json!("text")), "{input:#}");
    let said = input[0]["parts"][0]["content"].as_str().expect("a text");
    assert!(said.contains("Please note [redacted:") && said.ends_with(" for me"), "{said}");
    let output = parse(&chat["gen_ai.output.messages"]);
    assert_eq!(output[0]["finish_reason"], "tool_call", "{output:#}");
    assert_eq!(output[0]["parts"][0]["arguments"]["path"], "notes.txt", "{output:#}");
    assert_eq!(parse(&chat["gen_ai.system_instructions"])[0]["type"], "text");
    let tool = &span("execute_tool create_file")["attributes"];
    let content = &parse(&tool["gen_ai.tool.call.arguments"])["content"];
    assert!(content.as_str().is_some_and(|content| content.starts_with("token [redacted:")), "{content}");
    assert!(tool["gen_ai.tool.call.result"].as_str().is_some_and(|result| result.contains("notes.txt")), "{tool:#}");

    // A call outside of a turn is alone in its trace.
    let summary = wait_until("the summary", DEADLINE, || {
        collector.spans().into_iter().find(|span| span["attributes"]["chorus.purpose"] == "summary")
    });
    assert_eq!((&summary["parent"], &summary["name"]), (&json!(""), &json!("chat claude-test")), "{summary:#}");
    assert!(!collector.requests().iter().any(|request| has(&request.body, &SECRET[8..30])), "the secret was sent");
}

#[test]
fn a_collector_that_is_down_costs_only_spans() {
    let port = free_port();
    let mut fixture = start_in(home(), &format!("[traces]\nendpoint = \"http://127.0.0.1:{port}\"\n"));
    for _ in 0..3 {
        run_turn(&fixture);
    }
    wait_until("the failure in the log", DEADLINE, || log(&fixture).contains("cannot send traces").then_some(()));
    let checks = chorusctl(&fixture.home, ["doctor"]);
    assert!(checks.stdout.contains("onnection refused") && checks.stdout.contains("start the collector"), "{checks:?}");
    let status = fixture.stop();
    assert!(status.success(), "{status}");
    let log = log(&fixture);
    let dropped: u64 = log.lines().filter_map(dropped_spans).sum();
    assert_eq!(dropped, 6, "{log}");
}

/// Returns how many spans a line of the log reports as dropped.
fn dropped_spans(line: &str) -> Option<u64> {
    let (_, fields) = line.split_once("dropped spans of traces ")?;
    fields.split_once("spans=")?.1.split(' ').next()?.parse().ok()
}

#[test]
fn a_collector_that_hangs_delays_a_stop_by_two_seconds() {
    let Some(collector) = OtlpCollector::start() else { return };
    let mut fixture = start(&collector, "");
    collector.set_fallback(Some(CollectorAnswer::Hang));
    run_turn(&fixture);
    let _ = collector.wait_for_requests(1);
    run_turn(&fixture);
    let begun = Instant::now();
    let status = fixture.stop();
    let took = begun.elapsed();
    assert!(status.success(), "{status}");
    // A request alone may take ten seconds.
    assert!(took < Duration::from_secs(8), "{took:?}");
    let log = log(&fixture);
    assert_eq!(log.lines().filter_map(dropped_spans).sum::<u64>(), 4, "{log}");
}

#[test]
fn a_busy_collector_gets_spans_again_and_one_that_refuses_does_not() {
    let Some(collector) = OtlpCollector::start() else { return };
    let home = home();
    let socket = home.temp_dir().join("metrics.sock");
    let metrics = format!("[metrics]\nlisten = \"unix:{}\"\n", socket.display());
    let mut fixture = start_in(home, &format!("{}{metrics}", collector.config("")));
    collector.queue(CollectorAnswer::Status(503, "Retry-After: 1\r\n".into()));
    collector.queue(CollectorAnswer::Status(429, "Retry-After: 1\r\n".into()));
    run_turn(&fixture);
    let requests = collector.wait_for_requests(3);
    assert!(requests.windows(2).all(|pair| pair[0].body == pair[1].body), "the same spans are sent again");
    assert_eq!(wait_for_turns(&collector, 1)[0].len(), 2);

    collector.queue(CollectorAnswer::Status(400, String::new()));
    run_turn(&fixture);
    let _ = collector.wait_for_requests(4);
    wait_until("the refusal in the log", DEADLINE, || log(&fixture).contains("answered 400").then_some(()));
    collector.queue(CollectorAnswer::Reject(1));
    run_turn(&fixture);
    // Nothing of the second turn comes again.
    assert_eq!(wait_for_turns(&collector, 2).len(), 2);
    assert_eq!(collector.requests().len(), 5);
    wait_until("the checks", DEADLINE, || {
        let checks = chorusctl(&fixture.home, ["doctor"]);
        checks.stdout.contains("3 spans sent, 3 dropped").then_some(())
    });
    let counted = samples(&fixture.home, &socket);
    for (outcome, count) in [("exported", 3.0), ("dropped", 3.0)] {
        let name = format!("chorus_trace_spans_total{{outcome={outcome}}}");
        assert_eq!(counted.get(&name), Some(&count), "{counted:#?}");
    }
    fixture.stop();
    assert!(log(&fixture).contains("the collector rejected them: too x"), "{}", log(&fixture));
}

#[test]
fn headers_are_sent_to_the_collector_and_shown_nowhere() {
    let Some(collector) = OtlpCollector::start() else { return };
    let home = home();
    let file = home.temp_dir().join("headers");
    std::fs::write(&file, "Authorization=Bearer first-key-of-the-test\nx-team=blue\n").expect("the headers");
    let traces = collector.config(&format!("headers_file = \"{}\"", file.display()));
    let fixture = Fixture::builder(home).models().keys("log_level = \"trace\"").tables(&traces).tables(FREE).start();
    fixture.create_agent("a", Some("free"));
    run_turn(&fixture);
    let head = collector.wait_for_requests(1).remove(0).head.to_ascii_lowercase();
    for line in [
        "post /v1/traces http/1.1",
        "authorization: bearer first-key-of-the-test",
        "x-team: blue",
        "content-type: application/x-protobuf",
    ] {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    // The file is read again.
    std::fs::write(&file, "Authorization=Bearer%20second-key-of-the-test").expect("the headers");
    run_turn(&fixture);
    let head = collector.wait_for_requests(2).remove(1).head;
    assert!(head.contains("Bearer second-key-of-the-test"), "{head}");
    std::fs::write(&file, "second-key-of-the-test").expect("the headers");
    run_turn(&fixture);
    wait_until("the error in the log", DEADLINE, || log(&fixture).contains("is not NAME=VALUE").then_some(()));
    let shown = [log(&fixture), format!("{:?}", chorusctl(&fixture.home, ["settings", "list", "--json"]))];
    assert!(!shown.iter().any(|text| text.contains("key-of-the-test")), "{shown:?}");
}

#[test]
fn a_turn_that_a_crash_ended_has_a_root() {
    let Some(collector) = OtlpCollector::start() else { return };
    let fixture = start(&collector, "");
    fixture.answer(Response::text(["I think"]).gate("never"));
    let turn = fixture.spawn_send("a", "Think about it");
    fixture.wait_for_events(EventType::TurnStarted, 1);
    fixture.models().wait_for_gate("never");
    let fixture = fixture.crash();
    let _ = turn.join();
    let turns = wait_for_turns(&collector, 1);
    let root = &turns[0][0];
    assert_eq!(
        (&root["status"], &root["attributes"]["error.type"]),
        (&json!("STATUS_CODE_ERROR"), &json!("interrupted"))
    );
    assert!(root["end"].as_u64() > root["start"].as_u64(), "{root:#}");
    drop(fixture);
}
