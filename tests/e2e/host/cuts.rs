//! The connection to another machine is cut at random bytes, again and again.

use chorus_proto::methods::context::{Save, SaveParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::fault_proxy::FaultProxy;
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::rng::{Rng, rounds_from_env};
use chorus_tests::{Fixture, InteractiveCommand};
use serde_json::Value;

use super::Machines;

/// A runtime with a proxy in front of the ssh server.
fn proxied(machines: &Machines) -> (tokio::runtime::Runtime, FaultProxy) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let proxy = runtime.block_on(FaultProxy::start(machines.server.port())).expect("a proxy");
    machines.server.write_client_config(proxy.port(), "");
    (runtime, proxy)
}

/// Waits until an attached chat or a follower of events shows `text`, and returns what it has shown.
fn wait_for(follower: &InteractiveCommand, text: &str) {
    follower.stdout.wait_for(text);
}

fn lines_of(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Sends a message over the line. Nothing was sent if there was no line.
fn send(machines: &Machines, text: &str) -> String {
    for _ in 0..20 {
        let sent = machines.run(&["send", text]);
        if sent.status == 0 {
            return sent.stdout;
        }
        assert!(sent.stderr.contains("failed to connect to box"), "{sent:?}");
    }
    panic!("there is no line to send {text:?}");
}

#[test]
fn no_message_is_lost_or_doubled() {
    let Some(machines) = Machines::start() else { return };
    let (_runtime, proxy) = proxied(&machines);
    let there: &Fixture = &machines.there;
    assert_eq!(there.model(), ANTHROPIC_MODEL);
    let mut client = there.client();
    let newest = machines.run(&["events", "--format", "jsonl"]).expect_success();
    let first = lines_of(&newest).last().map_or(0, |event| event["seq"].as_u64().expect("a number"));
    let events = machines.start_piped(&["events", "--follow", "--json", "--after", &first.to_string()]);
    let chat = machines.start_piped(&["chat", "--attach", "--json"]);
    wait_for(&chat, "\"attached\"");
    let mut rng = Rng::new(28);
    let rounds = rounds_from_env("CHORUS_HOST_CUTS", 12);
    let (mut due_messages, mut due_replies) = (Vec::new(), String::new());
    for round in 0..rounds {
        proxy.cut_after_answer_bytes(i64::try_from(rng.below(6_000)).expect("a number"));
        let (question, reply) = (format!("question {round};"), format!("reply {round}, a b c d;"));
        match rng.below(3) {
            0 => {
                let pieces: Vec<String> = reply.split_inclusive(' ').map(str::to_owned).collect();
                there.models().anthropic().queue_text(pieces);
                assert_eq!(send(&machines, &question), format!("{reply}\n"));
                due_replies.push_str(&reply);
            }
            1 => {
                there.reply(&reply);
                there.send("api", &question).expect("a reply");
                due_replies.push_str(&reply);
            }
            _ => _ = client.append("api", &question),
        }
        due_messages.push(question.clone());
        wait_for(&chat, &question);
        let messages = client.messages("api").len();
        wait_for(&events, &format!("\"messages\":{messages}}}"));
    }
    let last = format!("the end of {rounds}");
    client.append("api", &last);
    due_messages.push(last.clone());
    wait_for(&chat, &last);
    wait_for(&events, &format!("\"messages\":{}}}", client.messages("api").len()));
    let heard = lines_of(&chat.stdout.text());
    let messages: Vec<&str> = heard.iter().filter_map(|event| event["message"]["text"].as_str()).collect();
    assert_eq!(messages, due_messages);
    let replies: String = heard.iter().filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(replies, due_replies);
    let questions = client.messages("api").into_iter().filter(|message| message.content.starts_with("question"));
    assert_eq!(questions.count() as u64, rounds, "each message was sent once");
    let numbers = lines_of(&events.stdout.text()).into_iter().filter(|event| event["type"] != "turn.delta");
    let numbers: Vec<u64> = numbers.map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (first + 1..=first + numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn an_export_continues_with_the_next_page() {
    let Some(machines) = Machines::start() else { return };
    let mut client = machines.there.client();
    let text = "0123456789abcdef".repeat(64 * 1024);
    (0..10).for_each(|_| _ = client.append("api", &text));
    let params = SaveParams { agent: Some("api".into()), description: Some("Long".into()), ..SaveParams::default() };
    client.call::<Save>(&params).expect("saved");
    let whole = machines.run(&["export", "latest", "--as", "jsonl"]).expect_success();
    assert!(whole.len() > 10 << 20);
    let (_runtime, proxy) = proxied(&machines);
    machines.server.kill_connections();
    for bytes in [1_000_000, 7_000_000] {
        proxy.cut_after_answer_bytes(bytes);
        let exported = machines.run(&["export", "latest", "--as", "jsonl"]);
        assert_eq!(exported.status, 0, "{}", exported.stderr);
        assert!(exported.stdout == whole, "it is the same, byte by byte");
    }
}
