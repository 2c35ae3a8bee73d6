//! A reply as it comes, and in its other shapes.

use std::io::Read as _;
use std::process::Stdio;

use chorus_tests::ctl::chorusctl;
use chorus_tests::process::wait_for_exit;
use chorus_tests::{Gate, InteractiveCommand};
use serde_json::{Value, json};

use super::{command, replies, result, started, talks, text};
use crate::home;

#[test]
fn text_is_printed_the_moment_it_comes() {
    let (home, gates) = (home(), [Gate::default(), Gate::default()]);
    let inside = gates.clone();
    let calls = talks(&home, move |mut asked| {
        started(&mut asked);
        text(&mut asked, "one ");
        inside[0].wait();
        text(&mut asked, "two");
        inside[1].wait();
        text(&mut asked, " three");
        replies(&mut asked, "one two three");
    });
    let mut running = InteractiveCommand::piped(command(&home, &["--agent", "atlas", "send", "count", "--key", "k1"]));
    running.stdout.wait_for("one ");
    assert_eq!(running.stdout.text(), "one ");
    gates[0].open();
    running.stdout.wait_for("two");
    assert_eq!(running.stdout.text(), "one two");
    gates[1].open();
    let (status, out, err) = running.wait_for_exit();
    assert_eq!((status.code(), &*out, &*err), (Some(0), "one two three\n", ""));
    assert_eq!(
        calls.of("send"),
        [json!({"agent": "atlas", "conversation": "@", "text": "count", "key": "k1", "stream": true})]
    );
}

#[test]
fn the_result_comes_whole_where_that_is_asked() {
    let home = home();
    talks(&home, |mut asked| {
        started(&mut asked);
        text(&mut asked, "Let me look.");
        asked.send_progress(json!({"tool": {"id": "c", "name": "list_models"}}));
        asked.send_progress(json!({"result": {"id": "c", "name": "list_models", "is_error": false}}));
        asked.send_progress(json!({"invented_later": {"a": 1}}));
        text(&mut asked, "Two.");
        replies(&mut asked, "Two.");
    });
    assert_eq!(chorusctl(&home, ["--json", "send", "how many?"]).expect_json(), result("Two."));
    assert_eq!(chorusctl(&home, ["send", "--no-stream", "how many?"]).expect_success(), "Two.\n");
    assert_eq!(chorusctl(&home, ["send", "how many?"]).expect_success(), "Let me look.\n\nTwo.\n");
    let lines = chorusctl(&home, ["--format", "jsonl", "send", "how many?"]).expect_success();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 6);
    assert_eq!((&lines[1], &lines[5]), (&json!({"text": "Let me look."}), &result("Two.")));
    let lines = chorusctl(&home, ["--format", "jsonl", "send", "--no-stream", "how many?"]).expect_success();
    assert_eq!(lines.lines().count(), 1, "{lines}");
}

#[test]
fn what_is_no_text_goes_to_standard_error() {
    let home = home();
    talks(&home, |mut asked| {
        asked.send_progress(json!({"queued": {"before": 1}}));
        started(&mut asked);
        asked.send_progress(json!({"thinking": "Hm, "}));
        asked.send_progress(json!({"thinking": "models."}));
        asked.send_progress(json!({"note": "another try in 4 s\u{1b}[2J"}));
        asked.send_progress(json!({"tool": {"id": "c", "name": "list_models"}}));
        asked.send_progress(json!({"result": {"id": "c", "name": "list_models", "is_error": true}}));
        text(&mut asked, "None.\n");
        replies(&mut asked, "None.\n");
    });
    let said = chorusctl(&home, ["send", "how many?"]);
    let notes = "waiting for 1 earlier message\nanother try in 4 s␛[2J\n→ list_models\n✗ list_models failed\n";
    assert_eq!((said.status, &*said.stdout, &*said.stderr), (0, "None.\n", notes));
    let said = chorusctl(&home, ["send", "--thinking", "how many?"]);
    assert_eq!(said.stderr, notes.replacen('\n', "\nHm, models.\n", 1));
    let said = chorusctl(&home, ["--quiet", "send", "how many?"]);
    assert_eq!((&*said.stdout, &*said.stderr), ("None.\n", ""));
}

#[test]
fn a_reply_that_is_not_streamed_is_printed_all_the_same() {
    let home = home();
    talks(&home, |mut asked| replies(&mut asked, "the first reply"));
    assert_eq!(chorusctl(&home, ["send", "again", "--key", "k"]).expect_success(), "the first reply\n");
}

#[test]
fn an_empty_reply_is_told() {
    let home = home();
    talks(&home, |mut asked| replies(&mut asked, ""));
    let said = chorusctl(&home, ["send", "say nothing"]);
    assert_eq!((said.status, &*said.stdout, &*said.stderr), (0, "", "(empty reply)\n"));
}

/// `chorusctl send … | head`.
#[test]
fn a_reader_that_leaves_early_stops_neither_the_turn_nor_is_it_a_failure() {
    let (home, left, over) = (home(), Gate::default(), Gate::default());
    let (inside, ended) = (left.clone(), over.clone());
    let calls = talks(&home, move |mut asked| {
        started(&mut asked);
        text(&mut asked, "one\n");
        inside.wait();
        text(&mut asked, "two\n");
        text(&mut asked, "three\n");
        replies(&mut asked, "one\ntwo\nthree\n");
        ended.open();
    });
    let mut head = command(&home, &["send", "count"]);
    let mut child = head.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut line = [0; 4];
    stdout.read_exact(&mut line).expect("a line");
    drop(stdout);
    left.open();
    let status = wait_for_exit(&mut child, "chorusctl");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
    assert_eq!((status.code(), &*said), (Some(0), ""));
    over.wait();
    assert!(calls.of("send.cancel").is_empty());
}

#[test]
fn a_reply_cannot_steer_the_terminal() {
    let home = home();
    talks(&home, |mut asked| {
        started(&mut asked);
        text(&mut asked, "\u{1b}]0;owned\u{7}a\r");
        asked.send_progress(json!({"thinking": "\u{1b}[2J"}));
        asked.send_progress(json!({"note": "a note"}));
        text(&mut asked, "\nb");
        replies(&mut asked, "");
    });
    let mut at_terminal = InteractiveCommand::on_terminal(&command(&home, &["send", "--thinking", "x"]));
    let (status, shown, _) = at_terminal.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{shown}");
    // The line with the text that is not complete is erased and drawn faint by chorusctl itself.
    let own = ["\u{1b}[K", "\u{1b}[2m", "\u{1b}[0m"].iter().fold(shown.clone(), |text, code| text.replace(code, ""));
    assert!(!own.contains(['\u{1b}', '\u{7}']) && own.contains("␛]0;owned␇a"), "{shown:?}");
    assert!(shown.contains("\r\na note\r\n"), "a note has a line of its own: {shown:?}");
    let piped = chorusctl(&home, ["send", "x"]).expect_success();
    assert_eq!(piped, "\u{1b}]0;owned\u{7}a\r\nb\n", "whoever has it in a file wants what was said");
}
