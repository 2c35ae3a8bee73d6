//! How many tasks there may be.

use std::fs;

use chorus_proto::methods::tasks::{Stop, StopParams, TaskStatus};

use super::{GATE, list, open_gate, start_fixture, start_task, try_start_task, wait_for_end};

#[test]
fn the_ninth_task_of_an_agent_is_refused_and_the_agent_told_why() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let ids: Vec<String> = (0..8).map(|_| start_task(&fixture, GATE)).collect();
    let refused = try_start_task(&fixture, "a", GATE).expect_err("too many");
    assert!(refused.contains("already has 8 background tasks"), "{refused}");
    fixture.create_agent("b", Some("open"));
    let other = try_start_task(&fixture, "b", "true").expect("an agent of its own");
    wait_for_end(&fixture, &other);
    client.call::<Stop>(&StopParams { id: ids[3].clone() }).expect("tasks.stop");
    let next = start_task(&fixture, GATE);
    assert!(!ids.contains(&next), "no id comes again");
    open_gate(&fixture);
    for id in ids.iter().chain([&next]) {
        wait_for_end(&fixture, id);
    }
    let tasks = list(&mut client, Some("a"));
    assert_eq!(tasks.len(), 9);
    assert_eq!(tasks.iter().filter(|task| task.status == TaskStatus::Stopped).count(), 1);
    assert_eq!(list(&mut client, None).len(), 10);
}

#[test]
fn no_log_is_begun_beside_very_many() {
    let fixture = start_fixture();
    wait_for_end(&fixture, &start_task(&fixture, "echo one"));
    let logs = fixture.home.agent_dir("a").join("logs");
    let old = logs.join("t900.log");
    fs::File::create(&old).and_then(|file| file.set_len(1 << 30)).expect("an old log");
    let refused = try_start_task(&fixture, "a", "echo two > two").expect_err("no room");
    let where_to = logs.display().to_string();
    assert!(refused.contains("limit of 1024 MiB") && refused.contains(&where_to), "{refused}");
    assert!(!fixture.workspace("a").join("two").exists() && old.exists());
    fs::remove_file(old).expect("a person removes it");
    wait_for_end(&fixture, &start_task(&fixture, "echo three"));
}
