//! Commands of one conversation and file tools of another.

use std::fs;

use chorus_tests::{DEADLINE, Fixture, wait_until};
use serde_json::json;

use super::{call_tool, create, create_conversation, expect_refusal, expect_tool, replace, start_fixture, text, view};

#[test]
fn what_a_command_of_another_changed_must_be_read_again() {
    let fixture = start_fixture(&["b"]);
    expect_tool(&fixture, "main", "create_file", create("one\n"));
    expect_tool(&fixture, "b", "bash", json!({"command": "ls"}));
    expect_tool(&fixture, "main", "str_replace", replace("one", "two"));
    expect_tool(&fixture, "b", "bash", json!({"command": "sed -i s/two/three/ f"}));
    expect_refusal(&fixture, "main", "str_replace", replace("three", "3"), "b");
    expect_refusal(&fixture, "main", "create_file", create("mine\n"), "b");
    expect_tool(&fixture, "main", "append_file", create("main\n"));
    expect_refusal(&fixture, "main", "create_file", create("mine\n"), "b");
    assert_eq!(text(&fixture, "f"), "three\nmain\n");
    expect_tool(&fixture, "main", "view", view());
    // Its own commands and a person may change it then.
    expect_tool(&fixture, "main", "bash", json!({"command": "echo four > f"}));
    expect_tool(&fixture, "main", "str_replace", replace("four", "4"));
    fs::write(fixture.workspace("a").join("f"), "five\n").expect("changed");
    expect_tool(&fixture, "main", "create_file", create("six\n"));
}

#[test]
fn a_file_that_a_command_made_is_not_replaced_unseen() {
    let fixture = start_fixture(&["b"]);
    expect_tool(&fixture, "b", "bash", json!({"command": "echo one > f"}));
    let unseen = |fixture: &Fixture| {
        let came = call_tool(fixture, "main", "create_file", create("mine\n"));
        let why = "it exists, and commands of b may have changed it: read it first";
        assert_eq!((&*came.text, came.is_error), (why, true));
    };
    unseen(&fixture);
    let fixture = fixture.crash();
    unseen(&fixture);
    // The text that it replaces is all that is lost.
    expect_tool(&fixture, "main", "str_replace", replace("one", "two"));
    unseen(&fixture);
    expect_tool(&fixture, "main", "view", view());
    expect_tool(&fixture, "main", "create_file", create("main\n"));
    assert_eq!(text(&fixture, "f"), "main\n");
}

#[test]
fn a_background_command_counts_until_it_ends() {
    let fixture = start_fixture(&[]);
    expect_tool(&fixture, "main", "create_file", create("one\n"));
    create_conversation(&fixture, "b");
    let command =
        "until test -e go; do sleep 0.01; done; echo two > f; touch done; until test -e end; do sleep 0.01; done";
    expect_tool(&fixture, "b", "bash", json!({"command": command, "background": true}));
    expect_tool(&fixture, "main", "create_file", create("three\n"));
    fs::write(fixture.workspace("a").join("go"), "").expect("a file");
    wait_until("the command", DEADLINE, || fixture.workspace("a").join("done").exists().then_some(()));
    expect_refusal(&fixture, "main", "create_file", create("mine\n"), "b");
    expect_tool(&fixture, "main", "view", view());
    expect_tool(&fixture, "main", "create_file", create("mine\n"));
}
