//! Which commands work with another machine, and with what of this one.

use std::fs;

use chorus_tests::InteractiveCommand;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{chorusctl, run_command};

use super::Machines;

#[test]
fn commands_use_the_daemon_there_and_the_files_here() {
    let Some(machines) = Machines::start() else { return };
    let here = &machines.here;
    machines.there.reply("It is a parser.");
    assert_eq!(machines.run(&["send", "What is it?"]).expect_success(), "It is a parser.\n");
    let status = machines.run(&["status", "--json"]).expect_json();
    assert_eq!(status["agents"][0]["name"], "api", "{status}");
    machines.run(&["save", "Parser", "--no-wait"]).expect_success();
    let page = here.user_home.join("talk.md");
    machines.run(&["export", "latest", "talk.md"]).expect_success();
    assert!(fs::read_to_string(&page).expect("the page").contains("It is a parser."));
    // The session file is read there, even if this machine has one of the same path.
    let json = machines.run(&["export", "latest"]).expect_json();
    assert_eq!(json["messages"][1]["content"], "It is a parser.");
    let transcript = concat!(
        r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"11111111-1111-4111-8111-111111111111","#,
        r#""cwd":"/srv/shop","timestamp":"2026-03-01T10:00:00Z","message":{"role":"user","content":"Paint the fence"}}"#
    );
    fs::write(here.user_home.join("fence.jsonl"), format!("{transcript}\n")).expect("a transcript");
    machines.run(&["import", "fence.jsonl"]).expect_success();
    let found = chorusctl(&machines.there.home, ["history", "--all-agents", "--json"]).expect_json();
    assert_eq!(found["total"], 2, "{found}");
    let doctor = machines.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("\"checks\""), "{doctor:?}");
    machines.run(&["daemon", "status"]).expect_success();
    assert!(!here.socket().exists(), "no daemon was started here");
}

#[test]
fn agents_of_this_machine_are_not_named_there() {
    let Some(machines) = Machines::start() else { return };
    machines.there.create_agent("web", None);
    machines.there.client().append("web", "hello");
    chorusctl(&machines.there.home, ["agent", "use", "web"]).expect_success();
    let shown = |command: std::process::Command| run_command(command, b"").expect_json()["agent_name"].clone();
    let show = ["show", "--json"];
    let mut command = machines.command(&show);
    command.env("CHORUS_AGENT", "nosuch").env("CHORUS_CONVERSATION", "nosuch");
    assert_eq!(shown(command), "web", "the variables are those of this machine");
    // A directory of an agent of this machine names none there.
    let inside = machines.here.agent_dir("nosuch");
    fs::create_dir_all(&inside).expect("a directory");
    let mut command = machines.command(&show);
    command.current_dir(&inside);
    assert_eq!(shown(command), "web");
    // Who sets both variables means both.
    let mut command = machines.here.command(machines.here.bins.chorusctl);
    command.args(show).env("CHORUS_HOST", "box").env("CHORUS_AGENT", "api");
    assert_eq!(shown(command), "api");
    assert_eq!(shown(machines.command(&["--agent", "api", "show", "--json"])), "api");
}

#[test]
fn commands_of_an_installation_say_how_to_run_them_there() {
    let Some(machines) = Machines::start() else { return };
    for args in [
        &["daemon", "stop"][..],
        &["daemon", "restart"],
        &["daemon", "logs"],
        &["backup", "backups"],
        &["doctor", "--rebuild"],
        &["sync", "desk"],
        &["hooks", "install", "claude-code"],
        &["mcp", "install", "claude-code"],
    ] {
        let refused = machines.run(args);
        let said = refused.expect_failure_with_hint(2);
        assert!(said.contains("works on its own machine only, not with --host"), "{args:?}: {said}");
        assert!(said.contains("hint: run it there: ssh box "), "{args:?}: {said}");
    }
    let refused = machines.run(&["history", "--project", "./shop"]);
    assert!(refused.expect_failure_with_hint(2).contains("./shop would be a directory of this machine, not of box"));
    let both = machines.run(&["--socket", "/tmp/c.sock", "status"]);
    assert!(both.expect_failure_with_hint(2).contains("--socket is for this machine, --host for another one"));
    // Commands that need no daemon ignore the variable, and a socket on the command line is one of this machine.
    let with_variable = |args: &[&str]| {
        let mut command = machines.here.command(machines.here.bins.chorusctl);
        command.args(args).env("CHORUS_HOST", "nowhere.invalid");
        run_command(command, b"")
    };
    with_variable(&["completions", "bash"]).expect_success();
    with_variable(&["help", "send"]).expect_success();
    let socket = machines.there.home.socket().display().to_string();
    with_variable(&["--socket", &socket, "status"]).expect_success();
    let refused = with_variable(&["daemon", "start"]);
    assert!(refused.expect_failure_with_hint(2).contains("not with CHORUS_HOST"));
}

#[test]
fn a_chat_and_the_screen_work_there() {
    let Some(machines) = Machines::start() else { return };
    machines.there.reply("It is a parser.");
    let mut chat = InteractiveCommand::on_terminal(&machines.command(&["chat"]));
    chat.stdout.wait_for("api> ");
    chat.type_and_wait("what is it?\r", "It is a parser.");
    chat.leave_chat("api> ");
    let mut top = InteractiveCommand::on_terminal_of(&machines.command(&["top"]), 80, 24);
    let is_there = |rows: &[String]| rows[0].contains(" on box") && rows.iter().any(|row| row.starts_with("api "));
    top.wait_for_rows((80, 24), 0, "the agent there", is_there);
    top.type_text("q");
    assert_eq!(top.wait_for_exit().0.code(), Some(0));
}
