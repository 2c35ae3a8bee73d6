//! An import whose daemon ends in the middle.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Command;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{Daemon, Home, InteractiveCommand};
use serde_json::json;

use crate::home;

/// More than the chunks that are sent before the daemon ends.
const LINES: usize = 3000;

/// A transcript of about 3 MB.
fn transcript() -> String {
    let line = |number: usize| {
        let content = format!("question {number} {}", "x".repeat(1000));
        let line = json!({
            "type": "user", "uuid": format!("{number}"), "sessionId": "one",
            "timestamp": "2026-03-02T15:10:04Z", "message": {"role": "user", "content": content},
        });
        format!("{line}\n")
    };
    (0..LINES).map(line).collect()
}

/// Opens a pipe for writing. For reading, too, because what looks for the title closes it before the import opens it.
fn open_pipe(pipe: &std::path::Path) -> std::fs::File {
    OpenOptions::new().read(true).write(true).open(pipe).expect("the pipe")
}

/// Starts an import of a pipe, and returns it with the pipe when the daemon has received the start of its content.
fn start_import(home: &Home, options: &[&str]) -> (InteractiveCommand, std::path::PathBuf, std::fs::File) {
    let pipe = home.temp_dir().join("pipe.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut command = home.command(home.bins.chorusctl);
    command.args(options).args(["--agent", "a", "import"]).arg(&pipe);
    let import = InteractiveCommand::piped(command);
    let mut writer = open_pipe(&pipe);
    // What is more than a chunk and the buffer of the pipe was sent.
    writer.write_all(&transcript().as_bytes()[..1_300_000]).expect("the start");
    (import, pipe, writer)
}

#[test]
fn a_file_is_sent_again_to_the_daemon_that_is_back() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let (mut import, pipe, writer) = start_import(&home, &["--no-autostart"]);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    drop(writer);
    import.stderr.wait_for("lost the connection to the daemon; trying again");
    // It is read again from its start.
    let mut writer = open_pipe(&pipe);
    writer.write_all(transcript().as_bytes()).expect("the whole");
    drop(writer);
    let (status, stdout, stderr) = import.wait_for_exit();
    assert!(status.success(), "{stdout}{stderr}");
    let sessions = daemon.client().history("a");
    // What looks for the title takes a few lines out of the pipe.
    let counts: Vec<u64> = sessions.iter().map(|session| session.header.message_count).collect();
    assert!(counts.len() == 1 && counts[0] > LINES as u64 * 9 / 10, "{counts:?}");
}
