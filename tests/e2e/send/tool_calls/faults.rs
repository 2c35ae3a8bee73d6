//! A disk without room, and no descriptor left, in the middle of a turn.

use std::fs;
use std::os::unix::net::UnixStream;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::small_disk::SmallDisk;
use chorus_tests::{DEADLINE, Fixture, wait_until};
use serde_json::{Value, json};

use super::super::{assert_legal, send, start_fixture};
use super::{called, results};
use crate::home;

#[test]
fn a_full_workspace_is_told_and_keeps_what_was_there() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let workspace = fixture.home.agent_dir("a").join("workspace");
    let Some(_disk) = SmallDisk::mount(&workspace, 64) else { return };
    let large = "x".repeat(256 << 10);
    let told = called(
        &fixture,
        &mut client,
        &[
            ("create_file", json!({"path": "kept", "content": "as it was"})),
            ("create_file", json!({"path": "new/folder/large", "content": large})),
            ("create_file", json!({"path": "kept", "content": large})),
            ("append_file", json!({"path": "kept", "content": large})),
            ("append_file", json!({"path": "kept", "content": ", and more"})),
        ],
    );
    let wrong: Vec<bool> = told.iter().map(|result| result.is_error).collect();
    assert_eq!(wrong, [false, true, true, true, false], "{told:?}");
    assert_eq!(told[1].content, "new/folder/large: the disk is full; nothing was changed");
    assert_eq!(fs::read_to_string(workspace.join("kept")).expect("the file"), "as it was, and more");
    let names: Vec<_> = fs::read_dir(&workspace).expect("the workspace").collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn without_a_free_descriptor_a_tool_says_so_and_the_record_stays_legal() {
    let told = without_descriptors("view", &json!({"path": "."}), true);
    // Either the workspace cannot be opened, or a moment later the program.
    assert!(told.contains("too many files are open") || told.contains("Too many open files"), "{told}");
}

#[test]
fn without_a_free_descriptor_a_command_is_not_run_and_says_so() {
    let told = without_descriptors("bash", &json!({"command": "touch ran"}), true);
    assert!(told.starts_with("cannot run the command: "), "{told}");
}

#[test]
fn without_a_free_descriptor_git_is_not_run_and_says_so() {
    let told = without_descriptors("git_log", &json!({}), true);
    // Either the workspace cannot be opened, or a moment later the program.
    assert!(told.contains("too many files are open") || told.contains("Too many open files"), "{told}");
}

#[test]
fn without_a_free_descriptor_no_task_is_started() {
    let told = without_descriptors("bash", &json!({"command": "true", "background": true}), true);
    assert!(told.starts_with("not started: ") && told.contains("Too many open files"), "{told}");
}

#[test]
fn without_a_free_descriptor_nothing_is_learnt_about_the_sandbox() {
    let told = without_descriptors("bash", &json!({"command": "touch ran"}), false);
    assert!(told.contains("was not approved"), "what is not known to be confined is asked about: {told}");
}

/// What a model is told of a call for which the daemon has no descriptor left; `before`: where it was made before, too. After it
/// the same call is done, and nobody is asked about it.
fn without_descriptors(tool: &str, params: &Value, before: bool) -> String {
    // Nobody answers here.
    let mut fixture = Fixture::builder(home().without_index()).models().keys("approval_timeout = \"1s\"").stopped();
    let mut command = fixture.home.command("sh");
    command.args(["-c", "ulimit -n 64; exec \"$0\"", fixture.home.bins.chorusd]);
    fixture.start_command(command);
    fixture.create_agent("a", Some("open"));
    let mut client = fixture.client();
    if before {
        called(&fixture, &mut client, &[(tool, params.clone())]);
    }
    fixture.answer(Response::text(["Wait. "]).gate("full").then_call("c1", tool, params));
    fixture.models().anthropic().set_fallback(Response::text(["There."]));
    let turn = fixture.spawn_send("a", "Look.");
    fixture.models().wait_for_gate("full");
    let connect = || UnixStream::connect(fixture.home.socket()).expect("the socket queues it");
    let all: Vec<UnixStream> = (0..64).map(|_| connect()).collect();
    wait_until("the daemon to have no descriptor left", DEADLINE, || {
        fixture.daemon().read_log().contains("cannot accept a connection").then_some(())
    });
    fixture.models().open_gate("full");
    // The model may be out of reach now, too.
    let ended = turn.join().expect("the client");
    drop(all);
    let told = results(&mut client);
    let told = told.get(usize::from(before)).unwrap_or_else(|| panic!("{told:?} {ended:?}"));
    assert!(told.is_error, "{told:?}");
    assert_legal(&client.messages("a"));
    let reply = wait_until("a turn to work again", DEADLINE, || send(&mut client, "Again.").ok());
    assert_eq!(reply.reply, "There.");
    let again = called(&fixture, &mut client, &[(tool, params.clone())]);
    assert!(again.iter().all(|result| !result.is_error), "{again:?}");
    told.content.clone()
}
