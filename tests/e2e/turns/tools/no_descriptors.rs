//! No descriptor is free for what a tool needs: its call says so, the turn goes on, and later calls work.

use chorus_proto::EventType;
use chorus_tests::chat::Chat as _;
use chorus_tests::model_server::Answer;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::json;

use super::super::{Rig, assert_legal, send};
use super::{configure, results};

/// How many descriptors a process may have.
fn allow(pid: u32, descriptors: u64) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(descriptors), maximum }).expect("a limit");
}

/// The lowest number that no descriptor of a process has.
fn free(pid: u32) -> u64 {
    let used = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("/proc");
    let used: Vec<u64> = used.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    (0..).find(|number| !used.contains(number)).expect("a number")
}

#[test]
fn git_and_a_task_say_so_and_work_once_there_are_some() {
    let rig = Rig::new();
    let mut client = rig.client();
    configure(&mut client, "permissions", "open");
    let calls = || {
        Answer::empty()
            .gate("calls")
            .call("c1", "git_log", &json!({}))
            .call("c2", "bash", &json!({"command": "true", "background": true}))
            .call("c3", "bash", &json!({"command": "true"}))
    };
    // What is needed once is opened before.
    rig.answer(calls());
    rig.say("Done.");
    rig.server.open("calls");
    send(&mut client, "Go.").expect("a turn");
    assert!(results(&mut client).iter().all(|result| !result.is_error), "{:?}", results(&mut client));
    rig.wait_for(EventType::TaskFinished, 1);
    let mut listener = rig.listener();

    let pid = rig.daemon.pid;
    rig.answer(Answer::empty().gate("again").call("c1", "git_log", &json!({})).call(
        "c2",
        "bash",
        &json!({"command": "true", "background": true}),
    ));
    rig.say("There was no room.");
    let turn = rig.send_beside("Again.");
    rig.server.reached("again");
    let before = getrlimit(Resource::Nofile).current.unwrap_or(1024);
    allow(pid, free(pid));
    rig.server.open("again");
    let mut finished = 0;
    while finished < 2 {
        let (_, params) = listener.next_notification().expect("a notification");
        let event: chorus_proto::Event = serde_json::from_str(params.get()).expect("an event");
        finished += usize::from(event.kind == EventType::ToolFinished);
    }
    allow(pid, before);
    assert_eq!(turn.join().expect("the client").expect("the turn goes on").reply, "There was no room.");
    let told = results(&mut client).split_off(3);
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|result| result.is_error && result.content.contains("Too many open files")), "{told:?}");
    assert_legal(&client.shown("a"));

    rig.answer(calls());
    rig.say("Now there was.");
    send(&mut client, "And now?").expect("a turn");
    let told = results(&mut client).split_off(5);
    assert!(told.iter().all(|result| !result.is_error), "{told:?}");
}
