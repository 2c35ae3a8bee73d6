//! What a start finds, and what `hello` and `status` say of it.

use std::fs;

use chorus_proto::PROTOCOL;
use chorus_proto::methods::daemon::{AgentTotals, Hello, HelloParams, Status, StatusParams};
use chorus_proto::{AgentState, Client, ErrorKind};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::fake_daemon::start_fake_daemon;
use serde_json::{Value, json};

use crate::home;

#[test]
fn hello_says_who_is_there() {
    let home = home();
    let daemon = Daemon::start(&home);
    let hello = daemon.client().call::<Hello>(&HelloParams::default()).expect("an answer");
    assert_eq!((hello.protocol, &*hello.server, hello.pid), (PROTOCOL, "chorusd", daemon.pid));
    assert_eq!(fs::canonicalize(hello.home).expect("the home"), fs::canonicalize(&home.path).expect("the home"));
    assert!(hello.version.split('.').count() >= 3, "{}", hello.version);
}

/// Both the log file and standard error are on a disk without room.
#[test]
fn a_log_that_cannot_be_written_keeps_nobody_from_working() {
    let home = home();
    let log = home.path.join("log");
    fs::create_dir_all(&log).expect("its directory");
    std::os::unix::fs::symlink("/dev/full", log.join("chorusd.log")).expect("a log without room");
    let mut command = home.command("sh");
    command.args(["-c", "exec \"$CHORUSD\" 2>/dev/full"]);
    let daemon = Daemon::start_command(&home, command);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "kept");
    assert_eq!(client.message_texts("a"), ["kept"]);
}

#[test]
fn status_shows_the_daemon_and_its_agents() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    client.append("b", "one");
    let status = client.call::<Status>(&StatusParams::default()).expect("a status");
    assert_eq!(status.daemon.pid, daemon.pid);
    assert!(status.daemon.rss_bytes > 1024 * 1024 && status.daemon.connections >= 1);
    assert_eq!(fs::canonicalize(status.daemon.socket).ok(), fs::canonicalize(home.socket()).ok());
    let states: Vec<_> = status.agents.iter().map(|agent| (&*agent.name, agent.state)).collect();
    assert_eq!(states, [("a", AgentState::Idle), ("b", AgentState::Active)]);
    let only = client.call::<Status>(&StatusParams { agent: Some("b".into()), limit: None }).expect("a status");
    assert_eq!(only.agents.len(), 1);
    let nobody = StatusParams { agent: Some("nobody".into()), limit: None };
    assert_eq!(expect_error_kind(client.call::<Status>(&nobody)), ErrorKind::AgentNotFound);
}

#[test]
fn status_with_a_limit_shows_active_agents_first_and_counts_the_rest() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for n in 0..60 {
        client.init(&format!("agent-{n:02}"));
    }
    for name in ["agent-57", "agent-03", "agent-41"] {
        client.append(name, "hello");
    }
    let mut ask = |limit| {
        let status = client.call::<Status>(&StatusParams { agent: None, limit }).expect("a status");
        let names: Vec<String> = status.agents.into_iter().map(|agent| agent.name).collect();
        (names, status.totals)
    };
    let totals = Some(AgentTotals { active: 3, idle: 57, approvals: 0 });
    assert_eq!(ask(Some(0)), (vec![], totals));
    assert_eq!(ask(Some(2)), (vec!["agent-03".into(), "agent-41".into()], totals), "the last active ones");
    assert_eq!(ask(Some(4)).0, ["agent-03", "agent-41", "agent-57", "agent-00"]);
    assert_eq!(ask(Some(u64::MAX)).0.len(), 60);
    let (all, none) = ask(None);
    assert_eq!((all.len(), &*all[0], none), (60, "agent-00", None), "who asks as before is answered as before");

    let text = chorusctl(&home, ["status"]).expect_success();
    assert!(text.lines().nth_back(0).is_some_and(|line| line.starts_with("and 10 idle (")), "{text}");
    let rows: Vec<_> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    let active = rows.iter().position(|name| *name == "agent-57").expect("the active one");
    assert!(active < rows.iter().position(|name| *name == "agent-00").expect("an idle one"), "{text}");
    assert_eq!(chorusctl(&home, ["--json", "status"]).expect_json()["agents"].as_array().map(Vec::len), Some(60));
    assert_eq!(
        chorusctl(&home, ["--json", "daemon", "status"]).expect_json()["agents"].as_array().map(Vec::len),
        Some(60)
    );
    assert_eq!(chorusctl(&home, ["daemon", "status"]).expect_success().lines().count(), 1);
}

#[test]
fn daemon_status_asks_for_no_agents_and_its_answer_stays_small() {
    let fake = home();
    let (tell, asked) = std::sync::mpsc::sync_channel(16);
    start_fake_daemon(&fake, move |method, params| {
        tell.send((method.to_owned(), params.clone())).expect("the test");
        json!({}).into()
    });
    // The answer is none, so the command fails; it is the request that counts.
    chorusctl(&fake, ["daemon", "status"]);
    let params: Vec<Value> =
        asked.try_iter().filter_map(|(method, params)| (method == "status").then_some(params)).collect();
    assert_eq!(params, [json!({"limit": 0})]);

    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let answer_size = |client: &mut Client| {
        let answer = client.call::<Status>(&StatusParams { agent: None, limit: Some(0) }).expect("a status");
        serde_json::to_vec(&answer).expect("JSON").len()
    };
    let without_agents = answer_size(&mut client);
    for n in 0..200 {
        client.init(&format!("agent-{n}"));
    }
    let with_agents = answer_size(&mut client);
    assert!(with_agents < without_agents + 100, "{with_agents} bytes, {without_agents} without agents");
}

#[test]
fn strange_things_in_the_home_are_no_hindrance() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "one");
    daemon.client().save("a", "saved");
    daemon.terminate();
    let agents = home.path.join("agents");
    fs::write(agents.join("a file"), "?").expect("a file");
    fs::create_dir(agents.join("empty")).expect("a directory");
    fs::create_dir(agents.join("Not A Name")).expect("a directory");
    fs::write(home.sessions_dir("a").join("notes.txt"), "mine").expect("a file");
    fs::write(home.sessions_dir("a").join(".hidden.json"), "mine").expect("a file");
    fs::create_dir(home.sessions_dir("a").join("folder.json")).expect("a directory");
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.message_texts("a"), ["one"]);
    assert!(client.history("a").iter().any(|session| session.header.description.as_deref() == Some("saved")));
    daemon.assert_alive();
    assert_eq!(fs::read_to_string(home.sessions_dir("a").join("notes.txt")).expect("still there"), "mine");
}

#[test]
fn what_an_interrupted_write_left_is_no_session() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "one");
    let name = daemon.client().save("a", "saved").header.session_id;
    daemon.kill9();
    let whole = fs::read(home.sessions_dir("a").join(format!("{name}.json"))).expect("the file");
    fs::write(home.sessions_dir("a").join(format!(".{name}.json.tmp")), &whole[..whole.len() / 2])
        .expect("half a file");
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().history("a").len(), 1);
}
