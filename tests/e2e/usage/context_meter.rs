//! The context meter: how long the next request is, of what the model takes.

use chorus_llm::model_client;
use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::context::{Pin, PinParams, Show, ShowParams};
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::{Client, Meter, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{ModelServer, RecordedRequest, Response};
use chorus_tests::{DEADLINE, Daemon, Home, InteractiveCommand, wait_until};
use serde_json::Value;

use super::set;
use crate::home;

/// The model of each wire format, and what discovery says that it takes.
const MODELS: [(&str, u64); 2] = [("anthropic/claude-test", 200_000), ("local/large", 131_072)];

/// A daemon that has asked which models there are.
fn start() -> (Home, ModelServer, Daemon) {
    let (home, server) = (home(), ModelServer::start());
    let daemon = Daemon::start_with(&home, &server.config_toml());
    wait_until("discovery", DEADLINE, || home.path.join(model_client::MODEL_CATALOG_FILE).exists().then_some(()));
    (home, server, daemon)
}

fn init(client: &mut Client, name: &str, model: &str) {
    let params = InitParams { name: name.into(), model: Some(model.into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
}

fn meter(client: &mut Client, agent: &str) -> Meter {
    client.agent_status(agent).context.expect("a context").meter.expect("a meter")
}

fn send(client: &mut Client, agent: &str, text: &str) {
    let params = SendParams { agent: Some(agent.into()), text: text.into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn");
}

/// Turns of about 250 tokens each.
fn talk(turns: usize) -> Vec<NewMessage> {
    let text = |n: usize, who: &str| format!("{who} {n}: {}", "The invoice is in integer cents. ".repeat(15));
    let turn = |n| [(Role::User, text(n, "I say")), (Role::Assistant, text(n, "I answer"))];
    (0..turns).flat_map(turn).map(|(role, text)| NewMessage::text(role, text)).collect()
}

/// Bytes of every text in a request.
fn texts(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(texts).sum(),
        Value::Object(map) => map.values().map(texts).sum(),
        _ => 0,
    }
}

fn near(found: u64, due: u64, percent: u64) -> bool {
    found.abs_diff(due) <= due * percent / 100
}

fn body(request: &RecordedRequest) -> u64 {
    let parts = ["system", "messages"].map(|part| texts(&request.body[part]));
    // Of tools a model is shown the marks of JSON, too.
    (parts.iter().sum::<usize>() + request.body["tools"].to_string().len()) as u64 / 4
}

#[test]
fn it_is_what_the_next_request_has() {
    for (model, window) in MODELS {
        let (home, server, daemon) = start();
        let mut client = daemon.client();
        init(&mut client, "a", model);
        set(&mut client, "a", "system_prompt", &"You are kind. ".repeat(50));
        std::fs::write(home.agent_dir("a").join("docs/plan.md"), "Ship on Friday.\n".repeat(200)).expect("a note");
        let fact = "The customer is Ada. ".repeat(40);
        client.call::<Pin>(&PinParams { conversation: None, agent: Some("a".into()), fact }).expect("pinned");
        client.append_all("a", talk(10));
        let before = meter(&mut client, "a");
        assert_eq!((before.window, before.calibrated), (Some(window), false));
        [server.anthropic(), server.openai()].iter().for_each(|script| script.queue_text(["Yes."]));
        send(&mut client, "a", "Well?");
        let sent = body(&server.requests()[0]);
        assert!(near(before.used, sent, 12), "{model}: {before:?}, and {sent} were sent");
        // Everywhere the same.
        let after = meter(&mut client, "a");
        let all = client.call::<Status>(&StatusParams::default()).expect("status").agents;
        assert_eq!(all[0].context.as_ref().and_then(|context| context.meter), Some(after));
        let shown = client.call::<Show>(&ShowParams { agent: Some("a".into()), ..Default::default() }).expect("shown");
        assert_eq!(shown.context.and_then(|context| context.meter), Some(after));
        let (used, window) = (format!("~{}.", after.used / 1000), if window == 200_000 { "/200k" } else { "/131k" });
        let said = chorusctl(&home, ["status"]).expect_success();
        assert!(said.contains("WINDOW") && said.contains(&used) && said.contains(window), "{said}");
        let said = chorusctl(&home, ["context", "show"]).expect_success();
        let of = format!(" of {} tokens (estimated)", &window[1..]);
        assert!(said.contains("next request ~") && said.contains(&of), "{said}");
        let json = chorusctl(&home, ["--json", "status", "a"]).expect_json();
        assert_eq!(json["agents"][0]["context"]["meter"]["used"], after.used);
    }
}

#[test]
fn a_terminal_shows_it_as_a_bar() {
    let (home, _server, daemon) = start();
    let mut client = daemon.client();
    init(&mut client, "a", "anthropic/claude-test");
    client.append_all("a", talk(200));
    let meter = meter(&mut client, "a");
    let due = format!(" {} %", meter.used * 100 / 200_000);
    let shown = |locale: &str, args: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.env("NO_COLOR", "1").env("LC_ALL", locale).arg("status").args(args);
        let (status, shown, _) = InteractiveCommand::on_terminal_of(&command, 120, 40).wait_for_exit();
        assert_eq!(status.code(), Some(0), "{shown}");
        shown
    };
    for (locale, full, empty) in [("C.UTF-8", "█", "░"), ("C", "#", "-")] {
        let bars = [shown(locale, &[]), shown(locale, &["a"])];
        let has_bar =
            |text: &String| text.lines().any(|line| line.contains(&format!("{full}{empty}")) && line.contains(&due));
        assert!(bars.iter().all(has_bar), "{due}: {bars:?}");
    }
    let piped = chorusctl(&home, ["status", "a"]).expect_success();
    assert!(!piped.contains('█') && !piped.contains("  context"), "{piped}");
}

#[test]
fn what_does_not_fit_does_not_count() {
    let (_home, _server, daemon) = start();
    let mut client = daemon.client();
    init(&mut client, "a", "anthropic/claude-test");
    client.append_all("a", talk(10));
    let some = meter(&mut client, "a").used;
    client.append_all("a", talk(200));
    let all = meter(&mut client, "a").used;
    assert!(all > some && all < 15_000, "50 messages at most: {some} {all}");
    set(&mut client, "a", "window_messages", "100000");
    set(&mut client, "a", "compact_at_tokens", "100000000");
    assert!(meter(&mut client, "a").used > 40_000);
    // A model that takes little is shown less.
    set(&mut client, "a", "model", "local/small");
    let small = meter(&mut client, "a");
    assert!(small.window == Some(8192) && small.used < 8192, "{small:?}");
}

#[test]
fn it_learns_from_what_the_provider_counts_and_knows_it_after_a_crash() {
    let (home, server, daemon) = start();
    let mut client = daemon.client();
    for (name, model) in [("a", "anthropic/claude-test"), ("b", "local/large")] {
        init(&mut client, name, model);
        client.append_all(name, talk(10));
    }
    let before = meter(&mut client, "a").used;
    let counted = before * 3 / 2;
    server.anthropic().queue(Response::text(["Yes."]).usage(counted, 5).cache_tokens(counted - 10, 0));
    send(&mut client, "a", "Well?");
    let after = meter(&mut client, "a");
    assert!(after.calibrated && near(after.used, before * 3 / 2, 3), "{before} became {after:?}");
    assert!(!meter(&mut client, "b").calibrated, "of another model nothing is known");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    // Nobody has touched the context: there is no more than its totals.
    let again = meter(&mut client, "a");
    assert!(again.calibrated && near(again.used, after.used, 12), "{after:?} became {again:?}");
    assert_eq!(again.window, after.window, "what discovery found is remembered");
    client.append("a", "x");
    assert!(near(meter(&mut client, "a").used, after.used, 2));
}

#[test]
fn without_a_conversation_or_a_model_there_is_none() {
    let (home, _server, daemon) = start();
    let mut client = daemon.client();
    init(&mut client, "a", "anthropic/claude-test");
    assert_eq!(client.agent_status("a").context, None);
    init(&mut client, "b", "anthropic/claude-test");
    // By hand, because a model of no provider is refused.
    let file = home.agent_dir("b").join("agent.json");
    let config =
        std::fs::read_to_string(&file).expect("agent.json").replace("anthropic/claude-test", "elsewhere/model");
    std::fs::write(&file, config).expect("agent.json");
    client.append("b", "Hello?");
    let context = client.agent_status("b").context.expect("a context");
    assert!(context.meter.is_none_or(|meter| meter.window.is_none()), "{context:?}");
}
