//! Conversations that are not captured: excluded projects, a pause, sources that are off, deleted conversations, and secrets.

use std::os::unix::fs::symlink;

use chorus_tests::Daemon;

use super::*;

/// A key that the redactor knows.
const KEY: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

#[test]
fn excluded_projects_are_left_out_until_they_are_included_again() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut shop = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    let mut secret = Transcript::claude_code(&home, "/home/mara/diary/2026", "bbbbbbbb");
    chorusctl(&home, ["capture", "exclude", "/home/mara/diary"]).expect_success();
    shop.say("about the shop");
    secret.say("dear diary");
    chorusctl(&home, ["capture", "on"]).expect_success();
    assert_eq!(captured(&mut client).len(), 1);
    wait_until_kept(&mut client, &shop);
    let status = chorusctl(&home, ["capture", "status"]).expect_success();
    assert!(status.contains("excluded: /home/mara/diary"), "{status}");
    chorusctl(&home, ["capture", "exclude", "--remove", "/home/mara/diary"]).expect_success();
    // Without a change of the transcript.
    wait_until_kept(&mut client, &secret);
    secret.say("and so on");
    wait_until_kept(&mut client, &secret);
    chorusctl(&home, ["capture", "exclude", "--remove", "/home/mara/diary"]).expect_failure_with_hint(3);
}

#[test]
fn an_excluded_directory_is_known_by_each_path_that_leads_to_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (diary, link) = (home.user_home.join("diary"), home.user_home.join("link"));
    fs::create_dir(&diary).expect("created");
    symlink(&diary, &link).expect("linked");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (diary, link) = (text(&diary), text(&link));
    let mut talks = [
        Transcript::claude_code(&home, &diary, "aaaaaaaa"),
        Transcript::claude_code(&home, &link, "bbbbbbbb"),
        Transcript::claude_code(&home, &format!("{link}/2026/may"), "cccccccc"),
    ];
    talks.iter_mut().for_each(|talk| talk.say("dear diary"));
    let mut shop = Transcript::claude_code(&home, "/home/mara/shop", "dddddddd");
    shop.say("about the shop");
    let status = || chorusctl(&home, ["capture", "status"]).expect_success();
    for excluded in [&diary, &link] {
        chorusctl(&home, ["capture", "exclude", excluded]).expect_success();
        assert!(status().contains(&format!("excluded: {excluded}\n")), "{}", status());
        chorusctl(&home, ["capture", "on"]).expect_success();
        wait_until_kept(&mut client, &shop);
        assert_eq!(captured(&mut client).len(), 1, "{excluded}");
        if excluded == &diary {
            // By its other path.
            chorusctl(&home, ["capture", "off"]).expect_success();
            chorusctl(&home, ["capture", "exclude", "--remove", &link]).expect_success();
            assert!(!status().contains("excluded"), "{}", status());
        }
    }
    // It stays excluded when the link is gone.
    fs::remove_file(&link).expect("removed");
    talks[0].say("and so on");
    capture_another(&home, &mut client);
    assert_eq!(captured(&mut client).len(), 2);
}

#[test]
fn nothing_is_captured_in_a_pause_or_after_off() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (mut talk, before) = captured_talk(&home, &mut client, &["one"]);
    for (stop, go) in [("pause", "resume"), ("off", "on")] {
        chorusctl(&home, ["capture", stop]).expect_success();
        let had = kept(&before);
        talk.say("written meanwhile");
        // A search goes through the daemon after the write, as capture would.
        chorusctl(&home, ["capture", "status"]).expect_success();
        assert_eq!(kept(&before), had);
        chorusctl(&home, ["capture", go]).expect_success();
        wait_until_kept(&mut client, &talk);
    }
}

#[test]
fn a_deleted_conversation_does_not_come_back_until_it_is_restored() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (mut talk, session) = captured_talk(&home, &mut client, &["one"]);
    let deleted = chorusctl(&home, ["--json", "rm", &session.short_id]).expect_json();
    talk.say("two");
    capture_another(&home, &mut client);
    assert_eq!(captured(&mut client).len(), 1);
    let entry = deleted["trash"].as_str().expect("an entry of the trash");
    chorusctl(&home, ["trash", "restore", entry]).expect_success();
    assert_eq!(wait_until_kept(&mut client, &talk).header.id, session.header.id, "with what was written meanwhile");
    talk.say("three");
    assert_eq!(wait_until_kept(&mut client, &talk).header.id, session.header.id);
}

#[test]
fn a_deleted_revision_does_not_come_back() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (mut talk, _) = captured_talk(&home, &mut client, &["one"]);
    let text = fs::read_to_string(&talk.path).expect("the transcript").replace("one", "another beginning");
    fs::write(&talk.path, text).expect("rewritten");
    let revision = wait_until_kept(&mut client, &talk);
    chorusctl(&home, ["rm", &revision.short_id]).expect_success();
    talk.say("two");
    capture_another(&home, &mut client);
    let left: Vec<_> = captured(&mut client).iter().map(kept).collect();
    assert!(left.len() == 2 && left.contains(&vec!["one".to_owned()]), "{left:?}");
}

#[test]
fn secrets_are_redacted_by_default() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say(&format!("the token is {KEY}"));
    chorusctl(&home, ["capture", "on"]).expect_success();
    let text = |session: &Session| fs::read_to_string(&session.file_path).expect("the session file");
    let session = captured(&mut client).remove(0);
    assert!(!text(&session).contains(KEY), "redacted");
    let mut open = Transcript::claude_code(&home, "/home/mara/shop", "bbbbbbbb");
    chorusctl(&home, ["capture", "on", "--no-redact"]).expect_success();
    open.say(&format!("the token is {KEY}"));
    wait_until_kept(&mut client, &open);
    talk.say(&format!("again: {KEY}"));
    wait_until("the growth", DEADLINE, || (text(&session).matches("again").count() == 1).then_some(()));
    assert!(!text(&session).contains(KEY), "a conversation never mixes the two");
}
