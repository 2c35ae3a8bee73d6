//! A copy that is killed continues at the next call.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;

use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, process, wait_until};

use rustix::process::Signal;

use super::{CopiedHome, assert_same, rows};

/// Kills copies after more and more of their progress, until one is complete. Returns how many were killed before that.
fn copy_and_kill(home: &CopiedHome, to: &str) -> usize {
    let is_complete = || home.config().contains(&format!("kind = \"{to}\""));
    for (killed, reports) in (1..).step_by(5).enumerate() {
        let mut command = home.home.command(home.home.bins.chorusd);
        command.args(["copy-store", "--to", to]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if to == "postgres" {
            command.arg("--url-file").arg(home.url_file());
        }
        let mut child = command.spawn().expect("a copy");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let progress = lines.map_while(Result::ok).filter(|line| line.contains("\"phase\"")).take(reports).count();
        if progress < reports {
            let ended = child.wait_with_output().expect("the end");
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        } else {
            process::kill(child.id());
            wait_until("a killed copy", DEADLINE, || child.try_wait().expect("a status"));
        }
        if is_complete() {
            return killed;
        }
    }
    unreachable!("the numbers do not end")
}

#[test]
fn a_copy_that_is_killed_at_any_moment_is_continued() {
    let Some(home) = CopiedHome::create("") else { return };
    home.with_daemon(|client| {
        for agent in ["a", "b"] {
            client.init(agent);
            for number in 0..20 {
                let text = |n: u32| NewMessage::text(Role::User, format!("{number} {n} {}", "long ".repeat(300)));
                client.append_all(agent, (0..100).map(text).collect());
                if number % 8 == 7 {
                    client.save(agent, &format!("session {number}"));
                }
            }
        }
    });
    let before = home.everything(&["a", "b"]);
    assert!(copy_and_kill(&home, "postgres") > 3);
    assert_same(&before, &home.everything(&["a", "b"]));
    home.with_daemon(|client| client.append("a", "more"));
    let middle = home.everything(&["a", "b"]);
    assert!(copy_and_kill(&home, "sqlite") > 3);
    assert_same(&middle, &home.everything(&["a", "b"]));
}

/// Returns the process of the copy that `chorusctl` has started.
fn child_of(process: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_copy_ends_with_the_command_that_started_it_and_the_same_command_continues_it() {
    let Some(home) = CopiedHome::create("") else { return };
    home.with_daemon(|client| {
        client.init("a");
        for number in 0..20 {
            client.append("a", &format!("{number}"));
            client.save("a", &format!("session {number}"));
        }
    });
    let before = home.everything(&["a"]);
    let url = home.url_file();
    let args = ["store", "copy", "--to", "postgres", "--url-file", &*url.to_string_lossy()];
    let mut command = home.home.command(home.home.bins.chorusctl);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let client = command.spawn().expect("chorusctl");
    let copy = wait_until("the process of the copy", DEADLINE, || child_of(client.id()));
    process::signal(client.id(), Signal::INT);
    let ended = client.wait_with_output().expect("the end");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.signal(), Some(Signal::INT.as_raw()), "{said}");
    assert!(said.contains("hint: the same command continues the copy"), "{said}");
    wait_until("its end", DEADLINE, || (!Path::new(&format!("/proc/{copy}/stat")).exists()).then_some(()));
    chorusctl(&home.home, args).expect_success();
    assert_same(&before, &home.everything(&["a"]));
}

#[test]
fn what_a_daemon_changes_after_an_interrupted_copy_is_copied_too() {
    let Some(home) = CopiedHome::create("") else { return };
    home.with_daemon(|client| {
        client.init("a");
        client.append("a", "one");
        client.save("a", "one");
        client.append("a", "two");
    });
    // The messages of a session are read after all rows were copied.
    let file =
        std::fs::read_dir(home.home.sessions_dir("a")).expect("the sessions").flatten().next().expect("one").path();
    let sound = std::fs::read(&file).expect("the file");
    std::fs::write(&file, b"{}").expect("damage");
    let refused = home.to_postgres();
    refused.expect_failure(refused.status);
    std::fs::write(&file, sound).expect("the file as it was");
    home.with_daemon(|client| {
        client.init("b");
        client.append("b", "new");
        client.append("a", "three");
        client.save("a", "two");
        client.append("a", "four");
    });
    let before = home.everything(&["a", "b"]);
    let copied = home.to_postgres().expect_json();
    assert_eq!(rows(&copied, "agents"), 2);
    assert_same(&before, &home.everything(&["a", "b"]));
}
