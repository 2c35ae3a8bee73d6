//! `chat --attach`: what others say in a conversation is shown as they say it.

use chorus_tests::ctl::chorusctl;
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::interactive::InteractiveCommand;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, Fixture, wait_until};
use serde_json::Value;

use super::run;
use crate::home;

fn fixture() -> Fixture {
    let fixture = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).start();
    fixture.create_agent("api", None);
    fixture
}

/// Starts `chat --attach` with more arguments on a terminal.
fn attach(fixture: &Fixture, args: &[&str]) -> InteractiveCommand {
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(["chat", "--attach"]).args(args);
    InteractiveCommand::on_terminal(&command)
}

/// A turn of another client, which runs beside the test.
fn spawn_send(fixture: &Fixture, args: &[&str]) -> std::thread::JoinHandle<String> {
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(args);
    std::thread::spawn(move || chorus_tests::ctl::run_command(command, b"").expect_success())
}

#[test]
fn a_running_turn_is_shown_from_its_start_and_then_the_prompt_comes() {
    let fixture = fixture();
    fixture.answer(Response::text(["The first part, "]).gate("go").then_text("and the second."));
    let other = spawn_send(&fixture, &["send", "what is it?"]);
    fixture.models().wait_for_gate("go");
    let mut chat = attach(&fixture, &[]);
    chat.stdout.wait_for("a turn is running; its messages so far:");
    fixture.models().open_gate("go");
    chat.stdout.wait_for("The first part, and the second.");
    assert_eq!(other.join().expect("the turn"), "The first part, and the second.\n");
    // The prompt is there: a message gets its reply, once.
    chat.stdout.wait_for("api> ");
    fixture.reply("Of course.");
    chat.type_and_wait("sure?\r", "Of course.");
    chat.type_and_wait("\r", "api> ");
    let out = chat.stdout.text();
    assert!(!out.contains("api: Of course.") && !out.contains("user: sure?"), "it is shown once: {out}");
}

#[test]
fn what_others_say_at_the_prompt_is_shown_above_it() {
    let fixture = fixture();
    let home = &fixture.home;
    let mut chat = attach(&fixture, &["--name", "review"]);
    chat.stdout.wait_for("api · review · new conversation");
    chat.stdout.wait_for("api/review> ");
    let clients = || {
        let list = chorusctl(home, ["conversations", "--json"]).expect_json();
        list["conversations"][1]["attached"][0]["client"].as_str().map(str::to_owned)
    };
    let client = wait_until("the client", DEADLINE, clients);
    assert!(client.starts_with("pts/"), "{client}");
    assert!(run(home, &["conversations"]).contains(&client));
    fixture.answer(Response::text(["One line.\nAnd ", "another."]));
    run(home, &["-C", "review", "send", "what is it?"]);
    chat.stdout.wait_for("user: what is it?");
    chat.stdout.wait_for("api: One line.");
    chat.stdout.wait_for("And another.");
    run(home, &["-C", "review", "context", "append", "a fact from elsewhere"]);
    chat.stdout.wait_for("user: a fact from elsewhere");
    run(home, &["context", "append", "not for the review"]);
    fixture.reply("Mine.");
    chat.type_and_wait("my question\r", "Mine.");
    chat.type_and_wait("\r", "api/review> ");
    let out = chat.leave_chat("api/review> ");
    assert_eq!(out.matches("a fact from elsewhere").count(), 1, "{out}");
    assert!(
        !out.contains("user: my question") && !out.contains("api: Mine.") && !out.contains("not for the review"),
        "{out}"
    );
    wait_until("nobody", DEADLINE, || clients().is_none().then_some(()));
}

#[test]
fn ctrl_c_cancels_the_turn_that_is_shown() {
    let fixture = fixture();
    fixture.answer(Response::text(["A part "]).gate("never"));
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(["send", "what is it?"]);
    let other = std::thread::spawn(move || chorus_tests::ctl::run_command(command, b""));
    fixture.models().wait_for_gate("never");
    let mut chat = attach(&fixture, &[]);
    chat.stdout.wait_for("a turn is running");
    chat.type_and_wait("\u{3}", "api> ");
    assert_eq!(other.join().expect("the turn").status, 1);
}

#[test]
fn without_a_terminal_it_only_follows() {
    let fixture = fixture();
    let home = &fixture.home;
    let follow = |args: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.args(["chat", "--attach"]).args(args);
        InteractiveCommand::piped(command)
    };
    let json = follow(&["--json"]);
    json.stdout.wait_for("\"attached\"");
    let text = follow(&[]);
    text.stderr.wait_for("also open in chorusctl");
    fixture.reply("It is a parser.");
    run(home, &["send", "what is it?"]);
    text.stdout.wait_for("It is a parser.\n");
    text.stderr.wait_for("user: what is it?");
    json.stdout.wait_for("\"ended\"");
    let out = json.stdout.text();
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(events[0]["attached"]["turn_id"], Value::Null, "{out}");
    assert_eq!(events[1]["message"]["text"], "what is it?", "{out}");
    assert!(events.iter().any(|event| event["text"] == "It is a parser."), "{out}");
    let mut text = text;
    run(home, &["daemon", "stop"]);
    let (status, _, said) = text.wait_for_exit();
    assert!(status.code() == Some(1) && said.contains("error: the connection to the daemon ends"), "{said}");
    let unknown = chorusctl(home, ["chat", "--attach", "-C", "nosuch"]);
    unknown.expect_failure_with_hint(3);
    assert!(!run(home, &["conversations", "list", "--all"]).contains("nosuch"), "following creates nothing");
    for args in [&["chat", "--attach", "--new"][..], &["chat", "--attach", "--resume", "1"]] {
        chorusctl(home, args.iter().copied()).expect_failure(2);
    }
}
