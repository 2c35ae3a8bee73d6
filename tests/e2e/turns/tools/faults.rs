//! A disk without room, and no descriptor left, in the middle of a turn.

use std::fs;
use std::os::unix::net::UnixStream;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_tests::chat::Chat as _;
use chorus_tests::disk::SmallDisk;
use chorus_tests::model_server::{Answer, ModelServer};
use chorus_tests::{DEADLINE, Daemon, wait_until};
use serde_json::json;

use super::super::{MODELS, Rig, assert_legal, send};
use super::{called, results};
use crate::home;

#[test]
fn a_full_workspace_is_told_and_keeps_what_was_there() {
    let rig = Rig::new();
    let mut client = rig.client();
    let workspace = rig.home.agent("a").join("workspace");
    let Some(_disk) = SmallDisk::mount(&workspace, 64) else { return };
    let large = "x".repeat(256 << 10);
    let told = called(
        &rig,
        &mut client,
        &[
            ("create_file", json!({"path": "kept", "content": "as it was"})),
            ("create_file", json!({"path": "new/folder/large", "content": large})),
            ("create_file", json!({"path": "kept", "content": large})),
            ("append_file", json!({"path": "kept", "content": large})),
            ("append_file", json!({"path": "kept", "content": ", and more"})),
        ],
    );
    let wrong: Vec<bool> = told.iter().map(|result| result.is_error).collect();
    assert_eq!(wrong, [false, true, true, true, false], "{told:?}");
    assert_eq!(told[1].content, "new/folder/large: there is no room left on the disk; nothing was changed");
    assert_eq!(fs::read_to_string(workspace.join("kept")).expect("the file"), "as it was, and more");
    let names: Vec<_> = fs::read_dir(&workspace).expect("the workspace").collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn without_a_free_descriptor_a_tool_says_so_and_the_record_stays_legal() {
    let (server, home) = (ModelServer::start(), home());
    home.make();
    fs::write(home.path.join("config.toml"), server.config_toml()).expect("config.toml");
    let mut command = home.command("sh");
    command.args(["-c", "ulimit -n 64; exec \"$0\"", home.bins.chorusd]);
    let daemon = Daemon::start_by(&home, command);
    let init = InitParams { name: "a".into(), model: Some(MODELS[0].into()), ..Default::default() };
    daemon.client().call::<Init>(&init).expect("agent.init");
    let rig = Rig { server, home, daemon, model: MODELS[0] };
    let mut client = rig.client();
    rig.answer(Answer::text(["Wait. "]).gate("full").call("c1", "view", &json!({"path": "."})));
    rig.server.anthropic().always(Answer::text(["There."]));
    let turn = rig.send_beside("Look.");
    rig.server.reached("full");
    let connect = || UnixStream::connect(rig.home.socket()).expect("the socket queues it");
    let all: Vec<UnixStream> = (0..64).map(|_| connect()).collect();
    wait_until("the daemon to have no descriptor left", DEADLINE, || {
        rig.daemon.log().contains("cannot accept a connection").then_some(())
    });
    rig.server.open("full");
    // The model may be out of reach now, too.
    let _ = turn.join().expect("the client");
    drop(all);
    let told = results(&mut client);
    assert!(told[0].is_error && told[0].content.contains("too many files are open"), "{told:?}");
    assert_legal(&client.shown("a"));
    let reply = wait_until("a turn to work again", DEADLINE, || send(&mut client, "Again.").ok());
    assert_eq!(reply.reply, "There.");
}
