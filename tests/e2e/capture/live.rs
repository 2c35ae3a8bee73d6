//! Conversations that `history` says are live.

use std::fs;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, wait_until};
use jiff::Timestamp;
use serde_json::json;

use crate::home;

#[test]
fn an_imported_conversation_is_live_only_while_capture_follows_it() {
    let home = home();
    let _daemon = {
        let daemon = Daemon::start(&home);
        daemon.client().init("a");
        daemon
    };
    let dir = home.user_home.join(".claude/projects/-work");
    fs::create_dir_all(&dir).expect("created");
    let file = dir.join("0a-0000-4000-8000-000000000000.jsonl");
    let line = json!({
        "type": "user", "uuid": "1", "parentUuid": null, "isSidechain": false, "timestamp": Timestamp::now().to_string(),
        "sessionId": "0a-0000-4000-8000-000000000000", "version": "2.1.332", "cwd": "/work",
        "message": {"role": "user", "content": "a question of this minute"},
    });
    fs::write(&file, format!("{line}\n")).expect("a transcript");
    chorusctl(&home, ["import", &file.to_string_lossy()]).expect_success();
    let shown = || chorusctl(&home, ["history", "--all-agents", "--columns", "when"]).expect_success();
    assert!(!shown().contains("live"), "{}", shown());
    chorusctl(&home, ["capture", "on"]).expect_success();
    wait_until("the conversation to be live", DEADLINE, || shown().contains("live").then_some(()));
    chorusctl(&home, ["capture", "pause"]).expect_success();
    assert!(!shown().contains("live"), "{}", shown());
}
