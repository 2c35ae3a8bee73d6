//! The everyday commands at the top level, help for them, and what an unknown command is told.

use chorus_proto::{NewMessage, Role};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;

use crate::home;

#[test]
fn everyday_commands_do_as_their_full_forms() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let talk = [(Role::User, "q1"), (Role::Assistant, "a1"), (Role::User, "q2"), (Role::Assistant, "a2")];
    client.append_all("a", talk.map(|(role, text)| NewMessage::text(role, text)).into());
    let run = |args: &[&str]| chorusctl(&home, args.iter().copied()).expect_success();
    assert!(run(&["save", "first light"]).contains("first-light"));
    assert_eq!(run(&["show"]), run(&["context", "show"]));
    for list in [&["history"][..], &["list"], &["ls"], &["session", "list"], &["context", "list"]] {
        assert_eq!(run(list), run(&["context", "history"]), "{list:?}");
    }
    assert_eq!(run(&["show", "latest"]), run(&["session", "show", "1"]));
    assert!(run(&["undo"]).contains("removed the last 2 messages (2 left); redo: chorusctl undo --redo"));
    assert_eq!(client.message_texts("a"), ["q1", "a1"]);
    assert!(run(&["undo", "--redo"]).contains("restored 2 messages (4 in the conversation)"));
    run(&["context", "clear", "--yes"]);
    run(&["restore", "latest"]);
    assert_eq!(client.message_texts("a"), ["q1", "a1", "q2", "a2"]);
    run(&["resume", "latest"]);
    assert_eq!(client.message_texts("a").len(), 1, "it starts with the opening message");
    let exported = run(&["export", "latest"]);
    assert_eq!(exported, run(&["session", "export", "latest"]));
    let file = home.temp_dir().join("again.json");
    std::fs::write(&file, exported).expect("the file");
    run(&["import", file.to_str().expect("UTF-8")]);
    assert!(run(&["rm", "latest"]).contains("deleted"));
    chorusctl(&home, ["rm"]).expect_failure(2);
}

#[test]
fn messages_are_shown_by_number() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let long = (1..=30).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let texts = ["one", "two", &long, "four"];
    client.append_all("a", texts.map(|text| NewMessage::text(Role::User, text)).into());
    client.save("a", "four messages");
    for session in [&[][..], &["latest"]] {
        let show = |options: &[&str]| chorusctl(&home, [&["show"][..], session, options].concat());
        let text = show(&["--at", "3"]).expect_success();
        assert!(text.contains("  3 user") && text.contains("line 30"), "{text}");
        assert!(!text.contains("two") && !text.contains("four"), "{text}");
        let last = show(&["--last", "2"]).expect_success();
        assert!(last.contains("  3 user") && last.contains("  4 user") && !last.contains("  2 user"), "{last}");
        assert_eq!(show(&["--at", "2", "--json"]).expect_json()["messages"][0]["content"], "two");
        assert_eq!(show(&["--last", "3", "--json"]).expect_json()["messages"].as_array().map(Vec::len), Some(3));
        let around = show(&["--around", "4"]).expect_success();
        assert!(around.contains("\n  1 user") && around.contains("\n ▸4 user"), "{around}");
        let around = show(&["--around", "1"]).expect_success();
        assert!(around.contains("\n ▸1 user") && around.contains("\n  4 user"), "{around}");
        assert_eq!(show(&["--around", "4", "--json"]).expect_json()["messages"].as_array().map(Vec::len), Some(4));
        for option in ["--at", "--around"] {
            let missing = show(&[option, "5"]);
            assert_eq!(missing.status, 3, "{missing:?}");
            assert!(missing.stderr.contains("no message 5: the conversation has 4 messages"), "{missing:?}");
        }
    }
}

#[test]
fn help_lists_the_commands_in_groups() {
    let home = home();
    let help = chorusctl(&home, ["--help"]).expect_success();
    let positions: Vec<_> = ["Everyday:", "  save ", "  status ", "Conversations:", "Agents:", "Oversight:", "System:"]
        .iter()
        .map(|part| help.find(part).unwrap_or_else(|| panic!("no {part:?} in {help}")))
        .collect();
    assert!(positions.is_sorted(), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    assert_eq!(chorusctl(&home, ["help"]).expect_success(), help);
    assert_eq!(chorusctl(&home, ["-h"]).expect_success(), help);
    let save = chorusctl(&home, ["context", "save", "--help"]).expect_success();
    for args in [&["help", "context", "save"][..], &["context", "help", "save"]] {
        assert_eq!(chorusctl(&home, args.iter().copied()).expect_success(), save, "{args:?}");
    }
    assert!(!home.path.exists(), "help started a daemon");
}

#[test]
fn an_unknown_command_is_told_what_may_be_meant() {
    let home = home();
    for (args, meant) in [
        (&["hisotry"][..], "`chorusctl history`"),
        (&["append", "hello"], "`chorusctl context append`"),
        (&["agent", "restore", "latest"], "`chorusctl restore`"),
        (&["--agent", "session", "trash", "save"], "`chorusctl save`"),
        (&["session", "lst"], "`chorusctl session list`"),
        (&["help", "context", "sav"], "`chorusctl context save`"),
        (&["conversations", "create", "review"], "`chorusctl conversations new`"),
        (&["agent", "new", "api"], "`chorusctl agent init`"),
    ] {
        let output = chorusctl(&home, args.iter().copied());
        assert_eq!((output.status, &*output.stdout), (2, ""), "{args:?}: {output:?}");
        assert!(output.stderr.contains(&format!("did you mean {meant}")), "{args:?}: {output:?}");
    }
    let find = chorusctl(&home, ["find", "limiter"]);
    assert!(find.expect_failure_with_hint(2).contains("chorusctl search WORD"), "{find:?}");
    let output = chorusctl(&home, ["frobnicate"]);
    assert_eq!(output.stderr, "error: unknown command `frobnicate`\nhint: list the commands: chorusctl --help\n");
    assert!(!home.path.exists(), "an unknown command started a daemon");
}

#[test]
fn the_last_session_is_as_old_as_the_imported_conversation() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let line = |role: &str, time: &str| {
        format!(
            r#"{{"type":"{role}","sessionId":"s","uuid":"{role}","timestamp":"{time}","message":{{"role":"{role}","content":"of old"}}}}"#
        )
    };
    let file = home.temp_dir().join("old.jsonl");
    let text = format!("{}\n{}\n", line("user", "2020-01-02T10:00:00Z"), line("assistant", "2020-01-02T10:00:05Z"));
    std::fs::write(&file, text).expect("a transcript");
    chorusctl(&home, ["import", "--from", "claude-code", file.to_str().expect("UTF-8")]).expect_success();
    let status = chorusctl(&home, ["status"]).expect_success();
    let row = status.lines().find(|line| line.starts_with("claude-code")).expect("the row");
    assert!(row.contains("years ago: ") && !row.contains("just now"), "{status}");
    // Nothing of it was captured.
    let captured = chorusctl(&home, ["capture", "status"]).expect_success();
    assert!(captured.contains("imported without capture: claude-code (1)\n"), "{captured}");
}
