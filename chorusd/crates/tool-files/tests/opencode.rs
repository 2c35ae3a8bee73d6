//! Tests of conversations that opencode keeps in many files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chorus_tool_files::{is_opencode_part, is_opencode_session, session_of_message, write_opencode_session};
use tempfile::TempDir;

fn write(dir: &TempDir, name: &str, json: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    fs::write(&path, json).expect("written");
    path
}

fn document(session: &Path) -> io::Result<String> {
    let mut out = Vec::new();
    write_opencode_session(session, &mut out)?;
    Ok(String::from_utf8(out).expect("UTF-8").replace('\n', ""))
}

/// Lets a file be as old as one that nobody writes.
fn set_old(path: &Path) {
    let file = File::options().write(true).open(path).expect("the file");
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).expect("set");
}

#[test]
fn the_files_of_a_session_become_one_document() {
    let of_part = r#""messageID":"msg_2","sessionID":"ses_1""#;
    let due = concat!(
        r#"{"info":{"id":"ses_1","title":"The files"},"messages":["#,
        r#"{"info":{"id":"msg_2","time":{"created":1}},"parts":[{"id":"prt_1","type":"text","text":"a"},{"id":"prt_2","n":0.10}]},"#,
        r#"{"info":{"id":"msg_1","time":{"created":2}},"parts":[]}]}"#
    );
    for [session, messages, parts] in [
        ["storage/session/7d44/ses_1.json", "storage/message/ses_1", "storage/part/msg_2"],
        [
            "project/srv/storage/session/info/ses_1.json",
            "project/srv/storage/session/message/ses_1",
            "project/srv/storage/session/part/ses_1/msg_2",
        ],
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let session = write(&dir, session, "{\"id\":\"ses_1\",\n\"title\":\"The files\"}");
        assert_eq!(
            document(&session).expect("a document"),
            r#"{"info":{"id":"ses_1","title":"The files"},"messages":[]}"#
        );
        let message = write(&dir, &format!("{messages}/msg_1.json"), r#"{"id":"msg_1","time":{"created":2}}"#);
        write(&dir, &format!("{messages}/msg_2.json"), r#"{"id":"msg_2","time":{"created":1}}"#);
        write(&dir, &format!("{parts}/prt_2.json"), &format!(r#"{{"id":"prt_2",{of_part},"n":0.10}}"#));
        let part = write(
            &dir,
            &format!("{parts}/prt_1.json"),
            &format!(r#"{{"id":"prt_1","type":"text","text":"a",{of_part}}}"#),
        );
        assert_eq!(document(&session).expect("a document"), due);
        assert!(is_opencode_session(&session) && is_opencode_part(&message) && is_opencode_part(&part));
        assert!(!is_opencode_session(&message) && !is_opencode_part(&session));
        assert_eq!(session_of_message(&message), Some(session));
        assert_eq!(session_of_message(&part), None);
    }
}

#[test]
fn a_file_that_is_being_written_is_waited_for_and_a_broken_one_is_left_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let session = write(&dir, "storage/session/7d44/ses_1.json", r#"{"id":"ses_1"}"#);
    write(&dir, "storage/message/ses_1/msg_1.json", r#"{"id":"msg_1"}"#);
    for torn in ["storage/message/ses_1/msg_2.json", "storage/part/msg_1/prt_1.json"] {
        let path = write(&dir, torn, "{\"id\":");
        assert_eq!(document(&session).expect_err("being written").kind(), io::ErrorKind::WouldBlock);
        set_old(&path);
    }
    let due = r#"{"info":{"id":"ses_1"},"messages":[{"info":{"id":"msg_1"},"parts":[]},{"info":{},"parts":[]}]}"#;
    assert_eq!(document(&session).expect("a document"), due);
    fs::write(&session, "[]").expect("written");
    set_old(&session);
    assert_eq!(document(&session).expect_err("no session").kind(), io::ErrorKind::InvalidData);
    let elsewhere = write(&dir, "session/7d44/ses_1.json", r#"{"id":"ses_1"}"#);
    assert!(!is_opencode_session(&elsewhere), "not below `storage`");
}
