//! The memory of all processes of a command together.

use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::{ToolOutput, WAYS, call_bash, gone, mark, run_command, sandbox_info, start_sandbox};

/// The memory that each fixture here allows a command, in MiB.
pub(super) const MOST: u64 = 256;
pub(super) const LIMIT: (&str, &str) = ("CHORUS_SANDBOX_MEMORY", "268435456");

fn each_limited_sandbox() -> impl Iterator<Item = Fixture> {
    WAYS.into_iter().filter_map(|way| start_sandbox(way, &[LIMIT]))
}

/// Python that has `have` and then goes on until it is ended.
fn python(have: &str, mark: &str) -> String {
    format!("python3 -c \"\nimport ctypes, mmap, os, time\n{have}\ntime.sleep({mark})\"")
}

/// That a command is ended as a whole, and says why where nobody but us does it.
fn ends(fixture: &Fixture, command: &str, mark: &str) {
    is_ended(fixture, &run_command(fixture, command), command, mark);
}

/// That a command was ended so: `told` is what it told.
pub(super) fn is_ended(fixture: &Fixture, told: &ToolOutput, command: &str, mark: &str) {
    assert!(told.is_error && !told.text.contains("timed out"), "{command}: {told:?}");
    if sandbox_info(fixture).memory == "watch" {
        assert!(told.text.contains("[out of memory: its processes exceeded"), "{command}: {told:?}");
    }
    gone(mark);
}

#[test]
fn all_processes_together_are_bounded() {
    for fixture in each_limited_sandbox() {
        assert!(["cgroup", "watch"].contains(&&*sandbox_info(&fixture).memory), "{:?}", sandbox_info(&fixture));
        let mark = mark();
        // A limit of each process does not count what is shared.
        let shared = format!("m = mmap.mmap(-1, {MOST} << 20)\nfor _ in range({MOST}): m.write(b'x' * (1 << 20))");
        ends(&fixture, &python(&shared, &mark), &mark);
        let own = python("x = b'x' * (80 << 20)", &mark);
        ends(&fixture, &format!("for n in 1 2 3 4; do setsid {own} & done; wait"), &mark);
        // What lies in memory as a file counts, too.
        let files = "for at in /tmp /var/tmp /dev/shm ~; do head -c 60M /dev/zero > $at/x; done";
        ends(&fixture, &format!("{files}; {}", python("x = b'x' * (30 << 20)", &mark)), &mark);
        // And what no process has mapped.
        let segment = format!(
            "c = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\ni = c.shmget(0, {MOST} << 20, 0o600)\n\
             p = c.shmat(i, None, 0)\nctypes.memset(ctypes.c_void_p(p), 1, {MOST} << 20)\nc.shmdt(ctypes.c_void_p(p))"
        );
        ends(&fixture, &python(&segment, &mark), &mark);
        let file = format!("f = os.memfd_create('x')\nfor _ in range({MOST}): os.write(f, b'x' * (1 << 20))");
        ends(&fixture, &python(&file, &mark), &mark);
        assert_eq!(run_command(&fixture, "echo on").ok(), "on\n");
    }
}

#[test]
fn what_processes_share_is_counted_once() {
    for fixture in each_limited_sandbox() {
        // Nine that have the same 100 MiB, for longer than it takes to count them.
        let shared =
            "x = b'x' * (100 << 20)\nn = sum(1 for _ in range(3) if os.fork() == 0)\nprint(x[7])\ntime.sleep(2)";
        let told = run_command(&fixture, &format!("{}; sleep 1", python(shared, "0")));
        assert_eq!(told.ok(), "120\n".repeat(8));
    }
}

#[test]
fn a_command_in_the_background_is_bounded_and_its_agent_told() {
    for fixture in each_limited_sandbox().filter(|fixture| sandbox_info(fixture).memory == "watch") {
        let mark = mark();
        let have = format!("m = mmap.mmap(-1, {MOST} << 20)\nfor _ in range({MOST}): m.write(b'x' * (1 << 20))");
        call_bash(&fixture, &json!({"command": python(&have, &mark), "background": true}));
        let told =
            || fixture.client().messages("a").into_iter().find(|message| message.content.contains("Background task"));
        let told = wait_until("the end of the task", DEADLINE, told).content;
        assert!(told.contains("was killed by signal 9") && told.contains("exceeded the memory limit"), "{told}");
        gone(&mark);
    }
}

#[test]
fn one_that_cannot_count_any_more_ends_its_command() {
    for fixture in each_limited_sandbox().filter(|fixture| sandbox_info(fixture).memory == "watch") {
        let mark = mark();
        let told = run_command(&fixture, &format!("prlimit --pid 1 --nofile=0:0 && sleep {mark}"));
        assert!(told.is_error && !told.text.contains("timed out"), "{told:?}");
        gone(&mark);
    }
}
