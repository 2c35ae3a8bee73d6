//! The task that waits for a command is gone: so are the command's processes, while the program around it goes on.

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::in_process::InProcessDaemon;
use chorus_tests::manual_clock::ManualClock;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, wait_until};
use jiff::Timestamp;
use serde_json::json;

use super::{PROFILES, gone, mark, running};
use crate::home;

#[test]
fn a_daemon_that_ends_at_once_inside_another_program_leaves_no_process_behind() {
    let (server, home) = (ModelServer::start(), home());
    home.create();
    home.write_config(&format!("{}{PROFILES}", server.config_toml_with("")));
    let daemon = InProcessDaemon::start(&home, &ManualClock::new(Timestamp::now()));
    let init = InitParams { name: "a".into(), permissions: Some("any".into()), ..Default::default() };
    daemon.client().call::<Init>(&init).expect("agent.init");
    let (foreground, background) = (mark(), mark());
    // Neither ends when it is asked to, so that nothing but the end of its task does it.
    let deaf = |mark: &str| format!("trap '' TERM; sleep {mark} & wait; sleep {mark}");
    let calls = Response::tool_call("c1", "bash", &json!({"command": deaf(&background), "background": true}));
    server.anthropic().queue(calls.then_call("c2", "bash", &json!({"command": deaf(&foreground)})));
    let mut client = daemon.client();
    let params = SendParams { agent: Some("a".into()), text: "Go.".into(), ..Default::default() };
    let turn = std::thread::spawn(move || client.call::<Send>(&params));
    for mark in [&foreground, &background] {
        let sleep = format!("sleep\0{mark}");
        wait_until("a command to run", DEADLINE, || (!running(&sleep).is_empty()).then_some(()));
    }
    daemon.stop_at_once();
    gone(&foreground);
    gone(&background);
    assert!(turn.join().expect("the client").is_err());
}
