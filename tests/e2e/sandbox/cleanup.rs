//! Nothing is left: whichever way a command ends, all its processes do.

use std::fs;
use std::time::{Duration, Instant};

use chorus_proto::methods::send::{Cancel, CancelParams};
use chorus_tests::ctl::chorusctl;
use chorus_tests::program::write_program;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::{call_bash, each_sandbox, gone, mark, run_command, running, spawn_bash, start_sandbox, wait_for_file};

#[test]
fn what_a_command_leaves_behind_ends_with_it_and_holds_up_nothing() {
    for fixture in each_sandbox() {
        let mark = mark();
        let begun = Instant::now();
        // Twice forked, in a session of its own, deaf, with the pipe in its hands.
        let left = format!(
            "(setsid bash -c \"trap '' TERM HUP; sleep {mark} & sleep {mark}; sleep {mark}\" &) ; nohup sleep {mark} & echo on"
        );
        let told = run_command(&fixture, &left).ok();
        assert!(told.contains("on\n") && begun.elapsed() < Duration::from_secs(10), "{told}");
        gone(&mark);
    }
}

#[test]
fn a_turn_that_is_cancelled_leaves_no_process() {
    for fixture in each_sandbox() {
        let mark = mark();
        let command = format!("trap '' TERM; (setsid sleep {mark} &); echo x > begun; sleep {mark}; sleep {mark}");
        let turn = spawn_bash(&fixture, &json!({"command": command}));
        wait_for_file(&fixture, "begun");
        assert!(!running(&mark).is_empty());
        let begun = Instant::now();
        let params = CancelParams { conversation: None, agent: Some("a".into()), turn_id: None };
        fixture.client().call::<Cancel>(&params).expect("send.cancel").turn_id.expect("a turn");
        assert!(turn.join().expect("a client").is_err());
        gone(&mark);
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_daemon_that_is_killed_leaves_no_process() {
    for mut fixture in each_sandbox() {
        let mark = mark();
        let command = format!("trap '' TERM HUP; (setsid sleep {mark} &); echo x > begun; sleep {mark}; sleep {mark}");
        let turn = spawn_bash(&fixture, &json!({"command": command}));
        wait_for_file(&fixture, "begun");
        assert!(!running(&mark).is_empty());
        fixture.kill();
        gone(&mark);
        assert!(turn.join().expect("a client").is_err());
    }
}

#[test]
fn a_stop_ends_commands_and_saves() {
    for mut fixture in each_sandbox() {
        let mark = mark();
        let turn = spawn_bash(
            &fixture,
            &json!({"command": format!("trap '' TERM; echo x > begun; sleep {mark}; sleep {mark}")}),
        );
        wait_for_file(&fixture, "begun");
        let begun = Instant::now();
        assert!(fixture.stop().success());
        assert!(begun.elapsed() < Duration::from_secs(10));
        gone(&mark);
        assert!(turn.join().expect("a client").is_err());
    }
}

#[test]
fn a_bubblewrap_that_is_killed_while_it_sets_up_leaves_no_process_and_holds_up_nothing() {
    // One that leaves what the real one leaves: a process of its group, with the line in its hands, that hears nothing.
    let (mark, folder) = (mark(), tempfile::tempdir().expect("a directory"));
    let path = std::env::var("PATH").expect("PATH");
    let (killed, file) = (folder.path().join("killed"), folder.path().join("bwrap"));
    let script = format!(
        "#!/bin/sh\nif [ -e '{}' ]; then exec 3<&0; sleep {mark} <&3 & kill -9 $$; fi\nPATH='{path}'\nexec bwrap \"$@\"\n",
        killed.display()
    );
    write_program(&file, script);
    let path = format!("{}:{path}", folder.path().display());
    let Some(fixture) = start_sandbox("bubblewrap", &[("PATH", &path)]) else { return };
    assert_eq!(run_command(&fixture, "echo on").ok(), "on\n");
    fs::write(&killed, "").expect("a sign");
    let begun = Instant::now();
    let told = run_command(&fixture, "echo never");
    assert!(told.is_error && told.text.contains("killed from outside"), "{told:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    gone(&mark);
    // In the background too.
    let told = call_bash(&fixture, &json!({"command": "echo never", "background": true}));
    assert!(told.is_error && told.text.contains("not started: it was killed from outside"), "{told:?}");
    gone(&mark);
    fs::remove_file(&killed).expect("no sign");
    assert_eq!(run_command(&fixture, "echo on").ok(), "on\n");
}

#[test]
fn an_agent_may_be_renamed_right_after_it_has_started_a_task() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = std::env::var("PATH").expect("PATH");
    let script = format!("#!/bin/sh\nPATH='{path}'\nsleep 0.3\nexec bwrap \"$@\"\n");
    write_program(folder.path().join("bwrap"), script);
    let path = format!("{}:{path}", folder.path().display());
    let Some(fixture) = start_sandbox("bubblewrap", &[("PATH", &path)]) else { return };
    let begun = call_bash(&fixture, &json!({"command": "echo on > here", "background": true}));
    assert!(!begun.is_error, "{begun:?}");
    chorusctl(&fixture.home, ["agent", "config", "a", "name", "b"]).expect_success();
    let file = fixture.home.agent_dir("b").join("workspace/here");
    wait_until("the task to write its file", DEADLINE, || fs::read_to_string(&file).ok().filter(|text| text == "on\n"));
}
