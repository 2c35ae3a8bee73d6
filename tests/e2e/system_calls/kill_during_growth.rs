//! `kill -9` at the system calls of an import that adds messages to a session.

use chorus_proto::CallError;
use chorus_proto::methods::import::{ImportFormat, ImportOutcome};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::import::import_transcript;
use chorus_tests::process::is_running;
use chorus_tests::strace::{Strace, is_permitted, threads, wait_until_quiet};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::operations::copy;
use super::state::assert_databases_whole;
use super::{all, home};

/// Messages before and after the growth.
const BEFORE: usize = 3;
const AFTER: usize = 5;

const SESSION: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

fn transcript(messages: usize) -> String {
    let line = |n: usize| {
        let parent = n.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"u{parent}\""));
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u{n}\",\"parentUuid\":{parent},\"sessionId\":\"{SESSION}\",\
             \"timestamp\":\"2026-01-02T03:0{n}:00Z\",\"message\":{{\"role\":\"user\",\"content\":\"message {n}\"}}}}\n"
        )
    };
    (0..messages).map(line).collect()
}

fn import(client: &mut chorus_proto::Client, messages: usize) -> Result<ImportOutcome, CallError> {
    let result = import_transcript(client, "a", ImportFormat::ClaudeCode, &transcript(messages), 100_000)?;
    Ok(result.conversations[0].outcome)
}

/// Kills the daemon at the call `number` of this kind while the session grows, and looks at what a start finds. Returns
/// false if there was no such call.
fn kill_at(template: &Home, call: &str, number: usize) -> bool {
    let home = copy(template);
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until_quiet(daemon.pid);
    let threads: Vec<u32> = threads(daemon.pid).into_values().flatten().collect();
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:signal=KILL:when={number}"));
    let strace = Strace::attach(&home, &threads, &["-f", "-e", &trace, "-e", &inject]).expect("strace attaches");
    let answer = import(&mut client, AFTER);
    wait_until_quiet(daemon.pid);
    if is_running(daemon.pid) {
        return false;
    }
    daemon.wait();
    drop(strace);
    let at = format!("killed at {call} {number}");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = client.history("a");
    assert!(sessions.len() == 1 && sessions[0].available && sessions[0].corrupt.is_none(), "{at}: {sessions:?}");
    let restored = client.restore("a", SESSION);
    let count = client.messages("a").len();
    assert!(count == BEFORE && answer.is_err() || count == AFTER, "{at}: {count} messages, {answer:?}");
    assert_eq!(restored.warnings, Vec::<String>::new(), "{at}");
    let texts: Vec<String> = (0..count).map(|n| format!("message {n}")).collect();
    assert_eq!(client.message_texts("a"), texts, "{at}");
    // The start deletes temporary files in the background.
    wait_until(&format!("{at}: no temporary file"), DEADLINE, || {
        (std::fs::read_dir(home.sessions_dir("a")).expect("sessions").count() == 1).then_some(())
    });
    // Whatever came of it, the next import completes it.
    let again = import(&mut client, AFTER).expect("imported");
    let due = if count == AFTER { ImportOutcome::UpToDate } else { ImportOutcome::Grown };
    assert_eq!(again, due, "{at}");
    assert_eq!(client.get_session("a", SESSION).1.len(), AFTER, "{at}");
    assert!(daemon.terminate().success(), "{at}: the next stop");
    assert_databases_whole(&home);
    true
}

#[test]
fn a_kill_while_a_session_grows_leaves_the_old_file_or_the_new_one() {
    let template = home();
    if !is_permitted(&template) {
        return;
    }
    let daemon = Daemon::start(&template);
    let mut client = daemon.client();
    client.init("a");
    assert_eq!(import(&mut client, BEFORE).expect("imported"), ImportOutcome::New);
    assert!(daemon.terminate().success());
    let most = if all() { 16 } else { 2 };
    let calls = ["rename", "fsync", "fdatasync", "unlink", "pwrite64", "write"];
    let mut killed = 0;
    for call in calls {
        killed += (1..=most).take_while(|number| kill_at(&template, call, *number)).count();
    }
    assert!(killed >= 3, "only {killed} calls were reached");
}
