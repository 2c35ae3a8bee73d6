//! The daemon ends without a word while tasks run.

use std::path::Path;
use std::process::{Command, Stdio};

use chorus_proto::EventType;
use chorus_proto::methods::tasks::TaskStatus;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::is_running;
use chorus_tests::{DEADLINE, Home, wait_until};

use super::{GATE, Rig, list};

#[test]
fn what_ran_is_lost_nothing_of_it_is_left_and_its_agent_hears_that_once() {
    let rig = Rig::new();
    let id = rig.start(&format!("echo begun; sleep 300 & {GATE}"));
    let done = rig.start("true");
    rig.ended(&done);
    rig.heard("a", 1);
    rig.listed("a", 1);
    let pid = rig.task(&id).pid;
    let rig = rig.crash(|_| ());
    let task = rig.task(&id);
    assert_eq!((task.status, task.exit_code), (TaskStatus::Lost, None));
    assert!(task.ended_at.is_some());
    wait_until("the end of what was left over", DEADLINE, || (!is_running(pid)).then_some(()));
    let heard = rig.heard("a", 2);
    assert!(heard[1].content.starts_with(&format!("The background task {id} is lost: ")), "{}", heard[1].content);
    assert!(heard[1].content.ends_with("| begun"), "{}", heard[1].content);
    assert_eq!(rig.wait_for(EventType::TaskFinished, 2)[1].data["status"], "lost");
    rig.listed("a", 0);
    let rig = rig.crash(|_| ());
    let next = rig.start("true");
    rig.ended(&next);
    assert_eq!(rig.heard("a", 3).len(), 3, "what was told is not told again");
    assert_eq!(rig.task(&done).status, TaskStatus::Completed);
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
        let rig = Rig::new();
        let id = rig.start(GATE);
        let rig = rig.crash(|home| {
            // What was really started ends by itself now.
            std::fs::write(home.agent_dir("a").join("workspace/go"), "").expect("a file in the workspace");
            change(home, &id, &noted);
        });
        assert_eq!(rig.task(&id).status, TaskStatus::Lost);
        rig.heard("a", 1);
        assert!(is_running(pid), "{noted}");
    }
}

#[test]
fn a_lost_table_takes_no_log_with_it() {
    let rig = Rig::new();
    let first = rig.start("echo first");
    let log = rig.ended(&first).log_path;
    rig.heard("a", 1);
    let rig = rig.crash(|home| change(home, &first, "id = 'gone', told = 1"));
    let second = rig.start("echo second");
    assert_eq!((first.as_str(), second.as_str()), ("t1", "t2"));
    rig.ended(&second);
    assert_eq!(std::fs::read_to_string(Path::new(&log)).expect("the first log"), "first\n");
}

#[test]
fn the_end_that_was_not_told_is_told_after_the_next_start() {
    let rig = Rig::new();
    let id = rig.start("echo said");
    rig.ended(&id);
    rig.heard("a", 1);
    let mut client = rig.client();
    assert_eq!(list(&mut client, Some("a")).len(), 1);
    let rig = rig.crash(|home| change(home, &id, "told = 0, started_at = started_at - 1"));
    let heard = rig.heard("a", 2);
    assert!(heard[1].content.ends_with("| said"), "{}", heard[1].content);
    // The key of a message that was added already adds it no second time.
    let rig = rig.crash(|home| change(home, &id, "told = 0"));
    let next = rig.start("true");
    rig.ended(&next);
    assert_eq!(rig.heard("a", 3).len(), 3);
    assert!(rig.client().messages("a").len() > 3);
}
