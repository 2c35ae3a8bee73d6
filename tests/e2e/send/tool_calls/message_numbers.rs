//! The number of the message that has the whole output of a call.

use chorus_proto::Role;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use serde_json::{Value, json};

use super::super::start_fixture;

#[test]
fn a_folded_output_says_which_message_has_the_whole() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    client.append("a", "Before.");
    let long: String = (1..=200).map(|line| format!("line {line}\n")).collect();
    std::fs::write(fixture.home.agent_dir("a").join("workspace/long.txt"), long).expect("a file");
    let view = json!({"path": "long.txt"});
    fixture.answer(Response::text(["I look."]).then_call("c1", "view", &view).then_call("c2", "view", &view));
    fixture.reply("Done.");
    let told = chorusctl(&fixture.home, ["--agent", "a", "--format", "jsonl", "send", "Go."]).expect_success();
    let lines = told.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let results: Vec<(String, u64)> = lines
        .filter_map(|line| Some((line["result"]["id"].as_str()?.to_owned(), line["result"]["message"].as_u64()?)))
        .collect();
    assert_eq!(results.len(), 2, "{told}");
    let messages = client.messages("a");
    for (call, number) in &results {
        let message = &messages[usize::try_from(*number).expect("a number") - 1];
        assert_eq!((message.role, message.tool_call_id.as_ref()), (Role::ToolResult, Some(call)), "{told}");
    }
    let number = results[0].1.to_string();
    let shown = chorusctl(&fixture.home, ["--agent", "a", "show", "--at", &number]).expect_success();
    assert!(shown.contains("line 200"), "{shown}");
    // A person is told the command.
    fixture.answer(Response::tool_call("c3", "view", &view));
    fixture.reply("Done.");
    let sent = chorusctl(&fixture.home, ["--agent", "a", "send", "Again."]);
    assert!(sent.stderr.contains("more lines: chorusctl show --at 9"), "{}", sent.stderr);
}
