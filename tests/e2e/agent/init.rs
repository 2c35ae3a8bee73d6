//! `agent init`: whole, or not at all.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Init, InitParams};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::{chorusctl, run_command};
use chorus_tests::{Daemon, Home};
use serde_json::Value;

use crate::home;

fn init(name: &str) -> InitParams {
    InitParams { name: name.into(), ..Default::default() }
}

fn git(home: &Home, agent: &str, args: &[&str]) -> String {
    let mut command = home.command("git");
    command.args(args).current_dir(home.agent_dir(agent).join("workspace"));
    run_command(command, b"").expect_success()
}

#[test]
fn an_agent_has_its_directory_its_configuration_and_a_repository() {
    let home = home();
    let daemon = Daemon::start(&home);
    let params = InitParams {
        system_prompt: Some("Be brief.".into()),
        model: Some("local/small".into()),
        permissions: Some("locked".into()),
        idle_timeout: Some("45m".into()),
        ..init("notes")
    };
    let made = daemon.client().call::<Init>(&params).expect("made");
    assert!(!made.revived);
    assert_eq!(made.agent.name, "notes");
    assert_eq!(Path::new(&made.agent.path), home.agent_dir("notes"));
    for folder in ["docs", "sessions", "workspace"] {
        assert!(home.agent_dir("notes").join(folder).is_dir(), "{folder}/");
    }
    let config = fs::read_to_string(home.agent_dir("notes").join("agent.json")).expect("agent.json");
    let config: Value = serde_json::from_str(&config).expect("JSON");
    for (key, value) in [
        ("name", "notes"),
        ("system_prompt", "Be brief."),
        ("model", "local/small"),
        ("permissions", "locked"),
        ("idle_timeout", "45m"),
    ] {
        assert_eq!(config[key], value, "{key}");
    }
    assert_eq!(config["id"], made.agent.id.to_string());
    // Nobody told git who commits here.
    assert_eq!(git(&home, "notes", &["log", "--oneline"]).lines().count(), 1);
    assert_eq!(git(&home, "notes", &["status", "--porcelain"]), "");
}

#[test]
fn everything_of_chorus_is_for_its_owner_only() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    client.save("a", "saved");
    let mut folders = vec![home.path.clone()];
    while let Some(folder) = folders.pop() {
        let mode = fs::metadata(&folder).expect("a folder").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}: {mode:o}", folder.display());
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let mode = fs::symlink_metadata(&path).expect("its mode").permissions().mode() & 0o777;
            if path.is_dir() && !path.ends_with("workspace") {
                folders.push(path);
            } else if !path.is_dir() {
                assert_eq!(mode, 0o600, "{}: {mode:o}", path.display());
            }
        }
    }
}

#[test]
fn names_are_checked_and_the_nearest_good_one_is_offered() {
    let home = home();
    let _daemon = Daemon::start(&home);
    for (name, nearest) in [
        ("Data Team", "data-team"),
        ("UPPER", "upper"),
        ("../x", "x"),
        ("-dash", "dash"),
        ("_under", "under"),
        ("caf\u{e9}", "caf"),
        (&"a".repeat(65), "it has 65 characters; use at most 64"),
    ] {
        let said = chorusctl(&home, ["agent", "init", "--", name]);
        let said = said.expect_failure_with_hint(2);
        assert!(said.contains(nearest), "{name}: {said}");
    }
    for name in ["", "\u{1f3b6}", "/", "."] {
        chorusctl(&home, ["agent", "init", "--", name]).expect_failure(2);
    }
    for name in ["a", "0", "a_b-c", &"a".repeat(64)] {
        assert_eq!(chorusctl(&home, ["agent", "init", name]).status, 0, "{name}");
    }
    assert_eq!(fs::read_dir(home.path.join("agents")).expect("agents/").count(), 4);
}

#[test]
fn a_taken_name_is_a_conflict_and_changes_nothing() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    assert_eq!(expect_error_kind(client.call::<Init>(&init("a"))), ErrorKind::AlreadyExists);
    chorusctl(&home, ["agent", "init", "a"]).expect_failure_with_hint(7);
    assert_eq!(client.message_texts("a"), ["one"]);
}

#[test]
fn of_two_that_take_a_name_at_once_one_gets_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    for round in 0..5 {
        let name = format!("agent-{round}");
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let mut client = daemon.client();
                    let params = init(&name);
                    scope.spawn(move || client.call::<Init>(&params))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a client")).collect()
        });
        let (made, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!(made.len(), 1, "{refused:?}");
        for refusal in refused {
            let kind = expect_error_kind(refusal);
            // Which of the two depends on how far the first one has come.
            assert!([ErrorKind::AlreadyExists, ErrorKind::Busy].contains(&kind), "{kind:?}");
        }
        assert_eq!(git(&home, &name, &["log", "--oneline"]).lines().count(), 1);
    }
}

#[test]
fn what_fails_half_way_is_undone() {
    let home = home();
    let mut command = home.command(home.bins.chorusd);
    command.env("PATH", home.temp_dir());
    let daemon = Daemon::start_command(&home, command);
    let mut client = daemon.client();
    assert_eq!(expect_error_kind(client.call::<Init>(&init("a"))), ErrorKind::GitFailed);
    assert_eq!(fs::read_dir(home.path.join("agents")).map_or(0, Iterator::count), 0, "a directory was left");
    assert!(client.call::<chorus_proto::methods::agent::List>(&Default::default()).expect("a list").agents.is_empty());
    daemon.terminate();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
}

#[test]
fn a_template_of_ones_own_replaces_the_built_in_one() {
    let home = home();
    home.create();
    let template = home.path.join("template");
    fs::create_dir_all(template.join("docs")).expect("template/docs");
    fs::write(template.join("docs/mine.md"), "my own notes").expect("a file");
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let copied = fs::read_to_string(home.agent_dir("a").join("docs/mine.md"));
    assert_eq!(copied.expect("the template's file"), "my own notes");
}
