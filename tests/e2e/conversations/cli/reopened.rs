//! A message to a closed conversation says that it is open again, and how to get its earlier messages.

use chorus_tests::Fixture;
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::interactive::InteractiveCommand;

use super::{run, with_review};
use crate::home;

const NOTE: &str = "reopened conversation review; its earlier messages: chorusctl -C review restore latest\n";

#[test]
fn an_append_says_so_once_and_the_command_restores_the_messages() {
    let (home, _daemon) = with_review();
    run(&home, &["conversations", "close", "review"]);
    let append = ["-C", "review", "context", "append", "one more"];
    let appended = chorusctl(&home, append);
    assert_eq!((&*appended.stdout, &*appended.stderr), ("appended 1 message (1 total)\n", NOTE));
    let appended = chorusctl(&home, append);
    assert_eq!((appended.status, &*appended.stderr), (0, ""));
    run(&home, &["-C", "review", "restore", "latest"]);
    assert!(run(&home, &["-C", "review", "show"]).contains("please review the parser"));
    run(&home, &["conversations", "close", "review"]);
    assert_eq!(chorusctl(&home, ["--quiet"].iter().chain(&append)).stderr, "");
    run(&home, &["conversations", "close", "review"]);
    let json = chorusctl(&home, append.iter().chain(&["--json"])).expect_json();
    assert_eq!(json["note"], NOTE.trim_end());
    // One that was closed without messages has none to restore.
    run(&home, &["conversations", "new", "empty"]);
    run(&home, &["conversations", "close", "empty"]);
    let appended = chorusctl(&home, ["-C", "empty", "context", "append", "hello"]);
    assert_eq!(appended.stderr, "reopened conversation empty\n");
}

#[test]
fn a_turn_says_so_before_its_reply_and_a_chat_before_the_first_message() {
    let fixture = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).start();
    fixture.create_agent("api", None);
    let home = &fixture.home;
    run(home, &["-C", "review", "context", "append", "please review the parser"]);
    run(home, &["conversations", "close", "review"]);
    fixture.reply("Sound.");
    let sent = chorusctl(home, ["-C", "review", "send", "is it sound?"]);
    assert_eq!((&*sent.stdout, sent.stderr.lines().next()), ("Sound.\n", Some(NOTE.trim_end())));
    run(home, &["conversations", "close", "review"]);
    fixture.reply("Still sound.");
    let chat = chorusctl_with(home, ["-C", "review", "chat"], b"still?\n");
    let said: Vec<&str> = chat.stderr.lines().collect();
    let closed =
        "api · review · closed; a message reopens it; its earlier messages: chorusctl -C review restore latest";
    assert_eq!((said[0], said[1]), (closed, NOTE.trim_end()), "{chat:?}");
    run(home, &["conversations", "close", "review"]);
    let mut command = home.command(home.bins.chorusctl);
    command.args(["-C", "review", "chat"]);
    let mut chat = InteractiveCommand::on_terminal_of(&command, 160, 40);
    chat.stdout.wait_for("api/review> ");
    let opened = chat.stdout.text();
    assert!(opened.contains("its earlier messages: /restore latest"), "{opened}");
    let restored = chat.type_and_wait("/restore latest\r", "restored");
    assert!(!restored.contains("error"), "{restored}");
    chat.leave_chat("api/review> ");
}
