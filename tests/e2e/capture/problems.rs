//! The problems that `capture status` and `doctor` name if something cannot be captured, and only then.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use chorus_tests::Daemon;
use chorus_tests::ctl::Output;
use chorus_tests::small_disk::SmallDisk;

use super::*;
use crate::faults::full_disk::fill;

/// Runs `capture status` and `doctor`, and returns what both say.
fn reports(home: &Home) -> [Output; 2] {
    [chorusctl(home, ["capture", "status"]), chorusctl(home, ["doctor"])]
}

#[test]
fn bookkeeping_and_abandoned_branches_are_no_unread_lines() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("Where does the kestrel nest?");
    talk.say("In tower 7.");
    // A rewind: the next question has the first reply as its parent, not the second one.
    let abandoned = talk.next_line("And the owl?");
    append(&talk.path, &abandoned);
    talk.lines -= 1;
    let again = talk.next_line("And the swift?").replace("-2\"", "-x2\"");
    append(&talk.path, &again);
    for line in [
        json!({"type": "api-request-shape", "shapeHash": "a", "shape": {}}),
        json!({"type": "api-request-blob", "hash": "a", "message": {"role": "user", "content": "x"}}),
        json!({"type": "api-request", "id": "a", "params": {}}),
        json!({"type": "tools-used", "tools": []}),
        json!({"type": "cost-state", "totalCostUSD": 0.1}),
        json!({"type": "note-of-tomorrow", "about": "x"}),
        json!({"type": "note-of-tomorrow", "about": "y"}),
    ] {
        append(&talk.path, &format!("{line}\n"));
    }
    chorusctl(&home, ["capture", "on"]).expect_success();
    let session = captured(&mut client).remove(0);
    assert_eq!(kept(&session), ["Where does the kestrel nest?", "In tower 7.", "And the swift?"]);
    let status = status_of(&mut client, "claude-code");
    assert_eq!((status.skipped_lines, status.skipped, status.failed), (0, None, 0));
    for said in reports(&home) {
        assert!(!format!("{said:?}").contains("could not be"), "{said:?}");
    }
    let path = talk.path.to_str().expect("a path");
    let imported = chorusctl(&home, ["import", path]);
    assert!(!imported.stderr.contains("warning"), "{imported:?}");
    let told = chorusctl(&home, ["--json", "import", path]).expect_json();
    assert_eq!(
        (&told["skipped_total"], &told["lines_left_out"], &told["warning"]),
        (&json!(2), &json!(2), &Value::Null),
        "{told}"
    );
    let reasons = told["skipped"].to_string();
    assert!(reasons.contains("2 lines without a message") && reasons.contains("abandoned"), "{reasons}");
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("one");
    append(&talk.path, "{\"type\":\"user\",\n{\"type\":\"note-of-tomorrow\",\"message\":{}}\n");
    talk.say("two");
    // Most of its lines are of a kind that is not known.
    let dir = talk.path.parent().expect("a directory");
    let strange = dir.join("bbbbbbbb-0000-4000-8000-000000000000.jsonl");
    fs::write(&strange, "{\"type\":\"turn\",\"text\":\"x\"}\n".repeat(3)).expect("written");
    chorusctl(&home, ["capture", "on"]).expect_success();
    let status = status_of(&mut client, "claude-code");
    assert_eq!((status.skipped_lines, status.failed), (2 + 3, 1), "{status:?}");
    fs::remove_file(&strange).expect("removed");
    let example = status.skipped.expect("an example");
    let path = talk.path.to_str().expect("a path");
    assert!(example.line == 2 && example.path == path || example.path.contains("bbbbbbbb"), "{example:?}");
    for said in reports(&home) {
        let said = format!("{}{}", said.stdout, said.stderr);
        assert!(said.contains("5 lines could not be read, for example ") && said.contains(" line "), "{said}");
        assert!(said.contains("1 transcript could not be read") && said.contains("none of its 3 lines"), "{said}");
    }
    let json = chorusctl(&home, ["--json", "capture", "status", "claude-code"]).expect_json();
    assert!(json["sources"][0]["skipped"]["line"].is_u64(), "{json}");
}

#[test]
fn a_directory_that_cannot_be_listed_is_named() {
    let home = home();
    let mut talk = Transcript::claude_code(&home, "/hid", "aaaaaaaa");
    talk.say("one");
    let dir = talk.path.parent().expect("a directory").to_owned();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o000)).expect("closed");
    let Some(command) = home.unprivileged_daemon() else { return };
    let daemon = Daemon::start_command(&home, command);
    let mut client = daemon.client();
    chorusctl(&home, ["capture", "on"]).expect_success();
    let path = dir.to_str().expect("a path");
    for said in reports(&home) {
        let said = format!("{}{}", said.stdout, said.stderr);
        assert!(said.contains(&format!("cannot list {path}: permission denied")), "{said}");
        assert!(said.contains("chorusctl capture on") && !said.contains("inotify"), "{said}");
    }
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("opened");
    assert_eq!(status_of(&mut client, "claude-code").unreadable, []);
    chorusctl(&home, ["capture", "on"]).expect_success();
    wait_until_kept(&mut client, &talk);
}

#[test]
fn what_a_full_disk_did_not_take_is_saved_when_there_is_room() {
    let home = home();
    home.create();
    let Some(_disk) = SmallDisk::mount(&home.path, 6 * 1024) else { return };
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    chorusctl(&home, ["capture", "on"]).expect_success();
    let ballast = home.path.join("ballast");
    fill(&ballast);
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say(&"Where does the kestrel nest? ".repeat(1000));
    let status = wait_until("the failure", DEADLINE, || {
        Some(status_of(&mut client, "claude-code")).filter(|status| status.failed > 0)
    });
    assert_eq!((status.failed, status.unsaved), (1, Some(1)), "{status:?}");
    for said in reports(&home) {
        let said = format!("{}{}", said.stdout, said.stderr);
        assert!(said.contains("1 transcript could not be saved, for example "), "{said}");
        assert!(said.contains("chorusctl capture on") && !said.contains("could not be read"), "{said}");
    }
    fs::remove_file(&ballast).expect("room again");
    wait_until("capture to be tried again", DEADLINE, || {
        (chorusctl(&home, ["capture", "on"]).status == 0).then_some(())
    });
    wait_until_kept(&mut client, &talk);
    assert_eq!(status_of(&mut client, "claude-code").failed, 0);
}

#[test]
fn links_are_followed_and_each_conversation_is_captured_once() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut real = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    real.say("one");
    let projects = home.user_home.join(".claude/projects");
    // A directory and a file elsewhere, a loop, another name of what is there, and a link to nothing.
    let elsewhere = home.user_home.join("elsewhere");
    let mut moved = Transcript::claude_code(&home, "/home/mara/moved", "bbbbbbbb");
    moved.say("in a directory");
    let mut single = Transcript::claude_code(&home, "/home/mara/single", "cccccccc");
    single.say("a file");
    fs::create_dir(&elsewhere).expect("created");
    fs::rename(projects.join("-home-mara-moved"), elsewhere.join("moved")).expect("moved");
    fs::rename(&single.path, elsewhere.join("single.jsonl")).expect("moved");
    let link = |to: &Path, name: &str| symlink(to, projects.join(name)).expect("a link");
    link(&elsewhere.join("moved"), "-home-mara-moved");
    symlink(elsewhere.join("single.jsonl"), &single.path).expect("a link");
    link(&projects, "loop");
    link(&projects.join("-home-mara-shop"), "again");
    link(&elsewhere.join("nothing"), "nothing");
    chorusctl(&home, ["capture", "on"]).expect_success();
    for talk in [&real, &moved, &single] {
        wait_until_kept(&mut client, talk);
    }
    assert_eq!(status_of(&mut client, "claude-code").files, 3);
    // They are followed as well.
    for talk in [&mut real, &mut moved, &mut single] {
        talk.say("more");
        wait_until_kept(&mut client, talk);
    }
    // So is a link that is made later.
    let mut late = Transcript::claude_code(&home, "/home/mara/late", "dddddddd");
    let dir = late.path.parent().expect("a directory").to_owned();
    fs::remove_dir_all(&dir).expect("removed");
    fs::create_dir(elsewhere.join("late")).expect("created");
    symlink(elsewhere.join("late"), &dir).expect("a link");
    File::create(&late.path).expect("created");
    late.say("late");
    wait_until_kept(&mut client, &late);
    // What is excluded is so under its other name, too.
    chorusctl(&home, ["capture", "exclude", elsewhere.join("moved").to_str().expect("a path")]).expect_success();
    moved.say("secret");
    chorusctl(&home, ["capture", "on"]).expect_success();
    assert!(!captured(&mut client).iter().any(|session| kept(session).contains(&"secret".to_owned())));
    // The import finds the same.
    let found = chorusctl(&home, ["import", projects.to_str().expect("a path")]).expect_success();
    assert!(found.contains("3 conversations up to date; 1 left out"), "{found}");
}

#[test]
fn the_title_is_what_the_person_asked() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let dir = home.user_home.join(".codex/sessions/2026/01/02");
    fs::create_dir_all(&dir).expect("created");
    let id = "01970000-0000-7000-8000-000000000000";
    let said = |role: &str, text: &str| {
        json!({"timestamp": "2026-01-02T10:00:00Z", "type": "response_item", "payload":
            {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}})
    };
    let lines = [
        json!({"timestamp": "2026-01-02T10:00:00Z", "type": "session_meta", "payload": {"id": id, "cwd": "/srv"}}),
        said("developer", "<permissions instructions>Read only.</permissions instructions>"),
        said("user", "# AGENTS.md instructions for /srv\n\nAlways write tests for the parser first."),
        said("user", "<environment_context>bash</environment_context>"),
        said("user", "The nightly export loses the last row, please find out why."),
        said("assistant", "The loop ends one row early."),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(dir.join(format!("rollout-2026-01-02T10-00-00-{id}.jsonl")), text).expect("written");
    chorusctl(&home, ["capture", "on"]).expect_success();
    let session = captured(&mut client).remove(0).header;
    let title = session.description.expect("a title");
    assert!(title.contains("nightly export"), "{title}");
    let summary = session.summary.expect("a summary");
    assert!(!summary.contains("AGENTS") && !summary.contains("Always write tests"), "{summary}");
}
