//! `chorusctl import` without FILE follows the rules of capture: what was forgotten or excluded stays away.

use chorus_tests::Daemon;

use super::*;

/// A key that the redactor knows.
const KEY: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn import(home: &Home, args: &[&str]) -> String {
    chorusctl(home, ["import", "--yes"].iter().chain(args)).expect_success()
}

fn texts_of_all(client: &mut Client) -> Vec<Vec<String>> {
    captured(client).iter().map(kept).collect()
}

#[test]
fn an_import_of_what_is_found_leaves_out_what_was_forgotten_or_excluded() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    let mut kept_talk = Transcript::claude_code(&home, "/home/mara/shop", "bbbbbbbb");
    let mut diary = Transcript::claude_code(&home, "/home/mara/diary", "cccccccc");
    talk.say("one");
    kept_talk.say("two");
    diary.say("dear diary");
    chorusctl(&home, ["capture", "exclude", "/home/mara/diary"]).expect_success();
    // Without capture, the rules are the same.
    let told = import(&home, &[]);
    assert!(told.contains("imported 2 conversations") && told.contains("1 left out: forgotten or excluded"), "{told}");
    chorusctl(&home, ["capture", "forget", &talk.id]).expect_success();
    // The record of imports says that the file has not changed.
    let told = import(&home, &[]);
    assert!(told.contains("1 conversation up to date; 2 left out: forgotten or excluded"), "{told}");
    talk.say("three");
    let told = import(&home, &[]);
    assert!(told.contains("1 conversation up to date; 2 left out: forgotten or excluded"), "{told}");
    let dir = home.user_home.join(".claude");
    let told = chorusctl(&home, ["import", dir.to_str().expect("UTF-8")]).expect_success();
    assert!(told.contains("2 left out"), "{told}");
    let json = chorusctl(&home, ["--json", "import", "--yes"]).expect_json();
    assert_eq!(json["left_out"], 2, "{json}");
    chorusctl(&home, ["capture", "on"]).expect_success();
    assert_eq!(texts_of_all(&mut client), [["two"]]);
    // By its name it comes back.
    chorusctl(&home, ["import", talk.path.to_str().expect("UTF-8")]).expect_success();
    wait_until_kept(&mut client, &talk);
    let told = import(&home, &[]);
    assert!(told.contains("2 conversations up to date; 1 left out"), "{told}");
}

#[test]
fn transcripts_in_an_excluded_directory_are_left_out() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("one");
    let dir = talk.path.parent().expect("a directory").to_str().expect("UTF-8").to_owned();
    chorusctl(&home, ["capture", "exclude", &dir]).expect_success();
    let told = import(&home, &[]);
    assert!(told.contains("1 left out"), "{told}");
    assert!(captured(&mut daemon.client()).is_empty());
    chorusctl(&home, ["capture", "exclude", "--remove", &dir]).expect_success();
    import(&home, &[]);
    assert_eq!(captured(&mut daemon.client()).len(), 1);
}

#[test]
fn a_found_transcript_is_redacted_while_capture_is_on() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let has_key = |client: &mut Client, talk: &Transcript| {
        let session = captured(client)
            .into_iter()
            .find(|session| session.header.source.as_ref().is_some_and(|source| source.conversation == talk.id));
        fs::read_to_string(session.expect("the session").file_path).expect("the session file").contains(KEY)
    };
    chorusctl(&home, ["capture", "on", "codex"]).expect_success();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say(&format!("the token is {KEY}"));
    let told = chorusctl(&home, ["import", "--yes"]);
    assert!(told.stderr.contains("redacted 1 secret"), "{told:?}");
    assert!(!has_key(&mut client, &talk));
    let mut open = Transcript::claude_code(&home, "/home/mara/shop", "bbbbbbbb");
    open.say(&format!("the token is {KEY}"));
    import(&home, &["--no-redact"]);
    assert!(has_key(&mut client, &open));
    // As capture does.
    chorusctl(&home, ["capture", "on", "codex", "--no-redact"]).expect_success();
    let mut third = Transcript::claude_code(&home, "/home/mara/shop", "cccccccc");
    third.say(&format!("the token is {KEY}"));
    import(&home, &[]);
    assert!(has_key(&mut client, &third));
}

#[test]
fn what_cannot_be_read_is_still_an_error() {
    let home = home();
    let _daemon = Daemon::start(&home);
    let talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    append(&talk.path, "{\"type\":\"user\"}\nnot JSON\n");
    let failed = chorusctl(&home, ["import", "--yes", "--from", "claude-code"]);
    assert!(failed.status != 0 && failed.stderr.contains("no readable messages"), "{failed:?}");
    assert!(failed.stdout.contains("1 file failed"), "{failed:?}");
}
