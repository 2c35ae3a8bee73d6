//! Which conversation a command concerns, and when it is created.

use chorus_tests::ctl::{self, chorusctl, chorusctl_with};
use chorus_tests::fixture::ANTHROPIC_MODEL;
use chorus_tests::{Daemon, Fixture, Home};

use super::{run, with_review};
use crate::home;

/// The names of the agent's conversations.
fn names(home: &Home) -> Vec<String> {
    let list = chorusctl(home, ["conversations", "--json"]).expect_json();
    let conversations = list["conversations"].as_array().expect("a list");
    conversations.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn the_first_message_creates_it_and_says_so_once() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let first = chorusctl(&home, ["-C", "review", "context", "append", "hello"]);
    let lines: Vec<_> = first.stderr.lines().collect();
    assert!(lines[0].starts_with("created agent default"), "{first:?}");
    assert_eq!((lines.len(), lines[2]), (3, "created conversation review"), "{first:?}");
    let second = chorusctl(&home, ["context", "append", "again", "--conversation", "review"]);
    assert_eq!((second.status, &*second.stderr), (0, ""));
    assert_eq!(second.stdout, "appended 1 message (2 total)\n");
    assert_eq!(names(&home), ["main", "review"]);
    let quiet = chorusctl(&home, ["-C", "other", "context", "append", "hello", "--quiet"]);
    assert_eq!((quiet.status, &*quiet.stderr), (0, ""));
    let main = run(&home, &["show", "--json"]);
    assert!(!main.contains("hello") && main.contains("\"messages\":[]"), "{main}");
}

#[test]
fn a_name_one_slip_away_from_another_creates_nothing() {
    let (home, _daemon) = with_review();
    for (typed, meant) in [("revew", "review"), ("mian", "main")] {
        let refused = chorusctl(&home, ["-C", typed, "context", "append", "lost"]);
        let said = refused.expect_failure(3);
        let hint = format!("hint: did you mean `{meant}`? To create {typed}: chorusctl conversations new {typed}");
        assert!(said.contains(&hint), "{said}");
    }
    assert_eq!(names(&home), ["main", "review"]);
    // Numbered names are no slips.
    for name in ["fix-1", "fix-2"] {
        run(&home, &["-C", name, "context", "append", "hello"]);
    }
    assert_eq!(names(&home), ["main", "fix-1", "fix-2", "review"]);
}

#[test]
fn what_only_reads_or_changes_creates_nothing() {
    let (home, _daemon) = with_review();
    for args in [
        &["show"][..],
        &["history"],
        &["save"],
        &["undo"],
        &["notes", "add", "a fact"],
        &["context", "compact"],
        &["cancel"],
        &["export", "@"],
    ] {
        let output = chorusctl(&home, [&["-C", "elsewhere"], args].concat());
        assert_eq!(output.status, 3, "{args:?} {output:?}");
    }
    assert_eq!(names(&home), ["main", "review"]);
    // Nor does what needs a session that does not exist.
    for verb in ["restore", "resume"] {
        chorusctl(&home, ["-C", "elsewhere", verb, "nothing-like-it"]).expect_failure(3);
    }
    assert_eq!(names(&home), ["main", "review"]);
}

#[test]
fn a_command_that_uses_no_conversation_refuses_the_option_and_ignores_the_environment() {
    let (home, _daemon) = with_review();
    for (args, command) in [
        (&["status"][..], "status"),
        (&["agent", "show", "api"], "agent show"),
        (&["tasks"], "tasks"),
        (&["conversations", "new", "docs"], "conversations new"),
        (&["session", "import", "run.jsonl"], "session import"),
        (&["usage", "--by", "conversation"], "usage"),
    ] {
        let expected = format!("error: `chorusctl {command}` does not use a conversation; remove -C review\n");
        for args in [[&["-C", "review"], args].concat(), [args, &["--conversation", "review"]].concat()] {
            let refused = chorusctl(&home, args.iter().copied());
            assert_eq!((refused.status, &*refused.stderr), (2, &*expected), "{args:?}");
        }
    }
    let json = chorusctl(&home, ["-C", "review", "status", "--json"]);
    assert!(json.stderr.starts_with("{\"error\":{") && json.stderr.contains("does not use a conversation"), "{json:?}");
    for args in [&["status"][..], &["agent", "show", "api"]] {
        let mut command = home.command(home.bins.chorusctl);
        command.env("CHORUS_CONVERSATION", "elsewhere").args(args);
        ctl::run_command(command, b"").expect_success();
    }
    assert_eq!(names(&home), ["main", "review"]);
}

#[test]
fn the_option_goes_before_the_environment_and_that_before_the_choice() {
    let (home, _daemon) = with_review();
    run(&home, &["conversations", "new", "docs"]);
    run(&home, &["conversations", "use", "review"]);
    assert!(run(&home, &["show"]).contains("please review the parser"));
    let with_env = |args: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.env("CHORUS_CONVERSATION", "main").args(args);
        ctl::run_command(command, b"")
    };
    assert!(with_env(&["show"]).expect_success().contains("only on Mondays"));
    assert!(with_env(&["show", "-C", "review"]).expect_success().contains("please review"));
    let used = with_env(&["conversations", "use", "docs"]);
    assert!(used.stderr.contains("main is still used here: set by CHORUS_CONVERSATION"), "{used:?}");
    run(&home, &["conversations", "use", "main"]);
    assert!(run(&home, &["show"]).contains("only on Mondays"));
}

#[test]
fn every_command_of_a_live_conversation_stays_within_it() {
    let (home, _daemon) = with_review();
    let review = |args: &[&str]| run(&home, &[&["-C", "review"], args].concat());
    review(&["context", "pin", "the parser is in C"]);
    review(&["notes", "add", "--task", "check the tests"]);
    review(&["context", "append", "one more"]);
    review(&["undo"]);
    assert!(review(&["save", "parser", "review"]).starts_with("saved "));
    assert!(review(&["notes"]).contains("check the tests"));
    assert!(!run(&home, &["notes"]).contains("check the tests"));
    assert!(review(&["show"]).contains("please review the parser"));
    // `latest` is the newest of the conversation, and `@` its live one.
    run(&home, &["save", "the login"]);
    assert!(review(&["show", "latest"]).contains("parser-review"));
    assert!(run(&home, &["show", "latest"]).contains("the-login"));
    assert!(review(&["export", "@", "--as", "md"]).contains("please review the parser"));
    assert!(review(&["context", "clear", "--yes"]).starts_with("discarded"));
    assert!(run(&home, &["show"]).contains("only on Mondays"), "main is untouched");
}

#[test]
fn a_selector_with_a_name_is_the_live_conversation_of_that_name() {
    let (home, _daemon) = with_review();
    assert!(run(&home, &["show", "@review"]).contains("please review the parser"));
    assert!(run(&home, &["session", "show", "@review"]).contains("please review the parser"));
    assert!(run(&home, &["export", "@review", "--as", "md"]).contains("please review the parser"));
    assert!(run(&home, &["-C", "review", "show", "@main"]).contains("only on Mondays"));
    assert!(run(&home, &["session", "diff", "@", "@review"]).contains("no common messages"));
    let file = home.temp_dir().join("review.md");
    let exported = run(&home, &["export", "@review", file.to_str().expect("UTF-8")]);
    assert!(exported.starts_with("exported the live conversation review (1 message) to"), "{exported}");
    chorusctl(&home, ["show", "@revew"]).expect_failure_with_hint(3);
}

#[test]
fn messages_are_sent_into_the_conversation_that_is_named() {
    let fixture = Fixture::builder(home()).models().model(ANTHROPIC_MODEL).start();
    let home = &fixture.home;
    fixture.create_agent("api", None);
    fixture.reply("It is fine.");
    let sent = chorusctl(home, ["-C", "review", "send", "is it?"]);
    assert_eq!((&*sent.stdout, sent.stderr.lines().next()), ("It is fine.\n", Some("created conversation review")));
    fixture.reply("Yes.");
    chorusctl_with(home, ["chat", "--name", "review"], b"sure?\n").expect_success();
    assert!(run(home, &["-C", "review", "show"]).contains("· 4 messages"));
    assert!(run(home, &["show", "--json"]).contains("\"messages\":[]"));
}
