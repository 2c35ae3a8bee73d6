//! Control groups: a command has its own, where the daemon may make them, and none is left.

use std::fs;
use std::path::{Path, PathBuf};

use chorus_proto::methods::daemon::SandboxInfo;
use chorus_proto::methods::send::{Cancel, CancelParams};
use chorus_tests::Fixture;
use chorus_tests::{DEADLINE, Need, skip_without, wait_until};
use serde_json::json;

use super::{each_sandbox, gone, mark, run_command, running, sandbox_info, spawn_bash, start_fixture, wait_for_file};

/// The directories of the groups of Chorus that a process is in.
fn groups(pid: u32) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("its groups");
    let of = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let ours = path.rsplit('/').next()?.starts_with("chorus-") && !path.ends_with("/chorus-daemon");
        ours.then(|| Path::new("/sys/fs/cgroup").join(controllers).join(path.trim_start_matches('/')))
    };
    text.lines().filter_map(of).collect()
}

/// What bounds the groups, as the kernel tells it: of memory, of processes.
fn limits(groups: &[PathBuf]) -> (Option<String>, Option<String>) {
    let read = |file: &str| groups.iter().find_map(|dir| fs::read_to_string(dir.join(file)).ok());
    let trimmed = |text: String| text.trim().to_owned();
    let memory = read("memory.max").or_else(|| read("memory.limit_in_bytes"));
    (memory.map(trimmed), read("pids.max").map(trimmed))
}

/// Starts a command that goes on until it is ended, and gives the groups it is in, which bound what they are said to.
fn begun(fixture: &Fixture, mark: &str) -> (std::thread::JoinHandle<bool>, Vec<PathBuf>) {
    let command = format!("(setsid sleep {mark} &); echo x > begun; sleep {mark}; sleep {mark}");
    let turn = spawn_bash(fixture, &json!({"command": command}));
    wait_for_file(fixture, "begun");
    let sleeping = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "sleep"
    };
    let pids = wait_until("both to sleep", DEADLINE, || {
        let pids: Vec<u32> = running(mark).into_iter().filter(sleeping).collect();
        (pids.len() == 2).then_some(pids)
    });
    let found: Vec<_> = pids.iter().map(|pid| groups(*pid)).collect();
    assert_eq!(found[0], found[1], "also whoever has left its session");
    let (memory, processes) = limits(&found[0]);
    let SandboxInfo { memory: said, missing, .. } = sandbox_info(fixture);
    assert_eq!(memory.as_deref(), (said == "cgroup").then_some("4294967296"), "{found:?}");
    assert_eq!(said == "rlimit", missing.iter().any(|missing| missing.contains("memory is limited per process")));
    assert!(processes.is_none_or(|most| most == "4096"));
    let turn = std::thread::spawn(move || turn.join().expect("a client").is_ok());
    (turn, found.into_iter().next().unwrap_or_default())
}

fn removed(groups: &[PathBuf]) {
    wait_until("the groups to go", DEADLINE, || groups.iter().all(|dir| !dir.exists()).then_some(()));
}

#[test]
fn a_command_has_groups_of_its_own_that_go_with_it() {
    for fixture in each_sandbox() {
        assert_eq!(run_command(&fixture, "echo on").ok(), "on\n");
        let mark = mark();
        let (turn, groups) = begun(&fixture, &mark);
        let params = CancelParams { conversation: None, agent: Some("a".into()), turn_id: None };
        fixture.client().call::<Cancel>(&params).expect("send.cancel").turn_id.expect("a turn");
        assert!(!turn.join().expect("a client"));
        gone(&mark);
        if groups.is_empty() {
            skip_without(Need::Cgroups, "no control groups can be made here");
            continue;
        }
        // Nor is one left of the other.
        let around = groups[0].parent().expect("around it");
        let prefix = groups[0].file_name().and_then(|name| name.to_str()).expect("a name");
        let prefix = &prefix[..=prefix.rfind('-').expect("a number")];
        wait_until("the groups to go", DEADLINE, || {
            let mut left = fs::read_dir(around).expect("the place").flatten();
            (!left.any(|entry| entry.file_name().to_string_lossy().starts_with(prefix))).then_some(())
        });
    }
}

#[test]
fn groups_that_a_crash_leaves_go_at_the_next_start() {
    for mut fixture in each_sandbox() {
        let mark = mark();
        let (turn, groups) = begun(&fixture, &mark);
        fixture.kill();
        gone(&mark);
        assert!(!turn.join().expect("a client"));
        if groups.is_empty() {
            skip_without(Need::Cgroups, "no control groups can be made here");
            continue;
        }
        assert!(groups.iter().all(|dir| dir.is_dir()), "{groups:?}");
        fixture.start();
        removed(&groups);
    }
}

#[test]
fn without_a_namespace_a_group_bounds_the_processes() {
    let reached = sandbox_info(&start_fixture("none", "any", &[]));
    if reached.processes != "cgroup" {
        skip_without(Need::Cgroups, "no control group for processes can be made here");
    }
    let unbounded = reached.missing.iter().any(|missing| missing.contains("processes"));
    assert_eq!(unbounded, reached.processes == "none", "{reached:?}");
}
