//! Searches that are refused say what to do.

use chorus_tests::ctl::chorusctl;
use chorus_tests::fake_daemon::start_fake_daemon_with;

use super::refuses;
use crate::home;

#[test]
fn a_query_without_a_word_to_find_is_an_error_before_a_daemon_is_asked() {
    let home = home();
    for (args, error) in [
        (&["search", " "][..], "error: the query is empty\nhint: name words to find: chorusctl search redis\n"),
        (
            &["search", "-cache"],
            "error: the query only excludes words\nhint: add a word to find: chorusctl search redis -cache\n",
        ),
    ] {
        assert_eq!(chorusctl(&home, args).expect_failure_with_hint(2), error);
    }
    assert_eq!(chorusctl(&home, ["search"]).status, 2);
    let json = chorusctl(&home, ["search", "--json", "--", "-cache"]);
    assert!(json.expect_failure_with_hint(2).contains(r#""kind":"usage""#), "{json:?}");
    assert!(!home.path.exists(), "no daemon was started");
}

#[test]
fn a_daemon_without_search_is_named_as_older() {
    let home = home();
    start_fake_daemon_with(&home, |mut asked| match &*asked.method {
        "hello" => asked.disconnect(),
        _ => asked.send_unknown_method(),
    });
    let older = chorusctl(&home, ["search", "redis"]);
    let due = "error: unknown method \"search\"\nhint: the daemon may be an older version; restart it: chorusctl daemon restart\n";
    assert_eq!(older.expect_failure_with_hint(1), due);
}

#[test]
fn an_error_of_the_daemon_is_printed_with_its_hint() {
    let home = home();
    refuses(&home, "invalid_params", "no date: soon", "for example 7d or 2026-03-02");
    let refused = chorusctl(&home, ["search", "redis", "--since", "soon"]);
    assert_eq!(refused.expect_failure(2), "error: no date: soon\nhint: for example 7d or 2026-03-02\n");
}
