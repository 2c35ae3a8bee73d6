//! What a start finds, and what `hello` and `status` say of it.

use std::fs;

use chorus_proto::PROTOCOL;
use chorus_proto::methods::daemon::{Hello, HelloParams, Status, StatusParams};
use chorus_proto::{AgentState, ErrorKind};
use chorus_tests::Daemon;
use chorus_tests::chat::{Chat as _, kind_of};

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
    let only = client.call::<Status>(&StatusParams { agent: Some("b".into()) }).expect("a status");
    assert_eq!(only.agents.len(), 1);
    let nobody = StatusParams { agent: Some("nobody".into()) };
    assert_eq!(kind_of(client.call::<Status>(&nobody)), ErrorKind::AgentNotFound);
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
    fs::write(home.sessions("a").join("notes.txt"), "mine").expect("a file");
    fs::write(home.sessions("a").join(".hidden.json"), "mine").expect("a file");
    fs::create_dir(home.sessions("a").join("folder.json")).expect("a directory");
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.texts("a"), ["one"]);
    assert!(client.history("a").iter().any(|session| session.header.description.as_deref() == Some("saved")));
    daemon.assert_alive();
    assert_eq!(fs::read_to_string(home.sessions("a").join("notes.txt")).expect("still there"), "mine");
}

#[test]
fn what_an_interrupted_write_left_is_no_session() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "one");
    let name = daemon.client().save("a", "saved").header.session_id;
    daemon.kill9();
    let whole = fs::read(home.sessions("a").join(format!("{name}.json"))).expect("the file");
    fs::write(home.sessions("a").join(format!(".{name}.json.tmp")), &whole[..whole.len() / 2]).expect("half a file");
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().history("a").len(), 1);
}
