//! The daemon ends without a word while tasks run.

use std::path::Path;
use std::process::{Command, Stdio};

use chorus_proto::EventType;
use chorus_proto::methods::tasks::TaskStatus;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::is_running;
use chorus_tests::{DEADLINE, Home, wait_until};

use super::{
    GATE, crash, list, show_task, start_fixture, start_task, wait_for_end, wait_for_notices, wait_for_running_tasks,
};

#[test]
fn what_ran_is_lost_nothing_of_it_is_left_and_its_agent_hears_that_once() {
    let mut fixture = start_fixture();
    let id = start_task(&fixture, &format!("echo begun; sleep 300 & {GATE}"));
    let done = start_task(&fixture, "true");
    wait_for_end(&fixture, &done);
    wait_for_notices(&fixture, "a", 1);
    wait_for_running_tasks(&fixture, "a", 1);
    let pid = show_task(&fixture, &id).pid;
    crash(&mut fixture, |_| ());
    let task = show_task(&fixture, &id);
    assert_eq!((task.status, task.exit_code), (TaskStatus::Lost, None));
    assert!(task.ended_at.is_some());
    wait_until("the end of what was left over", DEADLINE, || (!is_running(pid)).then_some(()));
    let heard = wait_for_notices(&fixture, "a", 2);
    assert!(heard[1].content.starts_with(&format!("Background task {id} was lost: ")), "{}", heard[1].content);
    assert!(heard[1].content.ends_with("| begun"), "{}", heard[1].content);
    assert_eq!(fixture.wait_for_events(EventType::TaskFinished, 2)[1].data["status"], "lost");
    wait_for_running_tasks(&fixture, "a", 0);
    crash(&mut fixture, |_| ());
    let next = start_task(&fixture, "true");
    wait_for_end(&fixture, &next);
    assert_eq!(wait_for_notices(&fixture, "a", 3).len(), 3, "what was told is not told again");
    assert_eq!(show_task(&fixture, &done).status, TaskStatus::Completed);
    assert_eq!(next, "t3");
}

/// A process of the test.
struct Innocent(std::process::Child);

impl Innocent {
    fn new() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("300").stdin(Stdio::null()).spawn().expect("a process"))
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// When a process started, as proc_pid_stat(5) has it.
fn started(pid: u32) -> i64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("its stat");
    let fields = stat.rsplit(')').next().expect("fields").split_whitespace();
    fields.clone().nth(19).expect("the 22nd field").parse().expect("a number")
}

fn change(home: &Home, id: &str, set: &str) {
    let conn = rusqlite::Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    let changed = conn.execute(&format!("UPDATE tasks SET {set} WHERE id = ?1"), [id]);
    assert_eq!(changed.expect("a change"), 1, "{set}");
}

#[test]
fn a_number_that_another_process_has_by_now_is_left_alone() {
    let innocent = Innocent::new();
    let pid = innocent.0.id();
    let at = started(pid);
    for noted in [
        format!("pid = {pid}, pid_started = {}", at - 1),
        format!("pid = {pid}, pid_started = {at}, boot = 'another start of the machine'"),
        format!("pid = {pid}, pid_started = {at}, boot = ''"),
        format!("pid = {pid}, pid_started = 0"),
    ] {
        let mut fixture = start_fixture();
        let id = start_task(&fixture, GATE);
        crash(&mut fixture, |home| {
            // What was really started ends by itself now.
            std::fs::write(home.agent_dir("a").join("workspace/go"), "").expect("a file in the workspace");
            change(home, &id, &noted);
        });
        assert_eq!(show_task(&fixture, &id).status, TaskStatus::Lost);
        wait_for_notices(&fixture, "a", 1);
        assert!(is_running(pid), "{noted}");
    }
}

#[test]
fn a_lost_table_takes_no_log_with_it() {
    let mut fixture = start_fixture();
    let first = start_task(&fixture, "echo first");
    let log = wait_for_end(&fixture, &first).log_path;
    wait_for_notices(&fixture, "a", 1);
    crash(&mut fixture, |home| change(home, &first, "id = 'gone', told = 1"));
    let second = start_task(&fixture, "echo second");
    assert_eq!((first.as_str(), second.as_str()), ("t1", "t2"));
    wait_for_end(&fixture, &second);
    assert_eq!(std::fs::read_to_string(Path::new(&log)).expect("the first log"), "first\n");
}

#[test]
fn the_end_that_was_not_told_is_told_after_the_next_start() {
    let mut fixture = start_fixture();
    let id = start_task(&fixture, "echo said");
    wait_for_end(&fixture, &id);
    wait_for_notices(&fixture, "a", 1);
    let mut client = fixture.client();
    assert_eq!(list(&mut client, Some("a")).len(), 1);
    crash(&mut fixture, |home| change(home, &id, "told = 0, started_at = started_at - 1"));
    let heard = wait_for_notices(&fixture, "a", 2);
    assert!(heard[1].content.ends_with("| said"), "{}", heard[1].content);
    // The key of a message that was added already adds it no second time.
    crash(&mut fixture, |home| change(home, &id, "told = 0"));
    let next = start_task(&fixture, "true");
    wait_for_end(&fixture, &next);
    assert_eq!(wait_for_notices(&fixture, "a", 3).len(), 3);
    assert!(fixture.client().messages("a").len() > 3);
}
