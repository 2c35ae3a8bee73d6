//! The hits on a terminal of 80x24.

use chorus_tests::screen::Screen;
use chorus_tests::{Home, InteractiveCommand};
use serde_json::{Value, json};

use super::{finds, hit, result};
use crate::home;

/// Runs `chorusctl search redis` on a terminal; returns what it wrote, with escape sequences.
fn written(home: &Home, args: &[&str]) -> String {
    let mut command = home.command(home.bins.chorusctl);
    command.env_remove("NO_COLOR").env("PAGER", "sed s/^/P:/").args(["search", "redis"]).args(args);
    let (status, shown, _) = InteractiveCommand::on_terminal_of(&command, 80, 24).wait_for_exit();
    assert_eq!(status.code(), Some(0), "{shown}");
    shown
}

/// The rows of the screen.
fn rows(home: &Home) -> Vec<String> {
    let mut command = home.command(home.bins.chorusctl);
    command.args(["search", "redis"]);
    let screen = Screen::of(&command, 80, 24, &[], str::to_owned);
    screen.text().lines().map(str::to_owned).collect()
}

/// Ten hits with texts of one line, as many as are shown without an option.
fn ten() -> Vec<Value> {
    (1..=10)
        .map(|number| hit(json!({"message": number, "title": "A title that is too long for its line ".repeat(3)})))
        .collect()
}

#[test]
fn found_words_are_bold() {
    let home = home();
    finds(&home, result(vec![hit(json!({"snippet": "größer: Redis ist weg", "marks": [[8, 13]]}))]));
    let shown = written(&home, &[]);
    assert!(shown.contains("    größer: \u{1b}[1mRedis\u{1b}[0m ist weg\r\n"), "{shown:?}");
    let plain = written(&home, &["--color", "never"]);
    assert!(plain.contains("    größer: Redis ist weg\r\n") && !plain.contains('\u{1b}'), "{plain:?}");
}

#[test]
fn ten_hits_and_the_hint_fit_on_the_screen() {
    let home = home();
    finds(&home, result(ten()));
    let rows = rows(&home);
    assert!(rows.len() <= 23, "{rows:#?}");
    assert!(rows.iter().all(|row| row.chars().count() <= 80), "{rows:#?}");
    for (number, pair) in (1..).zip(rows[..20].chunks(2)) {
        assert!(pair[0].starts_with("9f1c27d4  A title that is too "), "{rows:#?}");
        assert!(pair[0].ends_with(&format!("… · message {number} · mara · 2026-03-02 15:10")), "{rows:#?}");
        assert_eq!(pair[1], "    … we drop Redis, because the pool runs dry twice a day …");
    }
    assert!(rows[20].starts_with("hint: show the first result: `chorusctl show "), "{rows:#?}");
}

#[test]
fn a_long_text_takes_two_lines_with_the_found_word() {
    let home = home();
    let text = format!("{}Redis is gone {}", "before ".repeat(40), "after ".repeat(40));
    finds(&home, result(vec![hit(json!({"snippet": text, "marks": [[280, 285]]}))]));
    let rows = rows(&home);
    assert!(rows[1].starts_with("    … ") && rows[2].ends_with('…'), "{rows:#?}");
    assert!(rows[1..3].iter().any(|row| row.contains("Redis is gone")), "{rows:#?}");
    assert!(rows[3].starts_with("hint: "), "{rows:#?}");
}

#[test]
fn hits_that_do_not_fit_are_paged_and_the_hint_comes_after_them() {
    let home = home();
    let found = [ten(), ten()].concat();
    finds(&home, result(found));
    let shown = written(&home, &["-n", "20"]);
    let hint = shown.find("hint:").expect("a hint");
    assert!(shown.matches("P:").count() >= 40 && shown.rfind("P:") < Some(hint), "{shown}");
}

#[test]
fn nothing_that_was_said_controls_the_terminal() {
    let home = home();
    let bad = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}redis\r\n";
    let conversation = json!({"id": "0197a8c2-2e00-7b10-8d44-5a6b7c8d9e0f", "name": bad});
    let hostile = hit(json!({
        "agent_name": bad, "conversation": conversation, "title": bad, "speaker": bad, "snippet": bad,
        "marks": [[0, 3], [2, 900], [7, 1]], "parts": [{"name": bad, "value": 1.0}],
        "session": {"id": "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604", "short_id": bad, "session_id": bad},
    }));
    let mut found = result(vec![hostile]);
    found["warnings"] = json!([bad]);
    finds(&home, found);
    let shown = written(&home, &["--color", "never"]);
    let unsafe_characters: String =
        shown.chars().filter(|c| (c.is_control() && !matches!(c, '\r' | '\n')) || *c == '\u{202e}').collect();
    assert_eq!(unsafe_characters, "", "{shown:?}");
    let json = written(&home, &["--json"]);
    assert!(!json.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{json:?}");
}
