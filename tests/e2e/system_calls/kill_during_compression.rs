//! `kill -9` at the system calls of a compression, and of the change that makes the file plain again.

use std::fs;

use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::methods::session::{Tag, TagParams};
use chorus_proto::{Message, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::process::is_running;
use chorus_tests::strace::{Strace, is_permitted, threads, wait_until_quiet};
use chorus_tests::{DEADLINE, Daemon, Home, InProcessDaemon, ManualClock, wait_until};
use jiff::Timestamp;
use serde_json::Value;

use super::operations::copy;
use super::state::assert_databases_whole;
use super::{all, home};

const KEY: &str = "retention.sessions_compressed_after";

/// A stopped home with a session of an agent that was last used long ago, and its messages.
fn prepared() -> (Home, String, Vec<Value>) {
    let home = home();
    let clock = ManualClock::new(Timestamp::from_second(1_600_000_000).expect("a time"));
    let daemon = InProcessDaemon::start(&home, &clock);
    let mut client = daemon.client();
    client.init("a");
    let text = |n: usize| NewMessage::text(Role::User, format!("message {n}: {}", "some words ".repeat(100)));
    client.append_all("a", (0..40).map(text).collect());
    let session = client.save("a", "long");
    let messages = json(&client.messages("a"));
    client.call::<Clear>(&ClearParams { agent: Some("a".into()), ..Default::default() }).expect("context.clear");
    daemon.stop().expect("stopped");
    (home, session.header.id.to_string(), messages)
}

fn json(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|message| serde_json::to_value(message).expect("serialises")).collect()
}

/// What is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Compress,
    MakePlain,
}

/// Does it; how it ends is not looked at.
fn work(home: &Home, daemon: &Daemon, session: &str, step: Step) {
    match step {
        Step::Compress => {
            let _ = chorusctl(home, ["config", "set", KEY, "1d"]);
            // It goes on in the background.
            let is_done = || has_file(home, ".json.gz") && !has_file(home, ".json");
            wait_until("the end of it", DEADLINE, || (!is_running(daemon.pid) || is_done()).then_some(()));
        }
        Step::MakePlain => {
            let tag = vec!["later".to_owned()];
            let params = TagParams { agent: Some("a".into()), session: session.to_owned(), tag, ..Default::default() };
            let _ = daemon.client().call::<Tag>(&params);
        }
    }
    wait_until_quiet(daemon.pid);
}

fn has_file(home: &Home, end: &str) -> bool {
    let names = fs::read_dir(home.sessions_dir("a")).expect("sessions").flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).any(|name| !name.starts_with('.') && name.ends_with(end))
}

/// Kills the daemon at the call `number` of this kind, and looks at what a start finds. Returns false if there was no such call.
fn kill_at((template, session, messages): &(Home, String, Vec<Value>), step: Step, call: &str, number: usize) -> bool {
    let home = copy(template);
    let mut daemon = Daemon::start(&home);
    wait_until_quiet(daemon.pid);
    let threads: Vec<u32> = threads(daemon.pid).into_values().flatten().collect();
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:signal=KILL:when={number}"));
    let strace = Strace::attach(&home, &threads, &["-f", "-e", &trace, "-e", &inject]).expect("strace attaches");
    work(&home, &daemon, session, step);
    if is_running(daemon.pid) {
        return false;
    }
    daemon.wait();
    drop(strace);
    let at = format!("{step:?} killed at {call} {number}");
    fs::write(home.path.join("config.toml"), "").expect("written");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = client.history("a");
    assert!(sessions.len() == 1 && sessions[0].available && sessions[0].corrupt.is_none(), "{at}: {sessions:?}");
    assert_eq!(json(&client.get_session("a", session).1), *messages, "{at}");
    assert_eq!(client.restore("a", session).warnings, Vec::<String>::new(), "{at}");
    assert_eq!(json(&client.messages("a")), *messages, "{at}");
    // The start deletes what was left in the background.
    wait_until(&format!("{at}: one file"), DEADLINE, || {
        (fs::read_dir(home.sessions_dir("a")).expect("sessions").count() == 1).then_some(())
    });
    assert_eq!(client.history("a").len(), 1, "{at}");
    wait_until(&format!("{at}: the row to follow the file"), DEADLINE, || {
        (chorusctl(&home, ["doctor"]).status == 0).then_some(())
    });
    assert!(daemon.terminate().success(), "{at}: the next stop");
    assert_databases_whole(&home);
    true
}

#[test]
fn a_kill_leaves_one_file_and_one_row() {
    let plain = prepared();
    if !is_permitted(&plain.0) || plain.0.database_url().is_some() {
        return;
    }
    let compressed = {
        let home = copy(&plain.0);
        let daemon = Daemon::start(&home);
        work(&home, &daemon, &plain.1, Step::Compress);
        assert!(daemon.terminate().success());
        fs::write(home.path.join("config.toml"), "").expect("written");
        (home, plain.1.clone(), plain.2.clone())
    };
    let most = if all() { 24 } else { 3 };
    let calls = ["rename", "fsync", "fdatasync", "unlink", "pwrite64", "write"];
    for (template, step) in [(&plain, Step::Compress), (&compressed, Step::MakePlain)] {
        let mut killed = 0;
        for call in calls {
            killed += (1..=most).take_while(|number| kill_at(template, step, call, *number)).count();
        }
        assert!(killed >= 4, "{step:?}: only {killed} calls were reached");
    }
}
