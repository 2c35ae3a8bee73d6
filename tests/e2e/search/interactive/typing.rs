//! Results follow what is typed.

use std::sync::atomic::{AtomicUsize, Ordering};

use chorus_tests::{Gate, InteractiveCommand};
use serde_json::json;

use super::{leave, searches, start, type_until, wait_for_row};
use crate::home;
use crate::search::cli::{hit, result};

#[test]
fn results_appear_while_one_types() {
    let home = home();
    let calls = searches(&home, |mut asked| {
        let is_found = asked.params["query"].as_str().is_some_and(|query| query.contains("redis"));
        asked.send_result(result(if is_found { vec![hit(json!({})), hit(json!({"message": 3}))] } else { vec![] }));
    });
    let mut running = start(&home, &[]);
    type_until(&mut running, "drop red", "no matches");
    let rows = type_until(&mut running, "is", "2 results");
    assert_eq!(
        rows[..6],
        [
            "> drop redis",
            "2 results · api",
            "▸ 9f1c27d4  Why the import drops r… · message 16 · api · mara · 2026-03-02 15:10",
            "    … we drop Redis, because the pool runs dry twice a day …",
            "  9f1c27d4  Why the import drops ro… · message 3 · api · mara · 2026-03-02 15:10",
            "    … we drop Redis, because the pool runs dry twice a day …",
        ]
    );
    assert_eq!(rows[23], "Enter show · ↓ list · Ctrl-R restore · Ctrl-B branch · Esc leave");
    let output = leave(running);
    // The cursor moves over what is empty.
    assert!(output.contains("\u{1b}[0;1mdrop\u{1b}[4;15HRedis\u{1b}[0m,"), "{output:?}");
    let last = calls.of("search").pop().expect("a search");
    assert_eq!(last, json!({"own": true, "query": "drop redis redis*", "limit": 50}));
}

#[test]
fn typing_does_not_wait_and_outdated_answers_are_not_shown() {
    let (home, answers) = (home(), Gate::default());
    let waiting = answers.clone();
    let calls = searches(&home, move |mut asked| {
        let query = asked.params["query"].as_str().unwrap_or_default().to_owned();
        if query == "one one*" {
            waiting.wait();
        }
        asked.send_result(result(vec![hit(json!({"title": query, "snippet": "text", "marks": []}))]));
    });
    let mut running = start(&home, &[]);
    // Pasted, so that it is one change.
    running.type_text("\u{1b}[200~one\u{1b}[201~");
    chorus_tests::wait_until("the first search", chorus_tests::DEADLINE, || {
        (calls.of("search").len() == 1).then_some(())
    });
    type_until(&mut running, " two", "> one two");
    let rows = type_until(&mut running, " three", "> one two three");
    assert_eq!(rows[1], "searching …");
    answers.open();
    wait_for_row(&running, "one two three three*");
    let output = leave(running);
    assert!(!output.contains("one one*"), "{output:?}");
    assert_eq!(calls.of("search").len(), 2, "what was typed meanwhile is one search");
}

#[test]
fn filters_of_the_command_line_hold() {
    let home = home();
    let calls = searches(&home, |mut asked| asked.send_result(result(vec![hit(json!({}))])));
    let line = "--agent api -C review --since 7d --role user --tool bash --tag zoo -n 5";
    let mut running = start(&home, &line.split(' ').collect::<Vec<_>>());
    let rows = type_until(&mut running, "x", "1 result");
    assert_eq!(rows[1], "1 result · api · -C review · --since 7d · --tag zoo · --role user · --tool bash");
    leave(running);
    let due = json!({"agent": "api", "conversation": "review", "query": "x", "limit": 5, "since": "7d", "tag": "zoo",
        "role": "user", "tool": "bash"});
    assert_eq!(calls.of("search"), [due]);
}

#[test]
fn a_query_without_a_word_to_find_asks_nothing() {
    let home = home();
    let calls = searches(&home, |mut asked| asked.send_result(result(vec![hit(json!({}))])));
    let mut running = start(&home, &[]);
    type_until(&mut running, "-cache", "add a word to find");
    assert_eq!(calls.of("search").len(), 0);
    type_until(&mut running, " redis", "1 result");
    // Ctrl-U.
    let rows = type_until(&mut running, "\u{15}", "type words to find");
    assert!(rows[2..23].iter().all(String::is_empty), "{rows:#?}");
    leave(running);
}

#[test]
fn errors_are_shown_and_typing_goes_on() {
    let (home, asked_before) = (home(), AtomicUsize::new(0));
    searches(&home, move |mut asked| match asked_before.fetch_add(1, Ordering::Relaxed) {
        0 => asked.send_error("invalid_params", "no date: \u{1b}[2Jsoon", "for example 7d"),
        1 => asked.disconnect(),
        _ => asked.send_result(result(vec![hit(json!({}))])),
    });
    let mut running = start(&home, &[]);
    let rows = type_until(&mut running, "a", "error: no date");
    assert_eq!(rows[2..4], ["error: no date: ␛[2Jsoon", "hint: for example 7d"]);
    type_until(&mut running, "b", "error: lost connection to the daemon");
    let rows = type_until(&mut running, "c", "1 result");
    assert!(!rows.iter().any(|row| row.contains("error")), "{rows:#?}");
    leave(running);
}

#[test]
fn progress_and_what_to_try_are_said() {
    let home = home();
    let mut found = result(vec![]);
    found["index"] = json!({"complete": false, "indexed": 964, "total": 1205, "messages": 70});
    searches(&home, move |mut asked| asked.send_result(found.clone()));
    let mut running = start(&home, &["--since", "7d"]);
    type_until(&mut running, "x", "80 % indexed; results may be missing · no matches: try fewer words, fewer filte…");
    leave(running);
}

#[test]
fn a_search_that_cannot_be_interactive_needs_a_query() {
    let home = home();
    let missing = "error: the following required arguments were not provided:\r\n  <QUERY>...";
    let mut running = InteractiveCommand::on_terminal(&super::command(&home, &["--json"]));
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(2), "{output}");
    assert!(output.contains("<QUERY>"), "{output}");
    let piped = chorus_tests::ctl::chorusctl(&home, ["search", "--tag", "x"]);
    assert_eq!((piped.status, &*piped.stdout), (2, ""));
    assert!(piped.stderr.starts_with(&missing.replace('\r', "")), "{}", piped.stderr);
    assert!(!home.path.exists(), "no daemon was started");
}
