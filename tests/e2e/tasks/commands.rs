//! `chorusctl tasks`.

use std::io::Read as _;
use std::process::{Child, Stdio};

use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::process::{signal, wait_for_exit};
use chorus_tests::{DEADLINE, InteractiveCommand, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use super::{GATE, open_gate, show_task, start_fixture, start_task, wait_for_end};
use crate::approvals::in_catalog;

#[test]
fn tasks_are_listed_shown_and_stopped() {
    let fixture = start_fixture();
    let none = chorusctl(&fixture.home, ["tasks"]);
    assert_eq!((none.status, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("no background tasks"), "{}", none.stderr);
    let failed = start_task(&fixture, "exit 3");
    wait_for_end(&fixture, &failed);
    let runs = start_task(&fixture, &format!("printf 'a\\033[2Jb\\n'; {GATE} # 'quoted'"));
    let listed = chorusctl(&fixture.home, ["tasks", "list"]).expect_success();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("ID  STATUS"), "{listed}");
    assert!(lines[1].starts_with("t2  running ") && lines[1].contains("  just now  "), "{listed}");
    assert!(lines[2].starts_with("t1  failed (exit 3)") && lines[2].ends_with("exit 3"), "{listed}");
    let everybody = chorusctl(&fixture.home, ["tasks", "--all-agents", "--limit", "1"]).expect_success();
    assert!(everybody.starts_with("ID  AGENT  STATUS") && everybody.lines().count() == 2, "{everybody}");
    let json: Value = chorusctl(&fixture.home, ["--json", "tasks"]).expect_json();
    assert_eq!((json["tasks"].as_array().map(Vec::len), &json["next"]), (Some(2), &Value::Null));
    let lines = chorusctl(&fixture.home, ["--format", "jsonl", "tasks"]).expect_success();
    assert_eq!(lines.lines().count(), 2);

    let shown = chorusctl(&fixture.home, ["tasks", "show", &runs]).expect_success();
    assert!(shown.starts_with("t2  running  agent a\n") && shown.contains("/logs/t2.log"), "{shown}");
    let status = chorusctl(&fixture.home, ["status", "a"]).expect_success();
    assert!(status.contains("tasks 1 running, 1 finished"), "{status}");
    assert!(status.contains("\nRunning tasks:\n  [t2] printf "), "{status}");
    wait_until("what it printed", DEADLINE, || {
        Some(chorusctl(&fixture.home, ["tasks", "logs", &runs]).expect_success()).filter(|log| log == "a␛[2Jb\n")
    });
    let json = chorusctl(&fixture.home, ["--json", "tasks", "logs", &runs]).expect_json();
    assert_eq!((&json["data"], &json["task"]["id"]), (&Value::from("a\u{1b}[2Jb\n"), &Value::from("t2")));

    let stopped = chorusctl(&fixture.home, ["tasks", "stop", &runs]).expect_success();
    assert!(stopped.starts_with("stopped t2: printf"), "{stopped}");
    assert!(
        chorusctl(&fixture.home, ["tasks", "stop", &failed])
            .expect_success()
            .contains("t1 has already ended: failed (exit 3)")
    );
    for verb in ["show", "logs", "stop"] {
        chorusctl(&fixture.home, ["tasks", verb, "t99"]).expect_failure_with_hint(3);
    }
    chorusctl(&fixture.home, ["tasks", "--limit", "0"]).expect_failure(2);
    chorusctl(&fixture.home, ["tasks", "--all-agents", "show", &runs]).expect_failure_with_hint(2);
}

fn follow(fixture: &Fixture, id: &str) -> InteractiveCommand {
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(["tasks", "logs", "--follow", id]);
    InteractiveCommand::piped(command)
}

#[test]
fn a_log_is_followed_to_the_end_of_its_task() {
    let fixture = start_fixture();
    let id = start_task(&fixture, &format!("echo one; {GATE}; echo two; exit 3"));
    let mut followed = follow(&fixture, &id);
    followed.stdout.wait_for("one\n");
    open_gate(&fixture);
    let (status, out, _) = followed.wait_for_exit();
    assert!(status.success(), "how the task ended is no failure of who looks on");
    assert_eq!(out, "one\ntwo\n");
}

#[test]
fn an_interrupt_ends_following_and_nothing_else() {
    let fixture = start_fixture();
    let id = start_task(&fixture, &format!("echo one; {GATE}"));
    let mut child = spawn(&fixture, &["tasks", "logs", "--follow", &id]);
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 4]).expect("the beginning");
    signal(child.id(), Signal::INT);
    let status = wait_for_exit(&mut child, "an interrupted command");
    use std::os::unix::process::ExitStatusExt as _;
    assert_eq!(status.signal(), Some(2), "{status}");
    assert_eq!(show_task(&fixture, &id).status, chorus_proto::methods::tasks::TaskStatus::Running);
    open_gate(&fixture);
    wait_for_end(&fixture, &id);
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let fixture = start_fixture();
    let id = start_task(&fixture, "yes | head -c 2000000");
    wait_for_end(&fixture, &id);
    for args in [&["tasks", "logs", "t1"][..], &["tasks", "logs", "-f", "t1"], &["--json", "tasks", "logs", "t1"]] {
        let mut child = spawn(&fixture, args);
        child.stdout.take().expect("a pipe").read_exact(&mut [0; 1]).expect("the beginning");
        let status = wait_for_exit(&mut child, "chorusctl");
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
        assert!(status.success() && said.is_empty(), "{args:?}: {status} {said}");
    }
}

fn spawn(fixture: &Fixture, args: &[&str]) -> Child {
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("chorusctl starts")
}

#[test]
fn ids_of_tasks_are_completed() {
    let fixture = start_fixture();
    let id = start_task(&fixture, "true");
    wait_for_end(&fixture, &id);
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.env("CHORUSCTL_COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", "3");
    command.args(["--", "chorusctl", "tasks", "show", ""]);
    let said = chorus_tests::ctl::run_command(command, b"").expect_success();
    assert!(said.lines().any(|line| line == "t1"), "{said}");
}

#[test]
fn of_many_a_person_is_shown_the_newest_and_a_program_all() {
    let fixture = start_fixture();
    wait_for_end(&fixture, &start_task(&fixture, "true"));
    let agent = fixture.client().agent_status("a").id;
    let agent = agent.simple();
    let rows: Vec<String> = (1002..=1400)
        .map(|n| {
            format!(
                "('t{n}', x'{agent}', 'a', 'echo {n}', 1, 1, '', 'completed', 0, NULL, {n}, {n}, 'logs/t{n}.log', 1, NULL)"
            )
        })
        .collect();
    in_catalog(&fixture.home.path, &format!("INSERT INTO tasks VALUES {}", rows.join(", ")));
    let runs = start_task(&fixture, GATE);
    let listed = chorusctl(&fixture.home, ["tasks"]);
    let ids: Vec<&str> = listed.stdout.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!((ids.len(), ids[0], ids[1], ids[2], ids[20]), (21, &*runs, "t1", "t1400", "t1382"), "{listed:?}");
    assert!(listed.stderr.contains("show older tasks: chorusctl tasks list --limit 200"), "{}", listed.stderr);
    let more = chorusctl(&fixture.home, ["tasks", "list", "--limit", "200"]);
    assert_eq!((more.stdout.lines().count(), more.stderr.as_str()), (201, ""));
    let json: Value = chorusctl(&fixture.home, ["--json", "tasks"]).expect_json();
    assert_eq!((json["tasks"].as_array().map(Vec::len), &json["next"]), (Some(401), &Value::Null));
}
