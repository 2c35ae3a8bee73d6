//! What tasks print, however they do.

use std::fs;

use chorus_proto::methods::tasks::{Logs, LogsParams, LogsResult, TaskStatus};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::DEADLINE;
use chorus_tests::client_ext::expect_error_kind;
use chorus_tests::process::peak_rss;

use super::{GATE, open_gate, start_fixture, start_task, wait_for_end, wait_for_end_within, wait_for_notices};

fn page(client: &mut Client, id: &str, offset: u64, wait: bool) -> LogsResult {
    client.call::<Logs>(&LogsParams { id: id.into(), offset: Some(offset), wait }).expect("tasks.logs")
}

/// All of a log, page by page, to the end of the task.
fn follow(client: &mut Client, id: &str) -> String {
    let (mut text, mut offset) = (String::new(), Some(0));
    while let Some(at) = offset {
        let page = page(client, id, at, true);
        text.push_str(&page.data);
        offset = page.next;
    }
    text
}

#[test]
fn a_flood_of_a_gigabyte_is_kept_in_part_and_told_to_its_end() {
    let fixture = start_fixture();
    let before = peak_rss(fixture.daemon().pid);
    let id = start_task(&fixture, "yes 'a line of a flood' | head -c 1000000000; echo; echo the last words");
    let task = wait_for_end_within(&fixture, &id, DEADLINE * 4);
    assert_eq!((task.status, task.exit_code), (TaskStatus::Completed, Some(0)));
    let length = fs::metadata(&task.log_path).expect("the log").len();
    assert!((64 << 20..65 << 20).contains(&length), "{length}");
    let heard = wait_for_notices(&fixture, "a", 1).pop().expect("a message").content;
    assert!(heard.ends_with("| the last words") && heard.len() < 2000, "{heard}");
    let log = fs::read(&task.log_path).expect("the log");
    let end = String::from_utf8_lossy(&log[log.len() - 70_000..]).into_owned();
    assert!(end.contains(" bytes omitted]\n") && end.ends_with("the last words\n"));
    let grown = peak_rss(fixture.daemon().pid).saturating_sub(before);
    assert!(grown < 48 << 20, "{grown} bytes");
    let mut client = fixture.client();
    assert_eq!(follow(&mut client, &id).len() as u64, length);
}

#[test]
fn nul_escapes_and_broken_characters_are_kept_in_the_file_and_harm_nobody() {
    let fixture = start_fixture();
    let printed = r"printf 'a\0b\033[2J\033]0;t\007c\xff\303'; sleep 0.05; printf '\251\r\nlast\n'";
    let id = start_task(&fixture, printed);
    let task = wait_for_end(&fixture, &id);
    let log = fs::read(&task.log_path).expect("the log");
    assert_eq!(log, b"a\0b\x1b[2J\x1b]0;t\x07c\xff\xc3\xa9\r\nlast\n");
    let mut client = fixture.client();
    assert_eq!(follow(&mut client, &id), "a\0b\u{1b}[2J\u{1b}]0;t\u{7}c\u{fffd}é\r\nlast\n");
    let heard = wait_for_notices(&fixture, "a", 1).pop().expect("a message").content;
    assert!(heard.ends_with("| abc\u{fffd}é\n| last"), "{heard:?}");
}

#[test]
fn odd_children_do_not_hold_up_the_end() {
    let fixture = start_fixture();
    for (command, wanted) in [
        ("cat; echo nothing to read", "nothing to read\n"),
        ("(setsid sleep 6 &) ; echo somebody holds the pipe", "somebody holds the pipe\n"),
        ("(sleep 300 & (sleep 300 &)) ; echo two more", "two more\n"),
        ("exec >&- 2>&-; sleep 0.1", ""),
        ("trap '' TERM HUP INT; echo deaf", "deaf\n"),
    ] {
        let id = start_task(&fixture, command);
        let task = wait_for_end(&fixture, &id);
        assert_eq!(task.exit_code, Some(0), "{command}");
        assert_eq!(fs::read_to_string(&task.log_path).expect("the log"), wanted, "{command}");
    }
}

#[test]
fn pages_wait_for_more_and_end_with_the_task() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    let id = start_task(&fixture, &format!("echo one; {GATE}; echo two"));
    let first = page(&mut client, &id, 0, true);
    assert_eq!((first.data.as_str(), first.next), ("one\n", Some(4)));
    let now = page(&mut client, &id, 4, false);
    assert_eq!((now.data.as_str(), now.next, now.task.status), ("", Some(4), TaskStatus::Running));
    open_gate(&fixture);
    assert_eq!(follow(&mut client, &id), "one\ntwo\n");
    let past = page(&mut client, &id, u64::MAX, true);
    assert_eq!((past.data.as_str(), past.next), ("", None));
    let log = wait_for_end(&fixture, &id).log_path;
    fs::remove_file(&log).expect("the log goes");
    let params = |id: &str| LogsParams { id: id.into(), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Logs>(&params(&id))), ErrorKind::NotFound);
    for unknown in ["t99", "", "t1 ", "../t1", "1"] {
        assert_eq!(expect_error_kind(client.call::<Logs>(&params(unknown))), ErrorKind::NotFound, "{unknown:?}");
    }
}
