//! `completions`, and the answers its scripts ask for.

use std::os::unix::net::UnixListener;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{self, chorusctl};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::compare;
use crate::home;

#[test]
fn the_files_are_what_the_command_prints() {
    let home = home();
    for (shell, file) in [("bash", "chorusctl.bash"), ("zsh", "_chorusctl"), ("fish", "chorusctl.fish")] {
        compare(&format!("completions/{file}"), &chorusctl(&home, ["completions", shell]).expect_success());
    }
    chorusctl(&home, ["completions", "elvish"]).expect_failure(2);
    assert!(!home.path.exists(), "a daemon was started");
}

/// What bash would be offered for the last of `words`.
pub fn offered(home: &Home, words: &[&str]) -> Vec<String> {
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUSCTL_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.args(["--", "chorusctl"]).args(words);
    let output = ctl::run_command(command, b"");
    assert_eq!(output.stderr, "", "nothing is said in the middle of a prompt");
    output.stdout.lines().map(str::to_owned).collect()
}

/// The same where there are names. A daemon that has other things to do for as long as a prompt waits leaves them out, and
/// the next try has them.
pub fn named(home: &Home, words: &[&str]) -> Vec<String> {
    wait_until("names", DEADLINE, || Some(offered(home, words)).filter(|names| !names.is_empty()))
}

#[test]
fn verbs_options_and_their_values_are_offered() {
    let home = home();
    assert_eq!(offered(&home, &["stat"]), ["status"]);
    assert_eq!(offered(&home, &["context", "re"]).first().map(String::as_str), Some("restore"));
    assert_eq!(offered(&home, &["status", "--no-a"]), ["--no-autostart"]);
    assert_eq!(offered(&home, &["status", "--format", "jsonl"]), ["jsonl"]);
    assert_eq!(offered(&home, &["completions", "f"]), ["fish"]);
}

#[test]
fn names_of_agents_and_sessions_are_asked_from_the_daemon() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["atlas", "atoll", "zephyr"] {
        client.init(agent);
    }
    client.append("atlas", "hello");
    let (one, two) = (client.save("atlas", "first light"), client.save("atlas", "second thoughts"));
    let (one, two) = (one.header.session_id, two.header.session_id);
    assert_eq!(named(&home, &["agent", "show", "at"]), ["atlas", "atoll"]);
    assert_eq!(named(&home, &["context", "show", "--agent", "z"]), ["zephyr"]);
    assert_eq!(named(&home, &["context", "history", "ato"]), ["atoll"]);
    assert_eq!(offered(&home, &["agent", "init", "at"]), Vec::<String>::new(), "a new name is not a known one");
    let sessions = named(&home, &["--agent", "atlas", "context", "restore", "2"]);
    assert_eq!(sessions, [two.clone(), one], "the newest first");
    assert_eq!(named(&home, &["session", "show", "--agent=atlas", &two[..two.len() - 2]]), [two]);
    assert_eq!(named(&home, &["--agent", "atoll", "context", "restore", "la"]), ["latest"]);
}

#[test]
fn without_a_daemon_there_are_no_names_and_none_is_started() {
    let home = home();
    assert_eq!(offered(&home, &["agent", "show", "a"]), Vec::<String>::new());
    assert_eq!(offered(&home, &["context", "restore", "2"]), Vec::<String>::new());
    assert!(!home.path.exists(), "a daemon was started");
}

#[test]
fn a_daemon_that_does_not_answer_is_not_waited_for() {
    let home = home();
    home.create();
    std::fs::create_dir(home.path.join("run")).expect("a directory");
    let _deaf = UnixListener::bind(home.socket()).expect("a socket");
    // It would wait for ever if it waited.
    assert_eq!(offered(&home, &["agent", "show", "a"]), Vec::<String>::new());
    std::fs::remove_file(home.socket()).expect("the socket goes");
}

#[test]
fn files_keys_and_trashed_items_are_offered() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("atlas");
    client.append("atlas", "hello");
    let session = client.save("atlas", "first light").header.session_id;
    chorusctl(&home, ["rm", &session]).expect_success();
    assert_eq!(named(&home, &["agent", "config", "atlas", "idle"]), ["idle_timeout"]);
    assert_eq!(named(&home, &["settings", "set", "def"]), ["default_model"]);
    assert_eq!(named(&home, &["config", "set", "defaults.idle"]), ["defaults.idle_timeout"]);
    let trashed = wait_until("names", DEADLINE, || {
        let offered = offered(&home, &["trash", "restore", ""]);
        offered.into_iter().find(|name| !name.starts_with("--"))
    });
    assert_eq!(named(&home, &["trash", "restore", &trashed[..6]]), [trashed]);
    let dir = home.temp_dir().join("talks");
    std::fs::create_dir(&dir).expect("a directory");
    std::fs::write(dir.join("one.jsonl"), "").expect("a file");
    let begun = format!("{}/o", dir.display());
    assert_eq!(offered(&home, &["import", &begun]), [format!("{}/one.jsonl", dir.display())]);
}

#[test]
fn sessions_are_found_by_words_and_values_come_before_options() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("atlas");
    client.append("atlas", "hello");
    let crypto = client.save("atlas", "Crypto baseline for the shop").header;
    let limits = client.save("atlas", "Limits of the shop").header;
    let (crypto_name, limits_name) = (crypto.session_id, limits.session_id);
    let slug = |name: &str| name.split_once('_').expect("a date before it").1.to_owned();
    assert_eq!(named(&home, &["restore", "cry"]), [slug(&crypto_name)]);
    assert_eq!(named(&home, &["restore", "shop"]), [slug(&limits_name), slug(&crypto_name)]);
    assert_eq!(named(&home, &["restore", "basel"]), [slug(&crypto_name)]);
    let id = limits.id.to_string();
    assert_eq!(named(&home, &["show", &id[..5]]), [&id[..8]]);
    let all = named(&home, &["restore", ""]);
    assert_eq!(all, [&*limits_name, &*crypto_name, "latest"], "no options while nothing is typed");
    assert_eq!(named(&home, &["status", ""]), ["atlas"]);
    assert!(named(&home, &["agent", "config", "atlas", ""]).contains(&"idle_timeout".to_owned()));
    assert!(offered(&home, &["restore", "-"]).contains(&"--agent".to_owned()));
    chorusctl(&home, ["restore", &named(&home, &["restore", "cry"])[0]]).expect_success();
}
