//! Where the name of a conversation is shown.

use chorus_tests::ctl::chorusctl;
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::interactive::InteractiveCommand;
use chorus_tests::{DEADLINE, Fixture, wait_until};

use super::{run, with_review};
use crate::home;

#[test]
fn the_history_has_a_column_if_a_session_is_of_another_than_main() {
    let (home, _daemon) = with_review();
    run(&home, &["save", "the login"]);
    let plain = run(&home, &["history"]);
    assert!(!plain.contains("CONVERSATION"), "{plain}");
    run(&home, &["-C", "review", "save", "the parser"]);
    let both = run(&home, &["history"]);
    let lines: Vec<&str> = both.lines().collect();
    assert!(lines[0].contains("  CONVERSATION  "), "{both}");
    assert!(lines[1].contains("  review ") && lines[1].ends_with("the parser"), "{both}");
    assert!(!lines[2].contains("main") && lines[2].ends_with("the login"), "{both}");
    assert!(run(&home, &["history", "--long"]).contains(" · api (review) · "));
    let named = run(&home, &["history", "review"]);
    assert!(named.contains("the parser") && !named.contains("the login"), "found by the conversation: {named}");
    let of_one = run(&home, &["history", "-C", "review"]);
    assert!(of_one.contains("the parser") && !of_one.contains("the login"), "{of_one}");
    let of_main = run(&home, &["history", "-C", "main"]);
    assert!(!of_main.contains("the parser") && of_main.contains("the login"), "{of_main}");
    // Only the option narrows it.
    run(&home, &["conversations", "use", "review"]);
    assert!(run(&home, &["history"]).contains("the login"));
    let next = run(&home, &["-C", "main", "history", "-n", "1"]);
    assert!(!next.contains("next page"), "{next}");
    assert!(!run(&home, &["-C", "main", "show", "latest"]).contains("\n  conversation  "));
    let session = run(&home, &["-C", "review", "show", "latest"]);
    assert!(session.contains("conversation        review"), "{session}");
}

#[test]
fn the_live_one_is_named_unless_it_is_main() {
    let (home, _daemon) = with_review();
    let shown = run(&home, &["-C", "review", "show"]);
    assert!(shown.starts_with("api · review · 1 message, "), "{shown}");
    assert!(run(&home, &["show"]).starts_with("api · 2 messages, "));
    let json = chorusctl(&home, ["-C", "review", "show", "--json"]).expect_json();
    assert_eq!(json["conversation"]["name"], "review");
    let events = run(&home, &["events"]);
    let of_review: Vec<&str> = events.lines().filter(|line| line.contains("  api (review)  ")).collect();
    assert_eq!(of_review.len(), 1, "{events}");
    assert!(of_review[0].ends_with("added 1 message (1 total)"), "{events}");
    assert!(events.contains("  api  added 1 message (2 total)"), "{events}");
}

#[test]
fn the_status_has_the_others_below_their_agent() {
    let (home, _daemon) = with_review();
    let status = run(&home, &["status"]);
    let at = |what: &str| status.lines().position(|line| line.starts_with(what)).unwrap_or_else(|| panic!("{status}"));
    assert_eq!(at("  review  active"), at("api ") + 1, "{status}");
    run(&home, &["context", "clear", "--yes"]);
    let without_main = run(&home, &["status"]);
    assert!(without_main.contains("  review  active") && !without_main.contains("and 1 active"), "{without_main}");
    let one = run(&home, &["status", "api"]);
    assert!(one.contains("also live           review: 1 message, "), "{one}");
    run(&home, &["-C", "review", "context", "clear", "--yes"]);
    assert!(!run(&home, &["status"]).contains("review"));
}

#[test]
fn an_approval_says_which_conversation_asks() {
    const ASKING: &str = "[permissions.asking]\nask = [\"tool:list_models:.*\"]\nallow = [\".*\"]\nbash = \"whole\"\n";
    let fixture = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).tables(ASKING).start();
    fixture.create_agent("api", Some("asking"));
    let models = fixture.models().anthropic();
    models.queue(crate::approvals::calls_of(1));
    models.queue(chorus_tests::model_server::Response::text(["Done."]));
    let home = &fixture.home;
    let mut command = home.command(home.bins.chorusctl);
    command.args(["-C", "review", "send", "Which models are there?"]);
    let turn = std::thread::spawn(move || chorus_tests::ctl::run_command(command, b""));
    let listed =
        wait_until("the approval", DEADLINE, || Some(run(home, &["approvals"])).filter(|listed| !listed.is_empty()));
    assert!(listed.contains("  api (review) wants to "), "{listed}");
    let id = listed.split_whitespace().next().expect("an id");
    run(home, &["approvals", "approve", id]);
    let sent = turn.join().expect("the turn");
    assert!(sent.stderr.contains("  api (review) wants to ") && sent.stdout == "Done.\n", "{sent:?}");
    assert!(run(home, &["events"]).lines().any(|line| line.contains("api (review)  asks for approval")));
}

#[test]
fn a_chat_is_listed_where_it_is_open() {
    let (home, _daemon) = with_review();
    let mut command = home.command(home.bins.chorusctl);
    command.arg("chat");
    let chat = InteractiveCommand::on_terminal(&command);
    chat.stdout.wait_for("api> ");
    let listed = || Some(run(&home, &["conversations"])).filter(|list| list.contains("  pts/"));
    let list = wait_until("the chat in the list", DEADLINE, listed);
    assert!(list.lines().nth(1).is_some_and(|row| row.contains("  main ") && row.contains("  pts/")), "{list}");
    let status = run(&home, &["status"]);
    let agent = status.lines().find(|line| line.starts_with("api ")).unwrap_or_else(|| panic!("{status}"));
    assert!(agent.contains("open in pts/"), "{status}");
    assert!(run(&home, &["status", "api"]).contains("open in             pts/"), "{status}");
    chat.leave_chat("api> ");
    let is_gone = || (!run(&home, &["conversations"]).contains("pts/")).then_some(());
    wait_until("the end of the chat", DEADLINE, is_gone);
}
