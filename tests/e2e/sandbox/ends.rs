//! Nothing is left: whichever way a command ends, all its processes do.

use std::time::{Duration, Instant};

use chorus_proto::methods::send::{Cancel, CancelParams};
use serde_json::json;

use super::{Rig, gone, mark, running};

#[test]
fn what_a_command_leaves_behind_ends_with_it_and_holds_up_nothing() {
    for rig in Rig::each() {
        let mark = mark();
        let begun = Instant::now();
        // Twice forked, in a session of its own, deaf, with the pipe in its hands.
        let left = format!(
            "(setsid bash -c \"trap '' TERM HUP; sleep {mark} & sleep {mark}; sleep {mark}\" &) ; nohup sleep {mark} & echo on"
        );
        let told = rig.run(&left).ok();
        assert!(told.contains("on\n") && begun.elapsed() < Duration::from_secs(10), "{told}");
        gone(&mark);
    }
}

#[test]
fn a_turn_that_is_cancelled_leaves_no_process() {
    for rig in Rig::each() {
        let mark = mark();
        let command = format!("trap '' TERM; (setsid sleep {mark} &); echo x > begun; sleep {mark}; sleep {mark}");
        let turn = rig.begin(&json!({"command": command}));
        rig.made("begun");
        assert!(!running(&mark).is_empty());
        let begun = Instant::now();
        let params = CancelParams { agent: Some("a".into()), turn_id: None };
        rig.client().call::<Cancel>(&params).expect("send.cancel").turn_id.expect("a turn");
        assert!(turn.join().expect("a client").is_err());
        gone(&mark);
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_daemon_that_is_killed_leaves_no_process() {
    for rig in Rig::each() {
        let mark = mark();
        let command = format!("trap '' TERM HUP; (setsid sleep {mark} &); echo x > begun; sleep {mark}; sleep {mark}");
        let turn = rig.begin(&json!({"command": command}));
        rig.made("begun");
        assert!(!running(&mark).is_empty());
        let Rig { daemon, home, server } = rig;
        daemon.kill9();
        gone(&mark);
        assert!(turn.join().expect("a client").is_err());
        drop((home, server));
    }
}

#[test]
fn a_stop_ends_commands_and_saves() {
    for rig in Rig::each() {
        let mark = mark();
        let turn = rig.begin(&json!({"command": format!("trap '' TERM; echo x > begun; sleep {mark}; sleep {mark}")}));
        rig.made("begun");
        let begun = Instant::now();
        let Rig { daemon, home, server } = rig;
        assert!(daemon.terminate().success());
        assert!(begun.elapsed() < Duration::from_secs(10));
        gone(&mark);
        assert!(turn.join().expect("a client").is_err());
        drop((home, server));
    }
}
