//! `session diff`: where two conversations part.

use std::fs;
use std::io::Write as _;

use chorus_proto::ErrorKind;
use chorus_proto::methods::session_branching::{Diff, DiffParams, Side};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::{chorusctl, chorusctl_with};

use super::{diff, parted, say};
use crate::home;

#[test]
fn both_lines_are_shown_from_the_first_message_that_differs() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (one, other) = parted(&mut client, &["Keep them.", "Done."], &["Drop them."]);
    let found = diff(&mut client, &one, &other);
    let lines: Vec<_> =
        found.lines.iter().map(|line| (line.side, line.number, line.message.content.as_str())).collect();
    let expected = [(Side::A, 3, "Keep them."), (Side::A, 4, "Done."), (Side::B, 3, "Drop them.")];
    assert_eq!((found.common, &lines[..], found.next), (2, &expected[..], None));
    let same = diff(&mut client, &one, &one);
    assert_eq!((same.common, same.lines.len()), (4, 0));

    let text = chorusctl(&home, ["session", "diff", &one.short_id, &other.short_id]).expect_success();
    assert!(
        text.starts_with("--- ") && text.contains("\nthe first 2 messages are the same\n@@ -3 user @@\n- Keep them.\n"),
        "{text}"
    );
    assert!(text.ends_with("@@ +3 user @@\n+ Drop them.\n"), "{text}");
    let value = chorusctl(&home, ["session", "diff", &one.short_id, &other.short_id, "--json"]).expect_json();
    assert_eq!((value["common"].as_u64(), value["lines"].as_array().map(Vec::len)), (Some(2), Some(3)));
}

#[test]
fn ids_and_times_that_an_import_gives_anew_make_no_difference() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    say(&mut client, &["one", "two"]);
    let first = client.save("a", "first");
    let lines = "{\"role\":\"user\",\"content\":\"one\"}\n{\"role\":\"assistant\",\"content\":\"two\"}\n{\"role\":\"user\",\"content\":\"three\"}\n";
    chorusctl_with(&home, ["context", "clear", "--yes"], b"").expect_success();
    chorusctl_with(&home, ["context", "append", "--jsonl"], lines.as_bytes()).expect_success();
    let second = client.save("a", "again");
    let found = diff(&mut client, &first, &second);
    assert_eq!((found.common, found.lines.len(), found.lines[0].side), (2, 1, Side::B));
}

#[test]
fn long_lines_are_capped_with_a_hint_and_come_in_pages() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let texts: Vec<String> = (0..30).map(|n| format!("line {n}\n{}", "more\n".repeat(20))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (one, other) = parted(&mut client, &texts, &["Short."]);
    let output = chorusctl(&home, ["session", "diff", &one.short_id, &other.short_id]);
    assert!(
        output.stderr.contains("20 more messages") && output.stderr.contains("hint: show everything: --all"),
        "{}",
        output.stderr
    );
    let text = output.expect_success();
    assert_eq!((text.matches("@@ -").count(), text.matches("@@ +").count()), (10, 1));
    assert!(text.contains("- … 13 more lines"), "{text}");
    let whole = chorusctl(&home, ["session", "diff", &one.short_id, &other.short_id, "--all"]).expect_success();
    assert_eq!((whole.matches("@@ -").count(), whole.matches("- more").count()), (30, 600));
    let mut offset = Some(0);
    let mut numbers = Vec::new();
    while let Some(at) = offset {
        let (a, b) = (one.short_id.clone(), other.short_id.clone());
        let params =
            DiffParams { agent: Some("a".into()), a, b, offset: Some(at), limit: Some(7), ..Default::default() };
        let page = client.call::<Diff>(&params).expect("a page");
        numbers.extend(page.lines.iter().map(|line| (line.side, line.number)));
        offset = page.next;
    }
    let expected: Vec<_> = (3..=32).map(|n| (Side::A, n)).chain([(Side::B, 3)]).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn damaged_files_are_named() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (one, other) = parted(&mut client, &["Keep them."], &["Drop them."]);
    let whole = fs::read_to_string(&other.file_path).expect("the file");
    // Reformatted by hand it is the same session.
    let value: serde_json::Value = serde_json::from_str(&whole).expect("JSON");
    fs::write(&other.file_path, serde_json::to_string_pretty(&value).expect("JSON")).expect("written");
    assert_eq!(diff(&mut client, &one, &other).common, 2);
    let params = DiffParams {
        agent: Some("a".into()),
        a: one.short_id.clone(),
        b: other.short_id.clone(),
        ..Default::default()
    };
    fs::write(&other.file_path, &whole[..whole.len() - 30]).expect("written");
    assert_eq!(expect_error_kind(client.call::<Diff>(&params)), ErrorKind::CorruptSession);
    fs::remove_file(&other.file_path).expect("removed");
    assert_eq!(expect_error_kind(client.call::<Diff>(&params)), ErrorKind::SessionNotFound);
}

#[test]
fn huge_sessions_are_compared_message_by_message() {
    // An index that reads the sessions at the same time would be measured, too.
    let home = home().without_index();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let (one, other) = parted(&mut client, &["Keep them."], &["Drop them."]);
    // 60 MB each: thousands of messages of some size before the one that differs.
    for (session, last) in [(&one, "Keep them."), (&other, "Drop them.")] {
        let text = fs::read_to_string(&session.file_path).expect("the file");
        let (head, _) = text.split_once("  \"messages\": [\n").expect("the layout");
        let said = format!("\"message_count\": {}", session.header.message_count);
        let mut file = std::io::BufWriter::new(fs::File::create(&session.file_path).expect("a file"));
        file.write_all(head.replace(&said, "\"message_count\": 3001").as_bytes()).expect("written");
        file.write_all(b"  \"messages\": [\n").expect("written");
        for n in 0..=3000 {
            let content = if n == 3000 { last.to_owned() } else { "x".repeat(20_000) };
            let end = if n == 3000 { "\n" } else { ",\n" };
            write!(file, "    {{\"id\":\"{n}\",\"role\":\"user\",\"content\":\"{content}\",\"timestamp\":\"2026-02-12T09:00:00Z\"}}{end}")
                .expect("written");
        }
        file.write_all(b"  ]\n}\n").expect("written");
    }
    let before = daemon.memory();
    let found = diff(&mut client, &one, &other);
    assert_eq!((found.common, found.lines.len()), (3000, 2));
    let grown = daemon.memory().saturating_sub(before);
    assert!(grown < 30 << 20, "{grown} bytes more for two files of 60 MB");
}
