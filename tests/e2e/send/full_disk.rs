//! No room for the audit log: what cannot be written down is denied, and the turn goes on.

use chorus_proto::EventType;
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::small_disk::SmallDisk;
use serde_json::json;

use super::{MODELS, Rig, assert_legal, send};
use crate::approvals::{agent_of, audit, results};
use crate::faults::full_disk::fill;
use crate::home;

#[test]
fn a_decision_that_finds_no_room_is_a_deny_and_the_next_one_is_written_down() {
    let (server, home) = (ModelServer::start(), home());
    home.create();
    let small = home.path.join("small");
    std::fs::create_dir_all(home.path.join("db")).and_then(|()| std::fs::create_dir(&small)).expect("directories");
    // The catalog alone lies there: what was said has room.
    let Some(_disk) = SmallDisk::mount(&small, 1024) else { return };
    std::os::unix::fs::symlink(small.join("chorus.db"), home.path.join("db/chorus.db")).expect("a link");
    let daemon = Daemon::start_with(&home, &server.config_toml());
    let rig = Rig { server, home, daemon, model: MODELS[0] };
    let mut client = rig.client();
    agent_of(&mut client, "a", "open");
    let make = |name: &str| {
        rig.answer(Response::tool_call("c", "create_file", &json!({"path": name, "content": "x"})));
        rig.say("Done.");
    };
    make("first");
    send(&mut client, "Make one.").expect("a turn");
    let rows = audit(&mut client).len();
    fill(&small.join("ballast"));
    make("second");
    assert_eq!(send(&mut client, "And one more.").expect("the turn goes on").reply, "Done.");
    let (is_error, said) = results(&mut client, "a").pop().expect("a result");
    assert!(is_error && said.contains("cannot be written down (the disk is full"), "{said}");
    let made = |name: &str| rig.home.agent_dir("a").join("workspace").join(name).exists();
    assert!(made("first") && !made("second"));
    std::fs::remove_file(small.join("ballast")).expect("room again");
    make("third");
    send(&mut client, "And now?").expect("a turn");
    assert!(made("third"));
    assert_eq!(audit(&mut client).len(), rows + 1);
    rig.wait_for(EventType::ToolFinished, 3);
    assert_legal(&client.messages("a"));
}
