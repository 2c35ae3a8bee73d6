//! Whoever follows a hint acts on the conversation that the command was about.

use chorus_tests::ctl::{self, chorusctl};
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::interactive::InteractiveCommand;
use chorus_tests::model_server::Response;
use chorus_tests::{Fixture, Home};

use super::{run, with_review};
use crate::home;

/// Runs a command and returns everything that it prints.
fn text(home: &Home, args: &[&str]) -> String {
    let output = chorusctl(home, args.iter().copied());
    output.stdout + &output.stderr
}

#[test]
fn commands_in_hints_name_the_conversation() {
    let (home, _daemon) = with_review();
    run(&home, &["-C", "review", "context", "append", "one more"]);
    run(&home, &["conversations", "new", "empty"]);
    for (args, hint) in [
        (&["-C", "review", "undo", "100"][..], "chorusctl -C review context clear"),
        (&["-C", "review", "undo"], "redo: chorusctl -C review undo --redo"),
        (&["-C", "empty", "show"], "chorusctl -C empty chat, or chorusctl -C empty restore latest"),
        (&["show", "@empty"], "chorusctl -C empty chat, or chorusctl -C empty restore latest"),
        (&["rm", "@review"], "save it: chorusctl -C review save"),
        (&["-C", "review", "rm", "@main"], "save it: chorusctl -C main save"),
        (&["-C", "review", "history"], "chorusctl -C review save, or chorusctl import FILE"),
        (&["conversations", "close", "main"], "chorusctl -C main context clear --save"),
    ] {
        let said = text(&home, args);
        assert!(said.contains(hint), "{args:?} {said}");
    }
    let said = text(&home, &["-C", "review", "undo", "100"]);
    assert!(said.contains("only 1 user turn in the conversation review; cannot rewind 100"), "{said}");
    let json = chorusctl(&home, ["-C", "review", "undo", "100", "--json"]);
    assert!(json.stderr.contains("chorusctl -C review context clear"), "{json:?}");
    // Nothing is added where there is only main.
    let said = text(&home, &["undo", "--agent", "api"]);
    assert!(said.contains("redo: chorusctl undo --redo"), "{said}");
}

#[test]
fn commands_in_hints_name_the_agent_if_there_are_several() {
    let (home, _daemon) = with_review();
    let second = chorusctl(&home, ["agent", "init", "web"]);
    let hint = "hint: commands need --agent NAME now; or set a default: chorusctl agent use NAME\n";
    assert_eq!((second.status, &*second.stderr), (0, hint));
    let third = chorusctl(&home, ["agent", "init", "third"]);
    assert_eq!((third.status, &*third.stderr), (0, ""));
    let undone = run(&home, &["--agent", "api", "-C", "review", "undo"]);
    assert!(undone.ends_with("; redo: chorusctl --agent api -C review undo --redo\n"), "{undone}");
    run(&home, &["--agent", "api", "-C", "review", "undo", "--redo"]);
    let closed = run(&home, &["--agent", "api", "conversations", "close", "review"]);
    let command = closed.lines().last().and_then(|line| line.strip_prefix("  continue it: chorusctl "));
    let command = command.unwrap_or_else(|| panic!("{closed}"));
    assert!(command.starts_with("--agent api -C review restore "), "{closed}");
    run(&home, &command.split(' ').collect::<Vec<_>>());
}

#[test]
fn a_hint_during_a_turn_cancels_that_turn() {
    let fixture = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).start();
    fixture.create_agent("api", None);
    let home = &fixture.home;
    run(home, &["-C", "rev3", "context", "append", "hello"]);
    fixture.answer(Response::text(["A part "]).gate("never"));
    let mut command = home.command(home.bins.chorusctl);
    command.args(["-C", "rev3", "send", "what is it?"]);
    let sending = std::thread::spawn(move || ctl::run_command(command, b""));
    fixture.models().wait_for_gate("never");
    let busy = chorusctl(home, ["-C", "rev3", "undo"]);
    let said = busy.expect_failure(7).to_owned();
    assert!(said.contains("a turn is running in the conversation rev3\n"), "{said}");
    let command = said.split('`').nth(1).and_then(|command| command.strip_prefix("chorusctl ")).expect("a command");
    assert!(command.contains("-C rev3 cancel"), "{said}");
    assert!(run(home, &command.split(' ').collect::<Vec<_>>()).starts_with("cancelled turn "));
    assert_eq!(sending.join().expect("the turn").status, 1);
}

#[test]
fn a_chat_names_its_own_commands_with_a_slash_and_where_to_go() {
    let (home, _daemon) = with_review();
    run(&home, &["save", "the login"]);
    let mut command = home.command(home.bins.chorusctl);
    command.args(["-C", "review", "chat"]);
    let mut chat = InteractiveCommand::on_terminal_of(&command, 120, 40);
    chat.stdout.wait_for("api/review> ");
    chat.type_and_wait("/undo\r", "redo: /undo --redo");
    chat.type_and_wait("/restore the-login --as-conversation again\r", "continue there: chorusctl -C again chat");
    let listed = chat.type_and_wait("/conversations\r", "*  review");
    assert!(listed.contains("again"), "{listed}");
    chat.leave_chat("api/review> ");
}
