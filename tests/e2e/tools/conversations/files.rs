//! File tools of conversations that edit the same files.

use std::fs;

use serde_json::json;

use super::{call_tool, create, create_conversation, expect_refusal, expect_tool, replace, start_fixture, text, view};
use crate::tools::self_edit::{catalog_rows, open_catalog};

#[test]
fn what_another_wrote_must_be_read_before_it_is_overwritten() {
    let fixture = start_fixture(&["b", "c"]);
    expect_tool(&fixture, "main", "create_file", create("one\ntwo\n"));
    expect_refusal(&fixture, "b", "create_file", create("mine\n"), "main");
    expect_refusal(&fixture, "b", "str_replace", replace("one", "1"), "main");
    expect_refusal(&fixture, "b", "create_file", json!({"path": "x/../f", "content": "mine"}), "main");
    assert_eq!(text(&fixture, "f"), "one\ntwo\n");
    expect_tool(&fixture, "b", "view", view());
    expect_tool(&fixture, "b", "str_replace", replace("one", "1"));
    expect_tool(&fixture, "b", "str_replace", replace("two", "2"));
    expect_refusal(&fixture, "main", "str_replace", replace("2", "II"), "b");
    expect_tool(&fixture, "main", "view", view());
    expect_tool(&fixture, "main", "create_file", create("I\nII\n"));
    expect_refusal(&fixture, "b", "create_file", create("mine\n"), "main");
    expect_refusal(&fixture, "c", "create_file", create("mine\n"), "main");
    assert_eq!(text(&fixture, "f"), "I\nII\n");
}

#[test]
fn an_append_destroys_nothing_and_shows_nothing() {
    let fixture = start_fixture(&["b"]);
    expect_tool(&fixture, "main", "create_file", create("main\n"));
    expect_tool(&fixture, "b", "append_file", create("b\n"));
    assert_eq!(text(&fixture, "f"), "main\nb\n");
    // Neither has seen what the other wrote.
    expect_refusal(&fixture, "b", "create_file", create("mine\n"), "main");
    expect_refusal(&fixture, "main", "create_file", create("mine\n"), "b");
    let fixture = fixture.crash();
    expect_refusal(&fixture, "b", "create_file", create("mine\n"), "main");
    expect_tool(&fixture, "b", "view", view());
    expect_tool(&fixture, "b", "append_file", create("more\n"));
    expect_tool(&fixture, "b", "create_file", create("b\n"));
}

#[test]
fn after_a_restart_nothing_is_overwritten_unseen() {
    let fixture = start_fixture(&["b"]);
    expect_tool(&fixture, "main", "create_file", create("main\n"));
    expect_tool(&fixture, "b", "view", view());
    expect_tool(&fixture, "b", "create_file", create("b\n"));
    expect_tool(&fixture, "main", "view", view());
    let fixture = fixture.crash();
    // It has seen it, but nobody knows that any more.
    expect_refusal(&fixture, "main", "create_file", create("main again\n"), "b");
    // What it wrote itself it knows.
    expect_tool(&fixture, "b", "create_file", create("b again\n"));
    expect_refusal(&fixture, "main", "str_replace", replace("b", "c"), "b");
    expect_tool(&fixture, "main", "view", view());
    expect_tool(&fixture, "main", "str_replace", replace("again", "at last"));
    expect_refusal(&fixture, "b", "create_file", create("mine\n"), "main");
    assert_eq!(text(&fixture, "f"), "b at last\n");
}

#[test]
fn a_removed_file_and_one_that_a_person_changed_are_nobodys() {
    let fixture = start_fixture(&["b"]);
    expect_tool(&fixture, "main", "create_file", create("main\n"));
    fs::remove_file(fixture.workspace("a").join("f")).expect("removed");
    expect_tool(&fixture, "b", "create_file", create("b\n"));
    fs::write(fixture.workspace("a").join("f"), "a person\n").expect("changed");
    expect_tool(&fixture, "b", "create_file", create("b again\n"));
    fs::write(fixture.workspace("a").join("binary"), b"\0\x01").expect("a file");
    let came = call_tool(&fixture, "b", "view", json!({"path": "binary"}));
    assert!(came.is_error && came.text.contains("not a text file"), "{}", came.text);
    expect_tool(&fixture, "b", "create_file", json!({"path": "binary", "content": "text"}));
    expect_refusal(&fixture, "main", "create_file", json!({"path": "binary", "content": "x"}), "b");
    fs::write(fixture.workspace("a").join("binary"), b"\0\x02").expect("a file");
    assert!(call_tool(&fixture, "main", "view", json!({"path": "binary"})).is_error);
    expect_tool(&fixture, "main", "create_file", json!({"path": "binary", "content": "x"}));
}

#[test]
fn an_agent_with_main_alone_is_never_refused_and_has_no_rows() {
    let fixture = start_fixture(&[]);
    expect_tool(&fixture, "main", "create_file", create("one\n"));
    expect_tool(&fixture, "main", "bash", json!({"command": "echo two > f; echo x > g"}));
    expect_tool(&fixture, "main", "str_replace", replace("two", "2"));
    fs::write(fixture.workspace("a").join("f"), "a person\n").expect("changed");
    expect_tool(&fixture, "main", "create_file", create("main\n"));
    expect_tool(&fixture, "main", "create_file", json!({"path": "g", "content": "main\n"}));
    for table in ["file_writes", "workspace_commands"] {
        assert!(catalog_rows(&fixture, &format!("SELECT * FROM {table}")).is_empty(), "{table}");
    }
    // From the first other conversation on, what main writes counts.
    create_conversation(&fixture, "b");
    expect_tool(&fixture, "main", "create_file", create("main again\n"));
    expect_refusal(&fixture, "b", "create_file", create("mine\n"), "main");
    let rows: u64 = open_catalog(&fixture)
        .query_row("SELECT count(*) FROM file_writes WHERE conversation_id = agent_id", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(rows, 1);
}

#[test]
fn a_part_that_was_read_again_is_not_the_whole_file() {
    let fixture = start_fixture(&["b"]);
    let page = |first: u32, last: u32| json!({"path": "f", "start_line": first, "end_line": last});
    expect_tool(&fixture, "main", "create_file", create("one\ntwo\nthree\n"));
    expect_tool(&fixture, "b", "view", view());
    expect_tool(&fixture, "b", "str_replace", replace("three", "3"));
    expect_tool(&fixture, "main", "view", page(1, 1));
    let came = call_tool(&fixture, "main", "create_file", create("I\ntwo\nthree\n"));
    assert_eq!((&*came.text, came.is_error), ("edited meanwhile by b: read all of it again", true));
    // The text that it replaces is all that changes. Page by page it has seen everything in the end.
    expect_tool(&fixture, "main", "str_replace", replace("one", "1"));
    expect_tool(&fixture, "main", "view", page(1, 2));
    assert!(call_tool(&fixture, "main", "create_file", create("mine\n")).is_error);
    expect_tool(&fixture, "main", "view", page(3, 3));
    expect_tool(&fixture, "main", "create_file", create("I\nII\nIII\n"));
    assert_eq!(text(&fixture, "f"), "I\nII\nIII\n");
}
