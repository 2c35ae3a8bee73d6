//! Words that exclude others look like options and need no quotes.

use chorus_tests::ctl::chorusctl;

use super::{finds, result};
use crate::home;

#[test]
fn a_word_with_a_hyphen_needs_no_quotes() {
    let home = home();
    let calls = finds(&home, result(vec![]));
    for args in [
        &["search", "redis", "-cache"][..],
        &["search", "redis -cache"],
        &["search", "redis", "--", "-cache"],
        &["search", "-cache", "redis", "--quiet"],
        &["--agent", "api", "search", "redis", "-nginx", "-hash", "-n", "5"],
        &["search", "redis", "--", "-C", "--json"],
        &["search", "redis", "-\"connection pool\""],
    ] {
        chorusctl(&home, args).expect_success();
    }
    let queries: Vec<String> =
        calls.of("search").iter().map(|params| params["query"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        queries,
        [
            "redis -cache",
            "redis -cache",
            "redis -cache",
            "redis -cache",
            "redis -nginx -hash",
            "redis -C --json",
            "redis -\"connection pool\"",
        ]
    );
    assert_eq!(calls.of("search")[4]["limit"], 5);
}

#[test]
fn options_that_do_not_exist_are_still_refused() {
    let home = home();
    for args in [&["search", "redis", "--cache"][..], &["search", "redis", "-x"], &["search", "redis", "--tag", "-x"]] {
        let output = chorusctl(&home, args);
        assert_eq!((output.status, &*output.stdout), (2, ""), "{args:?}");
        assert!(output.stderr.starts_with("error: "), "{output:?}");
    }
    let help = chorusctl(&home, ["search", "--help"]).expect_success();
    assert!(help.contains("chorusctl search redis -cache") && help.contains("Everything after `--`"), "{help}");
    assert_eq!(chorusctl(&home, ["search", "-h"]).status, 0);
}
