//! The screen in all sizes, and what may be written to it.

use chorus_tests::fake_daemon::FakeRequest;
use chorus_tests::{Home, InteractiveCommand};
use serde_json::{Value, json};

use super::{SIZE, command, leave, start_command, type_until};
use crate::home;
use crate::search::cli::{hit, result};
use crate::send::cli::daemon;

const WIDE: &str = "你好世界, the pool ran dry: ";

/// A daemon that finds twenty messages with wide characters, and shows a session whose messages say `said`.
fn finds_many(home: &Home, changes: Value, said: &'static str) {
    let many = move |mut asked: FakeRequest<'_>| match &*asked.method {
        "search" => {
            let hits = (1..=20).map(|number| {
                let mut found = hit(json!({"message": number, "snippet": WIDE.repeat(9), "marks": [[0, 4]]}));
                let fields = found.as_object_mut().expect("an object");
                fields.extend(changes.as_object().expect("an object").clone());
                found
            });
            asked.send_result(result(hits.collect()));
        }
        "session.get" => asked.send_result(session(said)),
        method => panic!("{method} was asked"),
    };
    daemon(home, |asked| panic!("{} was asked", asked.method), many);
}

/// The result of `session.get` with one message.
fn session(said: &str) -> Value {
    let path = format!("{}/../proto/golden/v1/session.get.result.json", env!("CARGO_MANIFEST_DIR"));
    let golden: Value = serde_json::from_slice(&std::fs::read(path).expect("a golden file")).expect("JSON");
    let mut result = golden["result"].clone();
    result["next"] = Value::Null;
    result["messages"] = json!([{"id": "0197a8c2-2e00-7b10-8d44-5a6b7c8d9e0f", "role": "assistant", "content": said,
        "timestamp": "2026-03-02T15:10:04Z", "tool_calls": [{"id": "c", "name": said, "params": {"command": said}}]}]);
    result
}

#[test]
fn all_sizes_show_the_selected_result_and_no_row_is_broken() {
    let home = home();
    finds_many(&home, json!({}), "The preview.");
    let mut running = start_command(&command(&home, &[]));
    type_until(&mut running, "dry", "20 results");
    // To the last result.
    type_until(&mut running, "\t\u{1b}[F", "message 20 ·");
    for (columns, rows) in [(40, 10), (20, 5), (130, 40), (12, 3), (300, 30), (80, 24)] {
        let before = running.stdout.text().len();
        running.resize(columns, rows);
        let sign = "▸ 9f1c27d4";
        let shown = running.wait_for_rows((columns, rows), before, "the result", |shown| {
            shown.iter().any(|row| row.starts_with(sign))
                && (rows < 4 || shown.last().is_some_and(|row| row.ends_with("leave")))
        });
        assert_eq!(shown[0], "> dry", "{shown:#?}");
        let preview = columns >= 160 || rows >= 34;
        if preview {
            running.wait_for_rows((columns, rows), before, "the preview", |shown| {
                shown.iter().any(|row| row.contains("The preview."))
            });
        }
    }
    leave(running);
}

#[test]
fn the_list_scrolls_with_the_selection() {
    let home = home();
    finds_many(&home, json!({}), "");
    let mut running = start_command(&command(&home, &[]));
    type_until(&mut running, "dry", "20 results");
    // Down only enters the list, which moves from there.
    type_until(&mut running, "\u{1b}[B", "r restore");
    running.type_text(&"\u{1b}[B".repeat(10));
    let last = |rows: &[String]| rows[20].starts_with("▸ ") && rows[20].contains("message 11 ·");
    let rows = running.wait_for_rows(SIZE, 0, "message 11", last);
    assert!(rows[2].contains("message 2 ·"), "{rows:#?}");
    running.type_text("\u{1b}[H");
    running.wait_for_rows(SIZE, 0, "message 1", |rows| rows[2].starts_with("▸ ") && rows[2].contains("message 1 ·"));
    // Up from the first goes back to the query.
    type_until(&mut running, "\u{1b}[A", "Ctrl-R restore");
    type_until(&mut running, "!", "> dry!");
    leave(running);
}

#[test]
fn colors_are_left_out_and_emphasis_stays_if_the_user_wants_none() {
    let home = home();
    finds_many(&home, json!({}), "");
    for (no_color, has_color) in [(true, false), (false, true)] {
        let mut command = command(&home, &[]);
        if !no_color {
            command.env_remove("NO_COLOR");
        }
        let mut running = start_command(&command);
        type_until(&mut running, "dry", "20 results");
        let output = leave(running);
        assert_eq!(output.contains("\u{1b}[0;36m9f1c27d4"), has_color, "{output:?}");
        assert!(output.contains("\u{1b}[0;1m你"), "{output:?}");
    }
}

#[test]
fn nothing_that_was_said_controls_the_terminal() {
    const BAD: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}redis\r\n";
    let home = home();
    let changes = json!({
        "agent_name": BAD, "title": BAD, "speaker": BAD, "snippet": BAD, "marks": [[0, 3], [2, 900], [7, 1]],
        "parts": [{"name": BAD, "value": 1.0}],
        "session": {"id": "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604", "short_id": BAD, "session_id": BAD},
    });
    finds_many(&home, changes, BAD);
    let mut running = InteractiveCommand::on_terminal_of(&command(&home, &[]), 200, 24);
    let size = (200, 24);
    running.wait_for_rows(size, 0, "the screen", |rows| rows[1].starts_with("type"));
    // What is pasted is data, too.
    running.type_text("\u{1b}[200~x\u{9b}31m\u{202e}\u{7}y\u{1b}[201~");
    running.wait_for_rows(size, 0, "the preview", |rows| {
        rows.iter().any(|row| row.split('│').nth(1).is_some_and(|preview| preview.contains("owned")))
    });
    let output = leave(running);
    assert!(output.contains("␛]0;owned␇"), "{output:?}");
    for bad in ["\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!output.contains(bad), "{bad:?} in {output:?}");
    }
    // Once when it is entered, once when it is first drawn.
    assert_eq!(output.matches("\u{1b}[2J").count(), 2, "{output:?}");
}

#[test]
fn scores_are_explained_on_request() {
    let home = home();
    finds_many(&home, json!({"parts": [{"name": "words", "value": 10.25}, {"name": "time", "value": 2.25}]}), "");
    let mut running = start_command(&command(&home, &["--explain"]));
    let rows = type_until(&mut running, "dry", "20 results");
    assert_eq!(rows[1], "20 results · score 12.50 = words 10.25 + time 2.25 · api");
    assert_eq!(rows.len(), usize::from(SIZE.1));
    leave(running);
}
