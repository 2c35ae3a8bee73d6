//! Conversations that go on for months: whatever leaves the window, what people pinned stays byte for byte, no request is illegal or
//! over its budget, and every message can be had again.

mod automatic;
mod conversation;
mod manual;
mod natural;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::context::{Pin, PinParams, Show, ShowParams};
use chorus_proto::{Client, Message, Session, WorkingSet};
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{Daemon, Home};
use serde_json::Value;

use crate::home;
use conversation::{FACTS, PINNED};

/// A daemon whose model server refuses what is illegal, and an agent with pinned facts.
struct Long {
    server: ModelServer,
    home: Home,
    daemon: Daemon,
}

impl Long {
    /// `model`: `None` for an agent without one.
    fn new(model: Option<&str>) -> Self {
        let (server, home) = (ModelServer::start(), home());
        server.enable_strict_mode();
        let config = match model {
            Some(_) => server.config_toml(),
            None => String::new(),
        };
        let daemon = Daemon::start_with(&home, &config);
        let mut client = daemon.client();
        let params = InitParams { name: "a".into(), model: model.map(str::to_owned), ..Default::default() };
        client.call::<Init>(&params).expect("agent.init");
        for fact in pins() {
            client.call::<Pin>(&PinParams { conversation: None, agent: Some("a".into()), fact }).expect("context.pin");
        }
        Self { server, home, daemon }
    }

    /// Whoever asks for notes gets them.
    fn write_down(&self) {
        self.server.on_structured_request(|body| Response::structured(body, &conversation::notes(&asked(body))));
    }

    fn client(&self) -> Client {
        self.daemon.client()
    }
}

/// Pinned facts, from all over the conversation.
fn pins() -> Vec<String> {
    (0..PINNED).map(|n| conversation::pin(n * FACTS / PINNED)).collect()
}

fn asked(body: &Value) -> String {
    let message = body["messages"].as_array().and_then(|all| all.last()).expect("a message");
    message["content"].as_str().or(message["content"][0]["text"].as_str()).expect("a text").to_owned()
}

fn working_set(client: &mut Client) -> WorkingSet {
    let params = ShowParams { agent: Some("a".into()), limit: Some(0), ..Default::default() };
    client.call::<Show>(&params).expect("context.show").working_set
}

/// Asserts that at least 85 of the 100 decisions and of the 100 to-dos stand in the window, and returns how many do.
fn assert_statements_stand(client: &mut Client) -> String {
    let params = ShowParams { agent: Some("a".into()), window: true, ..Default::default() };
    let window = client.call::<Show>(&params).expect("context.show").window.expect("a window");
    let pieces = window.system.iter().map(|piece| piece.text.as_str());
    let messages = window.messages.iter().map(|message| message.message.content.as_str());
    let text: Vec<&str> = pieces.chain(messages).collect();
    let (decisions, tasks) = conversation::statements();
    let count = |all: &[String]| all.iter().filter(|said| text.iter().any(|text| text.contains(said.as_str()))).count();
    let (of_decisions, of_tasks) = (count(&decisions), count(&tasks));
    assert!(of_decisions * 100 >= decisions.len() * 85, "{of_decisions} decisions");
    assert!(of_tasks * 100 >= tasks.len() * 85, "{of_tasks} to-dos");
    let (all_decisions, all_tasks, budget) = (decisions.len(), tasks.len(), window.budget);
    format!("of {all_decisions} decisions {of_decisions} stand, of {all_tasks} to-dos {of_tasks}, {budget:?}")
}

/// That these are the messages of the numbers in `range`, as they were planted, in their order.
fn assert_planted(messages: &[&Message], range: std::ops::Range<usize>) {
    assert_eq!(messages.len(), range.len());
    for (message, number) in messages.iter().zip(range) {
        let planted = conversation::message(number);
        assert_eq!((message.role, &message.content), (planted.role, &planted.content), "message {number}");
        let calls = |calls: &[chorus_proto::ToolCall]| {
            calls.iter().map(|call| call.params.get().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(calls(&message.tool_calls), calls(&planted.tool_calls), "message {number}");
    }
}

/// The messages of a session as its file has them, which is what an export writes.
fn exported(session: &Session) -> Vec<Message> {
    let file = std::fs::read(&session.file_path).expect("the session's file");
    let file: Value = serde_json::from_slice(&file).expect("JSON");
    serde_json::from_value(file["messages"].clone()).expect("messages")
}

/// Whatever was said by the test's own turns and not planted.
fn is_turn(message: &Message) -> bool {
    message.content.starts_with("Go on, round") || message.content == "Noted."
}

/// The tokens of a request's working set and messages, at the least.
fn at_least(body: &Value) -> u64 {
    let texts = |content: &Value| -> usize {
        let blocks = content.as_array().into_iter().flatten();
        blocks.map(|block| block["text"].as_str().or(block["content"][0]["text"].as_str()).map_or(0, str::len)).sum()
    };
    let messages: usize = body["messages"].as_array().into_iter().flatten().map(|said| texts(&said["content"])).sum();
    let blocks = body["system"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    let set: usize = blocks.filter(|text| text.starts_with("# Working set")).map(str::len).sum();
    (messages + set) as u64 / 4
}
