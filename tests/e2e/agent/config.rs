//! agent.json: read, set, renamed, edited by hand.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_proto::methods::agent::{Config, ConfigParams, ConfigResult, List, ListParams, Show, ShowParams};
use chorus_proto::{CallError, Client, ErrorKind};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::{Value, json};

use crate::home;

fn config(client: &mut Client, key: &str, value: Option<Value>) -> Result<ConfigResult, CallError> {
    client.call::<Config>(&ConfigParams { name: "a".into(), key: Some(key.into()), value })
}

fn file(home: &Home, agent: &str) -> Value {
    let text = fs::read_to_string(home.agent_dir(agent).join("agent.json")).expect("agent.json");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn keys_are_read_and_set_with_their_own_types() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let set = config(&mut client, "window_messages", Some(json!("20"))).expect("set");
    assert_eq!(set.config["window_messages"], 20, "a string is read as the key's own type");
    assert_eq!(config(&mut client, "window_messages", Some(json!(30))).expect("set").old, Some(json!(20)));
    assert_eq!(file(&home, "a")["window_messages"], 30);
    config(&mut client, "idle_timeout", Some(json!("1h30m"))).expect("set");
    assert_eq!(config(&mut client, "idle_timeout", None).expect("read").config["idle_timeout"], "1h30m");
    for (key, value) in [
        ("idle_timeout", json!("soon")),
        ("window_messages", json!("many")),
        ("window_messages", json!(-1)),
        ("id", json!("00000000-0000-4000-8000-000000000000")),
        ("window_message", json!(3)),
        ("name", json!("Not A Name")),
    ] {
        let kind = expect_error_kind(config(&mut client, key, Some(value.clone())));
        let fits = [
            ErrorKind::InvalidParams,
            ErrorKind::InvalidName,
            ErrorKind::InvalidConfig,
            ErrorKind::NotFound,
            ErrorKind::Denied,
        ];
        assert!(fits.contains(&kind), "{key} = {value}: {kind:?}");
    }
    assert_eq!(file(&home, "a")["window_messages"], 30);
}

#[test]
fn a_count_that_is_refused_says_what_is_accepted() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "a"]).expect_success();
    for (key, value, smallest) in [
        ("concurrent_turns", "0", 1),
        ("concurrent_turns", "many", 1),
        ("max_conversations", "0", 1),
        ("max_conversations", "2.5", 1),
        ("window_messages", "many", 0),
    ] {
        let refused = chorusctl(&home, ["agent", "config", "a", key, value]);
        let said = refused.expect_failure_with_hint(2);
        let expected = format!("error: `{key}` must be a whole number, at least {smallest}\n");
        assert!(said.starts_with(&expected), "{said}");
    }
    chorusctl(&home, ["agent", "config", "a", "concurrent_turns", "1"]).expect_success();
    chorusctl(&home, ["agent", "config", "a", "concurrent_turns", ""]).expect_success();
    assert_eq!(file(&home, "a").get("concurrent_turns").filter(|value| !value.is_null()), None);
}

#[test]
fn unknown_keys_survive_a_rewrite() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let mut edited = file(&home, "a");
    edited["mine"] = json!({"kept": [1, 2.50, "three"]});
    fs::write(home.agent_dir("a").join("agent.json"), edited.to_string()).expect("edited");
    config(&mut client, "idle_timeout", Some(json!("2h"))).expect("set");
    let rewritten = file(&home, "a");
    assert_eq!(rewritten["mine"], edited["mine"]);
    assert_eq!(rewritten["idle_timeout"], "2h");
}

#[test]
fn an_edit_by_hand_takes_effect_and_a_broken_one_does_not() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let path = home.agent_dir("a").join("agent.json");
    let mut edited = file(&home, "a");
    edited["model"] = json!("local/by-hand");
    fs::write(&path, edited.to_string()).expect("edited");
    let model = |client: &mut Client| {
        client.call::<Show>(&ShowParams { name: Some("a".into()) }).ok().and_then(|shown| shown.agent.model)
    };
    wait_until("the edit to be seen", DEADLINE, || (model(&mut client)? == "local/by-hand").then_some(()));
    fs::write(&path, "{ broken").expect("edited");
    assert_eq!(model(&mut client).as_deref(), Some("local/by-hand"), "the last good one stays in force");
    client.append("a", "still works");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "{ broken", "a person's edit is not overwritten");
    let kind = expect_error_kind(config(&mut client, "model", Some(json!("x/y"))));
    assert_eq!(kind, ErrorKind::InvalidConfig);
}

#[test]
fn a_rename_moves_the_directory_and_keeps_everything() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("taken");
    client.append("a", "live");
    client.save("a", "saved before");
    assert_eq!(expect_error_kind(config(&mut client, "name", Some(json!("taken")))), ErrorKind::AlreadyExists);
    let renamed = config(&mut client, "name", Some(json!("b"))).expect("renamed");
    assert_eq!(renamed.agent.name, "b");
    assert!(home.agent_dir("b").is_dir() && !home.agent_dir("a").exists());
    assert_eq!(file(&home, "b")["name"], "b");
    assert_eq!(client.message_texts("b"), ["live"]);
    let sessions = client.history("b");
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].header.agent_name, "a", "session files keep the name they were saved under");
    assert!(sessions[0].available && sessions[0].file_path.contains("/agents/b/"), "{}", sessions[0].file_path);
    client.append("b", "after");
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.message_texts("b"), ["live", "after"]);
    client.restore("b", "latest");
    assert_eq!(client.message_texts("b"), ["live"]);
    client.init("a");
    assert_eq!(client.history("a"), [], "the old name is free, for another agent");
}

#[test]
fn whoever_looks_at_an_agent_while_it_is_renamed_changes_nothing() {
    const RENAMES: usize = 40;
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "live");
    let done = AtomicBool::new(false);
    let mut names = ["a", "b"];
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = daemon.client();
                while !done.load(Ordering::Relaxed) {
                    client.call::<List>(&ListParams::default()).expect("a list");
                }
            });
        }
        let renamed: Result<(), CallError> = (0..RENAMES).try_for_each(|_| {
            let [from, to] = names;
            names = [to, from];
            let rename = ConfigParams { name: from.into(), key: Some("name".into()), value: Some(to.into()) };
            client.call::<Config>(&rename).map(drop)
        });
        done.store(true, Ordering::Relaxed);
        renamed.expect("renamed");
    });
    let agents = client.call::<List>(&ListParams::default()).expect("a list").agents;
    assert_eq!(agents.len(), 1);
    assert_eq!((&*agents[0].name, &agents[0].problem), (names[0], &None));
    assert_eq!(Path::new(&agents[0].path), home.agent_dir(names[0]));
    daemon.kill9();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().message_texts(names[0]), ["live"]);
}
