//! Conversations of opencode before version 1.2, which kept each session, message and part in a file of its own.

use std::fs;

use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};
use serde_json::{Value, json};

use crate::home;

fn write(home: &Home, name: &str, value: &Value) -> String {
    let path = home.user_home.join(".local/share/opencode").join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    fs::write(&path, value.to_string()).expect("written");
    path.into_os_string().into_string().expect("UTF-8")
}

fn say(home: &Home, [messages, parts]: [&str; 2], (session, number): (&str, u64), role: &str, text: &str) {
    let (message, part) = (format!("msg_{number}"), format!("prt_{number}"));
    let at = 1_772_355_600_000_u64 + number;
    let value = json!({"id": message, "sessionID": session, "role": role, "time": {"created": at}, "providerID": "p", "modelID": "m"});
    write(home, &format!("{messages}/{session}/{message}.json"), &value);
    let value = json!({"id": part, "sessionID": session, "messageID": message, "type": "text", "text": text});
    write(home, &format!("{parts}/{message}/{part}.json"), &value);
}

fn opencode_sessions(home: &Home) -> Vec<Value> {
    let listed = chorusctl(home, ["history", "--json", "--source", "opencode"]).expect_json();
    listed["sessions"].as_array().expect("a list").clone()
}

#[test]
fn sessions_in_files_are_found_grow_and_have_their_subagents() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let dirs = ["storage/message", "storage/part"];
    let session = |id: &str, parent: Value, title: &str| json!({"id": id, "directory": "/srv/shop", "parentID": parent, "title": title, "time": {"created": 1_772_355_600_000_u64}});
    let main = write(&home, "storage/session/7d44/ses_1.json", &session("ses_1", Value::Null, "The files"));
    write(&home, "storage/session/7d44/ses_2.json", &session("ses_2", json!("ses_1"), "Count"));
    write(&home, "storage/session_diff/ses_1.json", &json!([]));
    say(&home, dirs, ("ses_1", 1), "user", "List them");
    say(&home, dirs, ("ses_2", 2), "user", "Count");
    let told = chorusctl(&home, ["import", "--yes"]).expect_success();
    assert!(told.contains("imported 2 conversations (2 messages) from 2 files"), "{told}");
    say(&home, dirs, ("ses_1", 3), "assistant", "a.py");
    let told = chorusctl(&home, ["import", &main]).expect_success();
    assert!(told.contains("added 1 message"), "{told}");
    let found = opencode_sessions(&home);
    let by_title = |title: &str| found.iter().find(|one| one["description"] == title).expect("the conversation");
    assert_eq!((found.len(), &by_title("Count")["parent_id"]), (2, &by_title("The files")["id"]));
    assert_eq!(by_title("The files")["source"]["project"], "/srv/shop");
    assert_eq!(by_title("The files")["model"], "p/m");
    let dir = home.user_home.join(".local/share/opencode");
    let told = chorusctl(&home, ["import", dir.to_str().expect("UTF-8"), "--json"]).expect_json();
    assert_eq!((&told["sessions"], &told["skipped_total"]), (&json!([]), &json!(0)), "messages are no files to import");
}

#[test]
fn sessions_of_the_first_versions_are_found() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let dir = "project/srv-shop/storage/session";
    let time = json!({"created": 1_772_355_600_000_u64});
    write(&home, &format!("{dir}/info/ses_1.json"), &json!({"id": "ses_1", "title": "The files", "time": time}));
    let (messages, parts) = (format!("{dir}/message"), format!("{dir}/part/ses_1"));
    say(&home, [&messages, &parts], ("ses_1", 1), "user", "List them");
    let told = chorusctl(&home, ["import", "--yes"]).expect_success();
    assert!(told.contains("imported 1 conversation (1 message)"), "{told}");
    assert_eq!(opencode_sessions(&home)[0]["source"]["conversation"], "ses_1");
}
