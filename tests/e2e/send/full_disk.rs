//! No room for the audit log: what cannot be written down is denied, and the turn goes on.

use chorus_proto::EventType;
use chorus_tests::Fixture;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;
use chorus_tests::small_disk::SmallDisk;
use serde_json::json;

use super::{assert_legal, send};
use crate::approvals::{agent_of, audit, results};
use crate::faults::full_disk::fill;
use crate::home;

#[test]
fn a_decision_that_finds_no_room_is_a_deny_and_the_next_one_is_written_down() {
    let home = home();
    home.create();
    let small = home.path.join("small");
    std::fs::create_dir_all(home.path.join("db")).and_then(|()| std::fs::create_dir(&small)).expect("directories");
    // The catalog alone lies there: what was said has room.
    let Some(_disk) = SmallDisk::mount(&small, 1024) else { return };
    std::os::unix::fs::symlink(small.join("chorus.db"), home.path.join("db/chorus.db")).expect("a link");
    let fixture = Fixture::builder(home).models().start();
    let mut client = fixture.client();
    agent_of(&mut client, "a", "open");
    let make = |name: &str| {
        fixture.answer(Response::tool_call("c", "create_file", &json!({"path": name, "content": "x"})));
        fixture.reply("Done.");
    };
    make("first");
    send(&mut client, "Make one.").expect("a turn");
    let rows = audit(&mut client).len();
    fill(&small.join("ballast"));
    make("second");
    assert_eq!(send(&mut client, "And one more.").expect("the turn goes on").reply, "Done.");
    let (is_error, said) = results(&mut client, "a").pop().expect("a result");
    assert!(is_error && said.contains("in the audit log (the disk is full"), "{said}");
    let made = |name: &str| fixture.home.agent_dir("a").join("workspace").join(name).exists();
    assert!(made("first") && !made("second"));
    std::fs::remove_file(small.join("ballast")).expect("room again");
    make("third");
    send(&mut client, "And now?").expect("a turn");
    assert!(made("third"));
    assert_eq!(audit(&mut client).len(), rows + 1);
    fixture.wait_for_events(EventType::ToolFinished, 3);
    assert_legal(&client.messages("a"));
}
