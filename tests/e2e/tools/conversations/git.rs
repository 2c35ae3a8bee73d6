//! Conversations of one agent that commit and switch branches in its workspace.

use std::fs;

use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::model_server::Response;
use serde_json::json;

use super::{create, expect_refusal, expect_tool, replace, results, send_params, start_fixture, text, view};
use crate::tools::git::git;

#[test]
fn a_commit_names_the_conversation_that_made_it() {
    let fixture = start_fixture(&["b"]);
    let workspace = fixture.workspace("a");
    let last_message = || git(&workspace, &["log", "-1", "--format=%B"]);
    expect_tool(&fixture, "main", "create_file", create("one\n"));
    expect_tool(&fixture, "main", "git_commit", json!({"message": "One"}));
    assert_eq!(last_message(), "One");
    for (file, message, due) in [
        ("b1", "Two", "Two\n\nConversation: b"),
        ("b2", "Three\n\nIt was: hard\nto do.\n", "Three\n\nIt was: hard\nto do.\n\nConversation: b"),
        ("b3", "Four\n\nFixes: #1\nCo-authored-by: A", "Four\n\nFixes: #1\nCo-authored-by: A\nConversation: b"),
        ("b4", "fix: it", "fix: it\n\nConversation: b"),
    ] {
        expect_tool(&fixture, "b", "create_file", json!({"path": file, "content": "x"}));
        expect_tool(&fixture, "b", "git_commit", json!({"message": message}));
        assert_eq!(last_message(), due);
        assert_eq!(git(&workspace, &["log", "-1", "--format=%(trailers:key=Conversation,valueonly)"]), "b");
    }
}

#[test]
fn a_checkpoint_names_the_conversation_that_is_saved() {
    use chorus_proto::methods::agent::{Config, ConfigParams};
    use chorus_proto::methods::context::{Save, SaveParams};
    let fixture = start_fixture(&["b"]);
    let (key, value) = (Some("checkpoint_workspace".into()), Some("true".into()));
    fixture.client().call::<Config>(&ConfigParams { name: "a".into(), key, value }).expect("agent.config");
    expect_tool(&fixture, "b", "create_file", create("one\n"));
    let params = SaveParams { agent: Some("a".into()), conversation: Some("b".into()), ..Default::default() };
    let saved = fixture.client().call::<Save>(&params).expect("context.save").session;
    let commit = saved.header.workspace_commit.expect("a checkpoint");
    let message = git(&fixture.workspace("a"), &["log", "-1", "--format=%B", &commit]);
    assert!(message.ends_with("\n\nConversation: b"), "{message}");
}

#[test]
fn commits_of_two_conversations_at_once_do_not_disturb_each_other() {
    const EACH: usize = 5;
    let fixture = start_fixture(&["b"]);
    let workspace = fixture.workspace("a");
    let commits = |name: &str| {
        let mut answer = Response::empty();
        for number in 0..EACH {
            let path = format!("{name}{number}");
            fs::write(workspace.join(&path), name).expect("a file");
            let params = json!({"message": format!("Add {path}"), "paths": [path]});
            answer = answer.then_call(&format!("c{number}"), "git_commit", &params);
        }
        answer
    };
    // Each conversation has a model of its own, so that it gets its own answers.
    let models = fixture.models();
    models.anthropic().queue(commits("main"));
    models.anthropic().queue_text(["Done."]);
    models.openai().queue(commits("b"));
    models.openai().queue_text(["Done."]);
    let turns = [("main", "anthropic/claude-test"), ("b", "local/small")].map(|(name, model)| {
        let params = SendParams { model: Some(model.into()), ..send_params(name) };
        let mut client = fixture.client();
        client.set_timeout(Some(chorus_tests::DEADLINE * 3)).expect("a time-out");
        std::thread::spawn(move || client.call::<Send>(&params))
    });
    for turn in turns {
        turn.join().expect("a client").expect("a turn");
    }
    for name in ["main", "b"] {
        let came = results(&mut fixture.client(), name);
        assert!(came.len() == EACH && came.iter().all(|result| !result.is_error), "{name}: {came:?}");
    }
    let log = git(&workspace, &["log", "--format=%s:%(trailers:key=Conversation,valueonly,separator=%x2C)"]);
    for number in 0..EACH {
        for due in [format!("Add main{number}:"), format!("Add b{number}:b")] {
            assert_eq!(log.lines().filter(|line| *line == due).count(), 1, "{due}: {log}");
        }
        let added = |name: &str| {
            let grep = format!("--grep=^Add {name}{number}$");
            git(&workspace, &["log", &grep, "--name-only", "--format="])
        };
        assert_eq!((added("main"), added("b")), (format!("main{number}"), format!("b{number}")));
    }
    assert_eq!(git(&workspace, &["status", "--porcelain"]), "");
}

#[test]
fn a_checkout_counts_as_a_command() {
    let fixture = start_fixture(&["b"]);
    expect_tool(&fixture, "b", "create_file", create("one\n"));
    expect_tool(&fixture, "b", "git_commit", json!({"message": "One"}));
    expect_tool(&fixture, "b", "git_checkout", json!({"branch": "topic", "create": true}));
    expect_tool(&fixture, "b", "create_file", create("two\n"));
    expect_tool(&fixture, "b", "git_commit", json!({"message": "Two"}));
    expect_tool(&fixture, "main", "view", view());
    expect_tool(&fixture, "b", "git_checkout", json!({"branch": "main"}));
    assert_eq!(text(&fixture, "f"), "one\n");
    expect_refusal(&fixture, "main", "str_replace", replace("one", "1"), "b");
    expect_tool(&fixture, "main", "view", view());
    expect_tool(&fixture, "main", "str_replace", replace("one", "1"));
}
