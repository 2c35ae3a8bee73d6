//! A chat in a conversation beside `main`.

use chorus_tests::Fixture;
use chorus_tests::ctl::{chorusctl, chorusctl_with};
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::interactive::InteractiveCommand;

use super::run;
use crate::home;

fn fixture() -> Fixture {
    let fixture = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).start();
    fixture.create_agent("api", None);
    fixture
}

#[test]
fn it_is_created_and_named_in_the_heading() {
    let fixture = fixture();
    let home = &fixture.home;
    run(home, &["context", "append", "in main"]);
    let chat = chorusctl_with(home, ["chat", "--name", "review"], b"");
    assert_eq!((chat.status, &*chat.stderr), (0, "created conversation review\napi · review · new conversation\n"));
    fixture.reply("Fine.");
    let chat = chorusctl_with(home, ["chat", "--name", "review"], b"how is it?\n");
    assert_eq!((&*chat.stdout, chat.stderr.lines().next()), ("Fine.\n", Some("api · review · new conversation")));
    let chat = chorusctl_with(home, ["chat", "-C", "review"], b"");
    assert!(chat.stderr.starts_with("api · review · continuing (2 messages, "), "{chat:?}");
    let chat = chorusctl_with(home, ["chat", "--name", "review", "--new"], b"");
    assert!(chat.stderr.starts_with("saved the previous conversation as "), "{chat:?}");
    let chat = chorusctl_with(home, ["chat"], b"");
    assert!(chat.stderr.starts_with("api · continuing (1 message, "), "main is as it was: {chat:?}");
    chorusctl(home, ["chat", "--name", "a", "-C", "b"]).expect_failure(2);
    chorusctl(home, ["chat", "--name", "revew"]).expect_failure_with_hint(3);
}

#[test]
fn it_stays_where_it_began_and_shows_nothing_of_others() {
    let fixture = fixture();
    let home = &fixture.home;
    run(home, &["conversations", "new", "review"]);
    run(home, &["conversations", "use", "review"]);
    let mut command = home.command(home.bins.chorusctl);
    command.arg("chat");
    let mut chat = InteractiveCommand::on_terminal(&command);
    chat.stdout.wait_for("api · review · new conversation; type /help for commands");
    run(home, &["conversations", "use", "main"]);
    run(home, &["context", "append", "not for the chat"]);
    run(home, &["-C", "review", "context", "append", "news for the chat"]);
    chat.stdout.wait_for("news for the chat");
    fixture.reply("Fine.");
    chat.type_and_wait("how is it?\r", "Fine.");
    let shown = chat.type_and_wait("/show\r", "api · review · 3 messages");
    assert!(!shown.contains("not for the chat"), "{shown}");
    let out = chat.leave_chat("api/review> ");
    assert!(!out.contains("not for the chat"), "{out}");
    assert!(run(home, &["-C", "review", "show"]).contains("how is it?"));
}
