//! Tokens of a prompt before it is sent: counted with the model's vocabulary, by the provider, or estimated.

use chorus_llm::model_client;
use chorus_llm::tokenizer::TokenizerCache;
use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::pluralize::group_digits;
use chorus_proto::{Client, Meter, NewMessage, Role, TokenSource, Window};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::{COUNT_PATH, ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::json;

use super::set;
use crate::home;

/// A daemon that knows the models of the server.
fn start(server: &ModelServer) -> (Home, Daemon) {
    let home = home();
    let daemon = Daemon::start_with(&home, &server.config_toml());
    wait_until("discovery", DEADLINE, || home.path.join(model_client::MODEL_CATALOG_FILE).exists().then_some(()));
    (home, daemon)
}

fn init(client: &mut Client, name: &str, model: &str) {
    let params = InitParams { name: name.into(), model: Some(model.into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
}

/// The meter of `context.show`.
fn meter(client: &mut Client, agent: &str) -> Meter {
    let shown = client.call::<Show>(&ShowParams { agent: Some(agent.into()), ..Default::default() }).expect("shown");
    shown.context.expect("a context").meter.expect("a meter")
}

fn window(client: &mut Client, agent: &str) -> Window {
    let params = ShowParams { agent: Some(agent.into()), window: true, ..Default::default() };
    *client.call::<Show>(&params).expect("shown").window.expect("a window")
}

fn invoices(messages: usize, sentences: usize) -> Vec<NewMessage> {
    let text = |n| format!("{n}: the invoice. ").repeat(sentences);
    (0..messages).map(|n| NewMessage::text(Role::User, text(n))).collect()
}

fn send(client: &mut Client, agent: &str, text: &str) {
    let params = SendParams { agent: Some(agent.into()), text: text.into(), ..Default::default() };
    client.call::<Send>(&params).expect("a turn");
}

#[test]
fn where_the_vocabulary_is_known_the_count_is_exact_and_grows_by_what_is_added() {
    let server = ModelServer::start();
    server.set_openai_models(200, &json!({"data": [{"id": "gpt-4o", "context_length": 128_000}]}));
    let (home, daemon) = start(&server);
    let mut client = daemon.client();
    init(&mut client, "a", "local/gpt-4o");
    let chinese = "发票必须在三十天内付清。请在汇款之前核对地址、金额和账号，如果缺少什么请告诉我。".repeat(20);
    client.append("a", &chinese);
    let one = meter(&mut client, "a");
    let (tokenizer, _) = TokenizerCache::default().load().expect("a tokenizer");
    assert_eq!(one.source, Some(TokenSource::Exact), "{one:?}");
    let more = "Please pay the invoice within thirty days. ".repeat(30);
    client.append_all("a", vec![NewMessage::text(Role::Assistant, "Yes."), NewMessage::text(Role::User, &*more)]);
    let two = meter(&mut client, "a");
    // Each message has four tokens besides its text.
    assert_eq!(two.used - one.used, tokenizer.count("Yes.") + tokenizer.count(&more) + 8);
    let shown = window(&mut client, "a").budget;
    assert_eq!(shown.counted.map(|counted| (counted.tokens, counted.source)), Some((two.used, TokenSource::Exact)));
    // The estimate of a mixed conversation is near.
    assert!(shown.tokens.abs_diff(two.used) * 5 < two.used, "{shown:?} {two:?}");
    let status = chorusctl(&home, ["status"]).expect_success();
    assert!(status.contains("/128k exact"), "{status}");
    let show = chorusctl(&home, ["context", "show", "--window"]).expect_success();
    let counted = format!("{} tokens, counted with the vocabulary of the model", group_digits(two.used));
    assert!(show.contains(&counted), "{show}");
    assert!(server.count_requests().is_empty() && server.requests().is_empty());
}

#[test]
fn what_the_provider_counted_is_not_counted_again() {
    let server = ModelServer::start();
    let (home, daemon) = start(&server);
    let mut client = daemon.client();
    init(&mut client, "a", "anthropic/claude-test");
    client.append_all("a", invoices(10, 50));
    assert_eq!(meter(&mut client, "a").source, Some(TokenSource::Estimated));
    server.anthropic().queue(Response::text(["Yes."]).usage(7000, 3));
    send(&mut client, "a", "Is it paid?");
    let after = meter(&mut client, "a");
    assert_eq!(after.source, Some(TokenSource::Provider));
    assert!((7000..7040).contains(&after.used), "the count of the call, and its reply: {after:?}");
    assert!(chorusctl(&home, ["status", "a"]).expect_success().contains(" counted"));
    assert!(chorusctl(&home, ["show"]).expect_success().contains(" tokens (counted by the provider)"));
    // Too much for an estimate was added.
    client.append("a", &"The address, the amount and the account number. ".repeat(500));
    assert_eq!(meter(&mut client, "a").source, Some(TokenSource::Estimated));
    assert!(server.count_requests().is_empty(), "nothing is sent to a provider without being asked for");
    server.set_path_response(&format!("{COUNT_PATH} claude-test"), &json!({"input_tokens": 12_345}));
    for _ in 0..3 {
        let counted = window(&mut client, "a").budget.counted.expect("a count");
        assert_eq!((counted.tokens, counted.source), (12_345, TokenSource::Provider));
    }
    let asked = server.count_requests();
    assert_eq!(asked.len(), 1, "the same prompt is counted once");
    assert!(asked[0].body["messages"].is_array() && asked[0].body["tools"].is_array(), "{}", asked[0].body);
    assert!(asked[0].body.get("max_tokens").is_none() && asked[0].body.get("stream").is_none());
    let known = meter(&mut client, "a");
    assert_eq!((known.used, known.source), (12_345, Some(TokenSource::Provider)));
}

#[test]
fn a_provider_that_does_not_count_is_left_alone() {
    let server = ModelServer::start();
    let (_home, daemon) = start(&server);
    let mut client = daemon.client();
    init(&mut client, "a", "anthropic/claude-test");
    for n in 0..3 {
        client.append("a", &format!("message {n}"));
        assert_eq!(window(&mut client, "a").budget.counted, None);
    }
    assert_eq!(server.count_requests().len(), 1, "it answered that it cannot");
}

#[test]
fn a_prompt_that_the_provider_counts_as_too_long_is_shortened_and_not_refused() {
    let server = ModelServer::start();
    server.set_anthropic_models(200, &json!({"data": [{"id": "claude-test", "max_input_tokens": 8000}]}));
    let (_home, daemon) = start(&server);
    let mut client = daemon.client();
    init(&mut client, "a", "anthropic/claude-test");
    set(&mut client, "a", "permissions", "locked");
    server.set_path_response(&format!("{COUNT_PATH} claude-test"), &json!({"input_tokens": 9000}));
    // More than seven tenths of what the model takes, and not yet so much that the window is compacted.
    while window(&mut client, "a").budget.tokens < 5800 {
        client.append_all("a", invoices(1, 30));
    }
    assert_eq!(window(&mut client, "a").compacts, None);
    server.anthropic().queue_text(["Yes."]);
    let planned = window(&mut client, "a").messages.len();
    send(&mut client, "a", "Is it paid?");
    let sent = server.requests();
    assert_eq!(sent.len(), 1);
    let texts = sent[0].body["messages"].to_string().matches(": the invoice.").count();
    assert!(texts < planned * 30 / 2, "{texts} of {planned} messages");
}
