//! How many tasks there may be.

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
