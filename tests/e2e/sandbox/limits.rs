//! How much a command may use.

use std::time::{Duration, Instant};

use chorus_tests::process;
use serde_json::json;

use super::{WAYS, call_bash, each_sandbox, gone, mark, run_command, sandbox_info, start_sandbox};

#[test]
fn time_is_up_for_all_processes_also_for_those_that_ignore_it() {
    for fixture in each_sandbox() {
        let mark = mark();
        let begun = Instant::now();
        let command = format!("echo begun; trap '' TERM; (setsid sleep {mark} &); sleep {mark}; sleep {mark}");
        let told = call_bash(&fixture, &json!({"command": command, "timeout": 1}));
        assert_eq!(told.text, "begun\n[timed out after 1 s: all its processes were killed]");
        assert!(told.is_error && begun.elapsed() < Duration::from_secs(12));
        gone(&mark);
        // One that does as it is told says so in time.
        let told = call_bash(
            &fixture,
            &json!({"command": "trap 'echo asked; exit 0' TERM; while :; do sleep 0.05; done", "timeout": 1}),
        );
        assert!(told.text.contains("asked\n[timed out"), "{told:?}");
    }
}

#[test]
fn a_fork_bomb_ends_with_its_command() {
    // Few, so that nobody else on the machine is disturbed.
    for fixture in WAYS.into_iter().filter_map(|way| start_sandbox(way, &[("CHORUS_SANDBOX_PROCESSES", "60")])) {
        if sandbox_info(&fixture).missing.iter().any(|missing| missing.contains("processes")) {
            chorus_tests::skip_without(chorus_tests::Need::Sandbox, "processes are not bounded here");
            continue;
        }
        let many = "python3 -c \"\nimport os, signal\nn = 0\ntry:\n  while n < 1000:\n    p = os.fork()\n    if p == 0: signal.pause()\n    \
                    n += 1\nexcept OSError: pass\nprint(n)\"";
        let count: u32 = run_command(&fixture, many).ok().trim().parse().expect("a number");
        // Of a namespace the numbers below 300 are used once, besides.
        assert!((30..=360).contains(&count), "{count}");
        let mark = mark();
        let bomb = format!("bomb() {{ sleep {mark} & bomb & bomb; }}; bomb 2>/dev/null");
        let told = call_bash(&fixture, &json!({"command": bomb, "timeout": 1}));
        assert!(told.is_error, "{told:?}");
        gone(&mark);
        assert_eq!(run_command(&fixture, "echo on").ok(), "on\n");
    }
}

#[test]
fn a_command_may_have_4096_processes() {
    for fixture in each_sandbox() {
        if sandbox_info(&fixture).processes == "namespace" {
            assert_eq!(run_command(&fixture, "cat /proc/sys/kernel/pid_max").ok(), "4396\n");
        }
    }
}

#[test]
fn memory_is_bounded_and_no_core_is_left() {
    for fixture in each_sandbox() {
        let told = run_command(&fixture, "python3 -c \"x = bytearray(5 << 30); print('had')\"");
        assert!(told.is_error && !told.text.contains("had"), "{told:?}");
        assert_eq!(run_command(&fixture, "python3 -c \"x = bytearray(100 << 20); print('had')\"").ok(), "had\n");
        for place in ["/tmp", "/var/tmp", "/dev/shm", "$HOME"] {
            let told =
                run_command(&fixture, &format!("df -B1 --output=size {place} | tail -1; fallocate -l 1025M {place}/x"));
            assert!(told.is_error && told.text.starts_with("1073741824\n"), "{place}: {told:?}");
            assert!(told.text.contains("No space left"), "{place}: {told:?}");
        }
        assert!(run_command(&fixture, "head -c 8K /dev/zero > /dev/x").is_error, "nothing is made beside the devices");
        assert!(run_command(&fixture, "ulimit -c; kill -SEGV $$").text.starts_with("0\n[killed by signal 11"));
        assert_eq!(run_command(&fixture, "cat /proc/self/oom_score_adj").ok(), "1000\n");
    }
}

#[test]
fn a_file_is_bounded() {
    for fixture in each_sandbox() {
        assert_eq!(run_command(&fixture, "truncate -s 1G f && rm f").ok(), "");
        assert!(run_command(&fixture, "truncate -s 9G f").is_error);
        assert_eq!(run_command(&fixture, "wc -c < f").ok(), "0\n");
    }
}

#[test]
fn a_flood_costs_neither_memory_nor_disk() {
    for fixture in each_sandbox() {
        run_command(&fixture, "true");
        let before = process::rss(fixture.daemon().pid);
        let told = call_bash(
            &fixture,
            &json!({"command": "echo first; dd if=/dev/zero bs=1M count=1024 2>/dev/null; echo; echo last"}),
        );
        let text = told.ok();
        assert!(text.starts_with("first\n\u{fffd}") && text.ends_with("\u{fffd}\nlast\n") && text.len() <= 256 << 10);
        assert_eq!(text.matches("bytes omitted]").count(), 1);
        let peak = process::peak_rss(fixture.daemon().pid);
        assert!(peak < before + (64 << 20), "{before} {peak}");
    }
}

#[test]
fn strange_bytes_and_nobodys_input_are_harmless() {
    for fixture in each_sandbox() {
        let told = run_command(&fixture, "printf 'a\\0b\\033[2J\\377\\342\\202'").ok();
        assert_eq!(told, "a\u{fffd}b\u{1b}[2J\u{fffd}\u{fffd}\n");
        assert_eq!(run_command(&fixture, "read x; echo \"[$x]\"; cat").ok(), "[]\n");
    }
}
