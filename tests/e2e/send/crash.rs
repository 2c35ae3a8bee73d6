//! The daemon ends in the middle of a turn.

use std::fs;

use chorus_proto::{EventType, Message, Role};
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::rng::Rng;
use chorus_tests::strace::{Strace, is_permitted};
use serde_json::json;

use super::{MODELS, assert_legal, record, send, start_fixture, start_with_model};
use crate::system_calls::{all, sample};

#[test]
fn while_the_model_speaks_the_message_is_kept_and_the_turn_marked() {
    for model in MODELS {
        let fixture = start_with_model(model);
        fixture.answer(Response::text(["Half"]).gate("never"));
        let turn = fixture.spawn_send("a", "Talk.");
        fixture.models().wait_for_gate("never");
        let fixture = fixture.crash();
        assert!(turn.join().expect("the client").is_err());
        assert!(fixture.wait_for_events(EventType::TurnInterrupted, 1)[0].data["reason"].as_str().is_some());
        let mut client = fixture.client();
        assert_eq!(record(&mut client), [(Role::User, "Talk.".to_owned())]);
        fixture.reply("Here.");
        assert_eq!(send(&mut client, "Go on.").expect("a turn").reply, "Here.");
        let fixture = fixture.crash();
        assert_eq!(fixture.wait_for_events(EventType::TurnInterrupted, 1).len(), 1, "it is marked once");
    }
}

#[test]
fn an_agent_that_a_turn_was_cut_off_of_needs_no_request_to_be_legal() {
    let fixture = start_fixture();
    fixture.answer(Response::tool_call("c1", "list_models", &json!({})).then_call("c2", "list_models", &json!({})));
    fixture.answer(Response::empty().gate("never"));
    let turn = fixture.spawn_send("a", "Look.");
    fixture.models().wait_for_gate("never");
    let fixture = fixture.crash();
    drop(turn.join());
    fixture.wait_for_events(EventType::TurnInterrupted, 1);
    let shown = fixture.client().messages("a");
    assert_legal(&shown);
    assert_eq!(
        shown.iter().filter(|message| message.is_error).count(),
        0,
        "finished tools are not run or marked again"
    );
}

/// The whole turn that is struck: a call with its result, then the answer.
fn script(fixture: &Fixture) {
    fixture.answer(Response::text(["I look."]).then_call("c1", "list_models", &json!({})));
    fixture.reply("There you are.");
}

/// Sends a message, whatever comes of it.
fn look(fixture: &Fixture) {
    script(fixture);
    let _ = send(&mut fixture.client(), "Look.");
}

/// The journal's own thread.
fn journal(pid: u32) -> u32 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the daemon's threads").flatten();
    let named =
        |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "journal");
    let id = tasks.into_iter().find(named).expect("the journal's thread").file_name();
    id.to_string_lossy().parse().expect("a number")
}

/// Runs `act` while strace counts the journal's writes, or kills at the one with this number.
pub fn struck(fixture: &Fixture, kill_at: Option<usize>, act: impl FnOnce(&Fixture)) -> Strace {
    let inject = kill_at.map(|number| format!("inject=pwrite64:signal=KILL:when={number}"));
    let mut args = vec!["-e", "trace=pwrite64"];
    args.extend(inject.iter().flat_map(|inject| ["-e", inject.as_str()]));
    let strace = Strace::attach(&fixture.home, &[journal(fixture.daemon().pid)], &args).expect("strace attaches");
    act(fixture);
    strace
}

/// How many of the journal's writes were counted.
pub fn writes(strace: &Strace) -> usize {
    strace.read_output().lines().filter(|line| line.contains("pwrite64(")).count()
}

#[test]
fn a_kill_at_any_write_of_the_journal_leaves_a_usable_context() {
    let fixture = start_fixture();
    if !is_permitted(&fixture.home) {
        return;
    }
    let mut strace = struck(&fixture, None, look);
    let whole = record(&mut fixture.client());
    assert_eq!(whole.len(), 4);
    let fixture = fixture.crash();
    strace.wait_for_exit();
    let writes = writes(&strace);
    drop(fixture);
    let numbers: Vec<usize> = (1..=writes).collect();
    for number in sample(&numbers, if all() { writes } else { 8 }, &mut Rng::new(11)) {
        let fixture = start_fixture();
        let strace = struck(&fixture, Some(number), look);
        let fixture = fixture.crash();
        drop(strace);
        let mut client = fixture.client();
        // Read at once: whatever was open is closed before anything is shown.
        let shown = client.messages("a");
        assert_legal(&shown);
        // What the tool lists depends on what was discovered so far.
        let same = |found: &Message, role: Role, said: &str| {
            found.role == role && (role == Role::ToolResult || found.content == said)
        };
        let fits = shown.iter().zip(&whole).all(|(found, (role, said))| same(found, *role, said));
        assert!(fits && shown.len() <= whole.len(), "killed at write {number}: {shown:?}");
        fixture.models().anthropic().set_fallback(Response::text(["I am here."]));
        let answer = send(&mut client, "Are you?").unwrap_or_else(|e| panic!("killed at write {number}: {e}"));
        // The script may have an answer left that nobody was given.
        assert!(!answer.reply.is_empty(), "killed at write {number}");
        assert_legal(&client.messages("a"));
    }
}
