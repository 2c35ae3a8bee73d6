//! How many tasks there may be.

use std::fs;

use chorus_proto::methods::tasks::{Stop, StopParams, TaskStatus};

use super::{GATE, Rig, list};

#[test]
fn the_ninth_task_of_an_agent_is_refused_and_the_agent_told_why() {
    let rig = Rig::new();
    let mut client = rig.client();
    let ids: Vec<String> = (0..8).map(|_| rig.start(GATE)).collect();
    let refused = rig.try_start("a", GATE).expect_err("too many");
    assert!(refused.contains("8 tasks of this agent run in the background already"), "{refused}");
    rig.init("b");
    let other = rig.try_start("b", "true").expect("an agent of its own");
    rig.ended(&other);
    client.call::<Stop>(&StopParams { id: ids[3].clone() }).expect("tasks.stop");
    let next = rig.start(GATE);
    assert!(!ids.contains(&next), "no id comes again");
    rig.open();
    for id in ids.iter().chain([&next]) {
        rig.ended(id);
    }
    let tasks = list(&mut client, Some("a"));
    assert_eq!(tasks.len(), 9);
    assert_eq!(tasks.iter().filter(|task| task.status == TaskStatus::Stopped).count(), 1);
    assert_eq!(list(&mut client, None).len(), 10);
}

#[test]
fn no_log_is_begun_beside_very_many() {
    let rig = Rig::new();
    rig.ended(&rig.start("echo one"));
    let logs = rig.home.agent_dir("a").join("logs");
    let old = logs.join("t900.log");
    fs::File::create(&old).and_then(|file| file.set_len(1 << 30)).expect("an old log");
    let refused = rig.try_start("a", "echo two > two").expect_err("no room");
    let where_to = logs.display().to_string();
    assert!(refused.contains("have 1024 MiB") && refused.contains(&where_to), "{refused}");
    assert!(!rig.workspace().join("two").exists() && old.exists());
    fs::remove_file(old).expect("a person removes it");
    rig.ended(&rig.start("echo three"));
}
