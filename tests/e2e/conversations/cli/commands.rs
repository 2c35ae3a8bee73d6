//! `conversations list`, `new`, `rename`, `close` and `use`.

use chorus_tests::Home;
use chorus_tests::ctl::{self, chorusctl};

use super::{run, with_review};

/// The lines of `conversations` on a terminal of 80 columns, without the headings.
fn rows(home: &Home, args: &[&str]) -> Vec<String> {
    let listed = run(home, &[&["conversations", "list"], args].concat());
    listed.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_list_marks_the_one_that_commands_use() {
    let (home, _daemon) = with_review();
    run(&home, &["conversations", "new", "docs", "--title", "The guide"]);
    let listed = run(&home, &["conversations"]);
    let lines: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "STATE", "MESSAGES", "ACTIVITY", "TITLE"], "{listed}");
    assert_eq!(lines[1][..4], ["*", "main", "active", "2"], "{listed}");
    assert_eq!(lines[2], ["docs", "idle", "The", "guide"], "{listed}");
    assert_eq!(lines[3][..3], ["review", "active", "1"], "{listed}");
    assert_eq!(run(&home, &["conversations", "use", "review"]), "using review\n");
    assert!(rows(&home, &[])[2].starts_with("*  review"), "{:?}", rows(&home, &[]));
    // -C and the environment go before it; the field of the JSON is what was set.
    assert!(rows(&home, &["-C", "docs"])[1].starts_with("*  docs"), "{:?}", rows(&home, &["-C", "docs"]));
    let json = chorusctl(&home, ["-C", "docs", "conversations", "--json"]).expect_json();
    assert_eq!(json["conversations"][2]["selected"], true, "{json}");
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUS_CONVERSATION", "main").arg("conversations");
    let listed = ctl::run_command(command, b"").expect_success();
    assert!(listed.contains("\n*  main") && listed.matches('*').count() == 1, "{listed}");
    assert_eq!(run(&home, &["conversations", "use", "main"]), "using main\n");
    let json = chorusctl(&home, ["conversations", "list", "--json"]).expect_json();
    assert_eq!((&json["agent_name"], &json["total"], &json["next"]), (&"api".into(), &3.into(), &().into()), "{json}");
    let jsonl = run(&home, &["conversations", "list", "--format", "jsonl"]);
    assert_eq!(jsonl.lines().count(), 3, "{jsonl}");
}

#[test]
fn a_new_one_is_empty_and_a_name_is_taken_once() {
    let (home, _daemon) = with_review();
    let created = run(&home, &["conversations", "new", "docs"]);
    let hint = "  use it: chorusctl -C docs chat, or: chorusctl conversations use docs\n";
    assert_eq!(created, format!("created conversation docs\n{hint}"));
    let shown = chorusctl(&home, ["-C", "docs", "show"]);
    assert_eq!((shown.status, shown.stderr.lines().next()), (0, Some("the conversation docs of api is empty")));
    for taken in ["docs", "main"] {
        chorusctl(&home, ["conversations", "new", taken]).expect_failure_with_hint(7);
    }
    chorusctl(&home, ["conversations", "new", "No Name"]).expect_failure_with_hint(2);
    run(&home, &["conversations", "close", "docs"]);
    assert!(run(&home, &["conversations", "new", "docs"]).starts_with("opened docs again\n"));
}

#[test]
fn another_name_keeps_the_messages() {
    let (home, _daemon) = with_review();
    assert_eq!(run(&home, &["conversations", "rename", "review", "parser"]), "renamed review to parser\n");
    assert!(run(&home, &["-C", "parser", "show"]).contains("please review the parser"));
    chorusctl(&home, ["-C", "review", "show"]).expect_failure(3);
    chorusctl(&home, ["conversations", "rename", "main", "other"]).expect_failure_with_hint(6);
    chorusctl(&home, ["conversations", "rename", "parser", "main"]).expect_failure_with_hint(7);
}

#[test]
fn a_closed_one_is_saved_and_says_how_to_continue_it() {
    let (home, _daemon) = with_review();
    run(&home, &["conversations", "use", "review"]);
    let closed = run(&home, &["conversations", "close"]);
    let lines: Vec<&str> = closed.lines().collect();
    assert_eq!(lines[0], "closed review");
    assert_eq!(lines[1], "commands use main again");
    assert!(lines[2].starts_with("saved ") && lines[2].ends_with(", 1 message)"), "{closed}");
    let command = lines[3].strip_prefix("  continue it: chorusctl ").expect("a command");
    assert!(command.starts_with("-C review restore "), "{closed}");
    // It was the one that commands used.
    assert!(rows(&home, &[])[0].starts_with("*  main"), "{:?}", rows(&home, &[]));
    assert_eq!(rows(&home, &[]).len(), 1);
    assert!(rows(&home, &["--all"])[1].contains("review  closed"), "{:?}", rows(&home, &["--all"]));
    run(&home, &command.split(' ').collect::<Vec<_>>());
    assert!(run(&home, &["-C", "review", "show"]).contains("please review the parser"));
    assert!(rows(&home, &[])[1].contains("review  active"));
    // What has no messages is closed without a session.
    run(&home, &["conversations", "new", "empty"]);
    assert_eq!(run(&home, &["-C", "empty", "conversations", "close"]), "closed empty\n");
    chorusctl(&home, ["conversations", "close"]).expect_failure_with_hint(6);
}

#[test]
fn words_of_a_title_or_a_name_find_the_sessions_of_one_that_is_closed() {
    let (home, _daemon) = with_review();
    run(&home, &["save", "the login"]);
    run(&home, &["conversations", "new", "second", "--title", "Audit of the Größe"]);
    run(&home, &["-C", "second", "context", "append", "is it sound?"]);
    run(&home, &["conversations", "rename", "review", "parser"]);
    for closed in ["second", "parser"] {
        run(&home, &["conversations", "close", closed]);
    }
    run(&home, &["conversations", "rename", "parser", "reader"]);
    let found = |words: &[&str]| {
        let listed = chorusctl(&home, [&["history"], words, &["--json"]].concat()).expect_json();
        let sessions = listed["sessions"].as_array().expect("a list").clone();
        sessions.iter().map(|one| one["conversation"]["name"].as_str().unwrap_or("main").to_owned()).collect::<Vec<_>>()
    };
    for words in [&["AUDIT"][..], &["größe"], &["second"], &["audit", "second"], &["--all-agents", "audit"]] {
        assert_eq!(found(words), ["second"], "{words:?}");
    }
    // Both the name at the save and the one that it has now.
    assert_eq!((found(&["parser"]), found(&["reader"])), (vec!["parser".to_owned()], vec!["parser".to_owned()]));
    assert_eq!(found(&["login"]), ["main"]);
    assert_eq!(found(&["audit", "reader"]), Vec::<String>::new());
}

#[test]
fn names_are_completed() {
    let (home, _daemon) = with_review();
    run(&home, &["conversations", "new", "retries"]);
    let offered = |words: &[&str]| {
        let mut command = home.command(home.bins.chorusctl);
        command.env("CHORUSCTL_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        command.args(["--", "chorusctl"]).args(words);
        let names = ctl::run_command(command, b"").expect_success();
        names.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // A busy daemon may leave the names out once.
    let named = |words: &[&str]| {
        let found = || Some(offered(words)).filter(|names| !names.is_empty());
        chorus_tests::wait_until("names", chorus_tests::DEADLINE, found)
    };
    for words in [
        &["-C", "re"][..],
        &["show", "--conversation", "re"],
        &["chat", "--name", "re"],
        &["conversations", "use", "re"],
        &["conversations", "rename", "re"],
    ] {
        assert_eq!(named(words), ["retries", "review"], "{words:?}");
    }
    assert_eq!(named(&["show", "@r"]), ["@review"], "only live ones");
    run(&home, &["conversations", "close", "retries"]);
    assert_eq!(named(&["conversations", "close", ""]), ["review"], "only those that can be closed");
    assert_eq!(offered(&["conversations", "new", "re"]), Vec::<String>::new());
}
