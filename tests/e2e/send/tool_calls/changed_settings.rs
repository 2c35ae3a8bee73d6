//! What changes in the middle of a turn holds from the next call on.

use chorus_tests::model_server::Response;
use serde_json::{Value, json};

use super::super::{MODELS, start_with_model};
use super::{configure, results};

fn names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().expect("tools").iter();
    tools.filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str())).collect()
}

#[test]
fn prompt_permissions_and_notes_of_a_turn_are_those_of_the_moment() {
    for model in MODELS {
        let fixture = start_with_model(model);
        let mut client = fixture.client();
        configure(&mut client, "system_prompt", "You are the old one.");
        let call = Response::text(["I make it. "]).gate("changed").then_call(
            "c1",
            "create_file",
            &json!({"path": "x", "content": "y"}),
        );
        fixture.answer(call);
        fixture.reply("It was not allowed.");
        let turn = fixture.spawn_send("a", "Make x.");
        fixture.models().wait_for_gate("changed");
        configure(&mut client, "system_prompt", "You are the new one.");
        configure(&mut client, "permissions", "locked");
        std::fs::write(fixture.home.agent_dir("a").join("docs/new.md"), "Fresh ink.").expect("a note");
        fixture.models().open_gate("changed");
        turn.join().expect("the client").expect("a turn");
        let told = results(&mut client);
        assert_eq!(told[0].content, "tool:create_file:x is not allowed: no rule matches it");
        let requests = fixture.models().requests();
        assert!(requests[0].text.contains("the old one") && names(&requests[0].body).contains(&"create_file"));
        assert!(requests[1].text.contains("the new one") && requests[1].text.contains("Fresh ink."));
        assert!(names(&requests[1].body).contains(&"view") && !names(&requests[1].body).contains(&"create_file"));
    }
}

#[test]
fn another_model_answers_from_the_next_call_on() {
    let fixture = start_with_model(MODELS[0]);
    let mut client = fixture.client();
    fixture.answer(Response::text(["I look. "]).gate("changed").then_call("c1", "view", &json!({"path": "."})));
    fixture.models().openai().queue_text(["I am another."]);
    let turn = fixture.spawn_send("a", "Look.");
    fixture.models().wait_for_gate("changed");
    configure(&mut client, "model", MODELS[1]);
    fixture.models().open_gate("changed");
    assert_eq!(turn.join().expect("the client").expect("a turn").reply, "I am another.");
}
