//! Messages from one agent to another.

use chorus_proto::{Role, SourceKind};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::{audited_changes, expect_tool, expect_tool_error, profile, results_in, start_fixture};

/// What `a` told `b`, once `b` has answered so often.
fn heard(fixture: &Fixture, answers: usize) -> Vec<chorus_proto::Message> {
    wait_until("b to answer", DEADLINE, || {
        fixture.client().conversation_exists("b", "from-a").then_some(())?;
        let shown = fixture.client().messages_in("b", "from-a");
        let said =
            shown.iter().filter(|message| message.role == Role::Assistant && message.tool_calls.is_empty()).count();
        (said >= answers).then_some(shown)
    })
}

#[test]
fn a_message_begins_a_turn_there_and_says_who_it_is_from() {
    let fixture = start_fixture("open");
    fixture.create_agent_of("b", "local/small", Some("standard"));
    fixture.models().openai().queue_text(["Counted."]);
    let said = expect_tool(&fixture, "send_to_agent", json!({"agent": "b", "message": "Count the sheep."}));
    assert!(said.starts_with("b received the message"), "{said}");
    let shown = heard(&fixture, 1);
    assert_eq!(shown[0].content, "Message from agent a (not from a person):\n\nCount the sheep.");
    assert_eq!(shown[0].source.as_ref().map(|source| source.kind), Some(SourceKind::Agent));
    assert_eq!(shown[0].author.as_ref().map(|author| &*author.name), Some("a"));
    assert_eq!(shown[1].content, "Counted.");
    assert!(fixture.client().messages("b").is_empty(), "its own conversation is not broken into");
}

#[test]
fn who_waits_gets_the_answer_and_who_would_wait_for_itself_is_told() {
    let fixture = start_fixture("open");
    fixture.create_agent_of("b", "local/small", Some("open"));
    let back = json!({"agent": "a", "message": "Which sheep?", "wait": 60});
    fixture.models().openai().queue(Response::tool_call("c", "send_to_agent", &back));
    fixture.models().openai().queue_text(["Seven."]);
    let ask = json!({"agent": "b", "message": "How many sheep?", "wait": 600});
    let said = expect_tool(&fixture, "send_to_agent", ask);
    assert_eq!(said, "b replied:\n\nSeven.");
    let refused = results_in(&fixture, "b", "from-a").pop().expect("a result");
    assert!(refused.is_error && refused.text.contains("waits for your answer"), "{refused:?}");
    let said = expect_tool_error(&fixture, "send_to_agent", json!({"agent": "b", "message": "x", "wait": 601}));
    assert!(said.contains("`wait` must be 1 to 600 seconds"), "{said}");
}

#[test]
fn who_waits_too_long_is_told_so() {
    let fixture = start_fixture("open");
    fixture.create_agent_of("b", "local/small", Some("open"));
    fixture.models().openai().queue(Response::empty().stall());
    let said = expect_tool(&fixture, "send_to_agent", json!({"agent": "b", "message": "Think.", "wait": 1}));
    assert!(said.contains("has not replied within 1 s"), "{said}");
}

#[test]
fn what_cannot_be_sent_is_told() {
    let fixture = start_fixture("open");
    fixture.create_agent_of("bees", "local/small", Some("open"));
    // By hand, because a model of no provider is refused.
    let file = fixture.home.agent_dir("bees").join("agent.json");
    let config = std::fs::read_to_string(&file).expect("agent.json").replace("local/small", "nobody/knows");
    std::fs::write(&file, config).expect("agent.json");
    for (to, why) in
        [("a", "to itself"), ("bee", "did you mean `bees`?"), ("../a", "is not a valid agent name"), ("bees", "nobody")]
    {
        let said = expect_tool_error(&fixture, "send_to_agent", json!({"agent": to, "message": "Hello."}));
        assert!(said.contains(why), "{said}");
    }
    expect_tool_error(&fixture, "send_to_agent", json!({"agent": "bees", "message": " "}));
}

#[test]
fn agents_that_answer_each_other_for_ever_are_stopped() {
    let fixture = start_fixture("open");
    fixture.create_agent_of("b", "local/small", Some("open"));
    let to = |agent: &str| Response::tool_call("c", "send_to_agent", &json!({"agent": agent, "message": "Your turn."}));
    // The person's turn, then three that begin from one another; the last of them is refused another.
    for agent in ["b", "b"] {
        fixture.models().anthropic().queue(to(agent));
        fixture.models().anthropic().queue_text(["Sent."]);
    }
    for agent in ["a", "a"] {
        fixture.models().openai().queue(to(agent));
        fixture.models().openai().queue_text(["Sent."]);
    }
    fixture.send("a", "begin").expect("a turn");
    heard(&fixture, 2);
    let last = results_in(&fixture, "b", "from-a").pop().expect("a result");
    assert!(last.is_error && last.text.contains("which is the limit"), "{last:?}");
    let sent =
        |agent, conversation| results_in(&fixture, agent, conversation).iter().filter(|came| !came.is_error).count();
    assert_eq!(sent("a", "main") + sent("b", "from-a") + sent("a", "from-b"), 3);
}

#[test]
fn without_a_person_nothing_is_granted() {
    let fixture = start_fixture("open");
    fixture.create_agent_of("b", "local/small", Some("open"));
    let own = json!({"allow": ["tool:view:.*"]});
    for wanted in [profile("open"), profile("locked"), profile(own)] {
        fixture.models().openai().queue(Response::tool_call("c", "self_edit_permissions", &wanted));
    }
    fixture.models().openai().queue_text(["I tried."]);
    expect_tool(&fixture, "send_to_agent", json!({"agent": "b", "message": "Take what permissions you like."}));
    heard(&fixture, 1);
    let results = results_in(&fixture, "b", "from-a");
    assert_eq!(results.len(), 3);
    for came in results {
        assert!(came.is_error && came.text.contains("no person requested this turn"), "{came:?}");
    }
    assert_eq!(fixture.agent_json("b", "permissions"), "open");
    assert!(audited_changes(&fixture).is_empty());
}
