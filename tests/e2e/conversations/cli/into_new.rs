//! `--as-conversation`: a saved conversation is continued beside the live one.

use chorus_tests::ctl::chorusctl;

use super::{run, with_review};

#[test]
fn the_live_one_stays_as_it_is_and_the_text_says_where_the_saved_one_went() {
    let (home, _daemon) = with_review();
    run(&home, &["save", "the login"]);
    run(&home, &["-C", "review", "save", "the parser"]);
    run(&home, &["context", "append", "unsaved"]);
    let restored = run(&home, &["restore", "the-parser", "--as-conversation", "again"]);
    assert!(
        restored.starts_with("restored ") && restored.contains(" into the new conversation again: 1 message\n"),
        "{restored}"
    );
    let resumed = run(&home, &["resume", "the-login", "--as-conversation", "short"]);
    assert!(
        resumed.starts_with("resumed ")
            && resumed.lines().next().is_some_and(|line| line.ends_with(" into the new conversation short"))
    );
    let branched = run(&home, &["session", "branch", "the-login", "--at", "1", "--as-conversation", "first"]);
    let there = "  continue there: chorusctl -C first chat\n";
    assert!(branched.ends_with(&format!(" at message 1 of 2 into the new conversation first\n{there}")), "{branched}");
    for (said, name) in [(&restored, "again"), (&resumed, "short")] {
        assert!(said.ends_with(&format!("  continue there: chorusctl -C {name} chat\n")), "{said}");
    }
    let merged = run(&home, &["session", "merge", "the-login", "the-parser", "--as-conversation", "both"]);
    assert!(merged.contains(" into the new conversation both: "), "{merged}");
    assert!(merged.contains("  continue there: chorusctl -C both chat\n"), "{merged}");
    assert!(run(&home, &["show"]).starts_with("api · 3 messages, "));
    for (name, said) in [("again", "please review"), ("first", "the login is slow"), ("both", "please review")] {
        assert!(run(&home, &["-C", name, "show"]).contains(said), "{name}");
    }
    // Nothing is put over another one.
    for verb in [&["restore"][..], &["resume"], &["session", "branch"]] {
        let taken = chorusctl(&home, [verb, &["the-login", "--as-conversation", "first"]].concat());
        taken.expect_failure_with_hint(7);
    }
}
