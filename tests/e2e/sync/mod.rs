//! `chorusctl sync` between two homes, over a real ssh server.

use std::fs;

use chorus_tests::ctl::{Output, chorusctl, chorusctl_with, run_command};
use chorus_tests::ssh_server::SshServer;
use chorus_tests::{Daemon, Home, skip};
use serde_json::{Value, json};

use crate::home;

/// A machine that is reached over ssh, and this one.
struct Machines {
    here: Home,
    there: Home,
    server: SshServer,
}

impl Machines {
    /// `None` if there is no ssh server; then the test is skipped.
    fn start() -> Option<Self> {
        let (here, there) = (home(), home());
        match SshServer::start(&there) {
            Some(server) => Some(Self { here, there, server }),
            None => {
                skip("sshd is not installed (openssh-server)");
                None
            }
        }
    }

    fn sync(&self, args: &[&str]) -> Output {
        let mut command = self.here.command(self.here.bins.chorusctl);
        command.args(["sync", "box", "--rsh", &self.server.rsh(), "--remote-command", &self.server.chorusctl()]);
        command.args(args);
        run_command(command, b"")
    }
}

/// A conversation of Claude Code with these texts, one after the other.
fn transcript(session: &str, texts: &[&str]) -> String {
    let mut parent = Value::Null;
    let mut all = String::new();
    for (number, text) in texts.iter().enumerate() {
        let kind = if number % 2 == 0 { "user" } else { "assistant" };
        let id = format!("{session}-{text}");
        let line = json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": session, "cwd": "/srv/shop",
            "timestamp": format!("2026-03-01T10:00:{number:02}Z"), "message": {"role": kind, "id": id, "content": text}});
        all.push_str(&format!("{line}\n"));
        parent = json!(id);
    }
    all
}

fn import(home: &Home, text: &str) {
    chorusctl_with(home, ["import", "--from", "claude-code", "-"], text.as_bytes()).expect_success();
}

/// The messages of all sessions, sorted.
fn texts(home: &Home) -> Vec<Vec<String>> {
    let listed = chorusctl(home, ["history", "--all-agents", "--json", "-n", "100"]).expect_json();
    let mut all: Vec<Vec<String>> = listed["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|session| {
            let lines = chorusctl(home, ["export", session["id"].as_str().expect("an id"), "--as", "jsonl"]);
            let lines = lines.expect_success();
            let messages = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            messages.filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
        })
        .collect();
    all.sort();
    all
}

const ONE: &str = "11111111-1111-4111-8111-111111111111";
const TWO: &str = "22222222-2222-4222-8222-222222222222";

#[test]
fn both_machines_have_everything_afterwards_and_a_second_run_copies_nothing() {
    let Some(machines) = Machines::start() else { return };
    let (here, there) = (&machines.here, &machines.there);
    let _daemons = [Daemon::start(here), Daemon::start(there)];
    import(here, &transcript(ONE, &["Paint the fence", "Green it is"]));
    import(there, &transcript(TWO, &["Count the beans", "Forty-two"]));
    let said = machines.sync(&["--dry-run"]).expect_success();
    assert_eq!(said, "would send 1 conversation and receive 1 conversation\n");
    assert_eq!((texts(here).len(), texts(there).len()), (1, 1));
    let said = machines.sync(&[]).expect_success();
    assert_eq!(said, "sent 1 new (2 messages); received 1 new (2 messages)\n");
    let due = vec![owned(["Count the beans", "Forty-two"]), owned(["Paint the fence", "Green it is"])];
    assert_eq!((texts(here), texts(there)), (due.clone(), due));
    assert_eq!(machines.sync(&[]).expect_success(), "up to date\n");
    // They are the same conversations: the next import adds to them, and so does the next sync.
    import(there, &transcript(ONE, &["Paint the fence", "Green it is", "And the gate", "Too"]));
    assert_eq!(machines.sync(&[]).expect_success(), "sent nothing; received 1 grown (2 messages)\n");
    assert_eq!(machines.sync(&[]).expect_success(), "up to date\n");
    assert_eq!(texts(here), texts(there));
    assert_eq!(texts(here)[1].len(), 4);
}

fn owned<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

#[test]
fn what_differs_is_kept_on_both_machines() {
    let Some(machines) = Machines::start() else { return };
    let (here, there) = (&machines.here, &machines.there);
    let _daemons = [Daemon::start(here), Daemon::start(there)];
    import(here, &transcript(ONE, &["Paint the fence", "Green it is", "No, blue"]));
    import(there, &transcript(ONE, &["Paint the fence", "Green it is", "No, red", "Red then"]));
    let said = machines.sync(&["--json"]).expect_json();
    assert_eq!((&said["sent"]["revisions"], &said["received"]["revisions"]), (&json!(1), &json!(1)), "{said}");
    let all = texts(here);
    assert_eq!((all.len(), &all), (2, &texts(there)));
    assert_eq!(machines.sync(&[]).expect_success(), "up to date\n");
    assert_eq!(texts(there), all);
}

#[test]
fn sessions_of_agents_come_with_their_names_and_deleted_ones_stay_away() {
    let Some(machines) = Machines::start() else { return };
    let (here, there) = (&machines.here, &machines.there);
    let daemons = [Daemon::start(here), Daemon::start(there)];
    for (home, text) in [(here, "the plan"), (there, "the budget")] {
        chorusctl(home, ["agent", "init", "api"]).expect_success();
        chorusctl(home, ["--agent", "api", "context", "append", text]).expect_success();
        chorusctl(home, ["--agent", "api", "save", text, "--no-wait"]).expect_success();
    }
    machines.sync(&[]).expect_success();
    for (home, text) in [(here, "the budget"), (there, "the plan")] {
        let found = chorusctl(home, ["--agent", "api", "history", text, "--json"]).expect_json();
        assert_eq!((&found["total"], &found["sessions"][0]["agent_name"]), (&json!(1), &json!("api")), "{found}");
    }
    // The newest of both is the newest, on either machine.
    let latest =
        [here, there].map(|home| chorusctl(home, ["--agent", "api", "show", "latest", "--json"]).expect_json());
    let ids = latest.each_ref().map(|shown| shown["session"]["id"].as_str().expect("an id"));
    assert_eq!(ids[0], ids[1]);
    assert_eq!(machines.sync(&[]).expect_success(), "up to date\n");
    let copy = chorusctl(here, ["--agent", "api", "history", "budget", "--json"]).expect_json();
    chorusctl(here, ["rm", copy["sessions"][0]["id"].as_str().expect("an id")]).expect_success();
    assert_eq!(machines.sync(&[]).expect_success(), "up to date\n");
    assert_eq!((texts(here).len(), texts(there).len()), (1, 2), "it is deleted here only");
    // Also its own session, and without the trash.
    let own = chorusctl(here, ["--agent", "api", "history", "plan", "--json"]).expect_json();
    chorusctl(here, ["session", "purge", own["sessions"][0]["id"].as_str().expect("an id"), "--yes"]).expect_success();
    chorusctl(here, ["trash", "empty", "--yes"]).expect_success();
    assert_eq!(machines.sync(&[]).expect_success(), "up to date\n");
    assert_eq!((texts(here).len(), texts(there).len()), (0, 2));
    drop(daemons);
}

#[test]
fn only_the_project_that_is_asked_for_is_copied() {
    let Some(machines) = Machines::start() else { return };
    let (here, there) = (&machines.here, &machines.there);
    let _daemons = [Daemon::start(here), Daemon::start(there)];
    import(here, &transcript(ONE, &["Paint the fence", "Green it is"]));
    import(here, &transcript(TWO, &["Count the beans", "Forty-two"]).replace("/srv/shop", "/srv/beans"));
    assert!(machines.sync(&["--project", "/srv/beans"]).expect_success().starts_with("sent 1 new"));
    assert_eq!(texts(there), [owned(["Count the beans", "Forty-two"])]);
}

#[test]
fn failures_say_what_to_do() {
    let Some(machines) = Machines::start() else { return };
    let _daemon = Daemon::start(&machines.here);
    let mut command = machines.here.command(machines.here.bins.chorusctl);
    command.args(["sync", "box", "--rsh", &machines.server.rsh(), "--remote-command", "/nowhere/chorusctl"]);
    let missing = run_command(command, b"");
    assert!(missing.stderr.contains("`/nowhere/chorusctl` does not exist on box"), "{missing:?}");
    missing.expect_failure_with_hint(3);
    let mut command = machines.here.command(machines.here.bins.chorusctl);
    command.args(["sync", "box", "--rsh", "ssh -p 1 -o BatchMode=yes", "--remote-command", "chorusctl"]);
    let unreachable = run_command(command, b"");
    assert!(unreachable.stderr.contains("failed to connect to box"), "{unreachable:?}");
    let option = chorusctl(&machines.here, ["sync", "--", "-oProxyCommand=touch x"]);
    assert_eq!(option.status, 2, "{option:?}");
    // No daemon ran there: it was started, and text of a login script does no harm.
    fs::write(machines.server.home().join(".bashrc"), "echo welcome\n").expect("a script");
    import(&machines.here, &transcript(ONE, &["Paint the fence", "Green it is"]));
    assert_eq!(machines.sync(&[]).expect_success(), "sent 1 new (2 messages); received nothing\n");
    chorusctl(&machines.there, ["daemon", "stop"]).expect_success();
}
