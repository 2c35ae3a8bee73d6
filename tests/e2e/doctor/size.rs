//! `doctor --size` shows what takes room.

use std::fs;

use chorus_proto::methods::doctor::{Size, SizeParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use crate::home;

#[test]
fn the_parts_and_the_agents_come_with_their_sizes() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for (agent, length) in [("small", 10), ("large", 300_000)] {
        client.init(agent);
        client.append(agent, &"word ".repeat(length / 5));
        client.save(agent, "first");
    }
    fs::write(home.agent_dir("large").join("workspace/data"), vec![b'x'; 2 << 20]).expect("a file");
    let size = client.call::<Size>(&SizeParams {}).expect("doctor.size");
    assert_eq!(size.parts[0].name, "workspaces", "{size:?}");
    assert!(size.parts[0].bytes >= 2 << 20, "{size:?}");
    assert_eq!(size.bytes, size.parts.iter().map(|part| part.bytes).sum::<u64>());
    let sessions = size.parts.iter().find(|part| part.name == "sessions").expect("sessions");
    assert!(sessions.bytes >= 300_000 && sessions.files == 2, "{sessions:?}");
    let agents: Vec<_> = size.agents.iter().map(|of| (of.agent.as_str(), of.count)).collect();
    assert_eq!(agents, [("large", 1), ("small", 1)]);
    let shown = chorusctl(&home, ["doctor", "--size"]).expect_success();
    assert!(shown.contains("workspaces of agents") && shown.contains("large"), "{shown}");
    assert_eq!(chorusctl(&home, ["doctor", "--size", "--json"]).expect_json()["agents_total"], 2);
}
