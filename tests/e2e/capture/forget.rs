//! `capture forget`, and what config.toml says about capture.

use chorus_tests::Daemon;

use super::*;

#[test]
fn a_forgotten_conversation_stays_away_until_that_is_undone() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (mut talk, _) = captured_talk(&home, &mut client, &["one"]);
    let text = fs::read_to_string(&talk.path).expect("the transcript").replace("one", "another beginning");
    fs::write(&talk.path, text).expect("rewritten");
    let revision = wait_until_kept(&mut client, &talk);
    let told = chorusctl(&home, ["capture", "forget", &revision.short_id]).expect_success();
    assert!(told.contains("2 sessions moved to the trash"), "{told}");
    talk.say("two");
    let other = capture_another(&home, &mut client);
    assert_eq!(captured(&mut client).len(), 1);
    chorusctl(&home, ["capture", "forget", "--undo", "no-such-id"]).expect_failure_with_hint(3);
    chorusctl(&home, ["capture", "forget", "--undo", &talk.id]).expect_success();
    // Without a change of the transcript.
    wait_until_kept(&mut client, &talk);
    // By the ID of its program, and all at once.
    chorusctl(&home, ["capture", "forget", &other.id]).expect_success();
    chorusctl(&home, ["capture", "forget", &talk.id]).expect_success();
    assert!(captured(&mut client).is_empty());
    let told = chorusctl(&home, ["capture", "forget", "--undo"]).expect_success();
    assert!(told.contains("2 conversations"), "{told}");
    wait_until_kept(&mut client, &other);
    let told = chorusctl(&home, ["capture", "forget", "--undo"]).expect_success();
    assert!(told.starts_with("nothing to undo"), "{told}");
}

#[test]
fn what_was_forgotten_is_named_by_each_of_its_ids() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let (talk, session) = captured_talk(&home, &mut client, &["one"]);
    let told = chorusctl(&home, ["capture", "forget", &session.short_id]).expect_success();
    // The line that it prints works.
    let undo = told.lines().find_map(|line| line.trim().strip_prefix("undo: chorusctl ")).expect("the way back");
    assert_eq!(undo, format!("capture forget --undo {}", talk.id));
    chorusctl(&home, undo.split(' ')).expect_success();
    for destroyed in [false, true] {
        for of in [
            |session: &Session| session.short_id.clone(),
            |session: &Session| session.header.session_id.clone(),
            |session: &Session| session.header.id.to_string(),
        ] {
            let session = wait_until_kept(&mut client, &talk);
            match destroyed {
                true => chorusctl(&home, ["agent", "destroy", "claude-code", "--yes"]).expect_success(),
                false => chorusctl(&home, ["rm", &session.short_id]).expect_success(),
            };
            chorusctl(&home, ["capture", "on"]).expect_success();
            assert!(captured(&mut client).is_empty());
            chorusctl(&home, ["capture", "forget", "--undo", &of(&session)]).expect_success();
            wait_until_kept(&mut client, &talk);
        }
    }
}

#[test]
fn a_session_of_an_agent_is_not_forgotten() {
    let home = home();
    let _daemon = Daemon::start(&home);
    chorusctl(&home, ["agent", "init", "notes"]).expect_success();
    chorusctl(&home, ["context", "append", "a note"]).expect_success();
    chorusctl(&home, ["save"]).expect_success();
    chorusctl(&home, ["capture", "forget", "latest"]).expect_failure_with_hint(2);
    chorusctl(&home, ["show", "latest"]).expect_success();
}

#[test]
fn the_configuration_file_turns_it_on() {
    let home = home();
    let excluded = "/home/mara/diary";
    home.write_config(&format!("[capture]\nsources = [\"claude-code\"]\nexclude = [\"{excluded}\"]\n"));
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    let mut diary = Transcript::claude_code(&home, excluded, "bbbbbbbb");
    talk.say("one");
    diary.say("dear diary");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until_kept(&mut client, &talk);
    assert_eq!(captured(&mut client).len(), 1);
    assert!(status_of(&mut client, "claude-code").on && !status_of(&mut client, "codex").on);
    chorusctl(&home, ["capture", "off", "claude-code"]).expect_failure_with_hint(2);
    chorusctl(&home, ["capture", "exclude", "--remove", excluded]).expect_failure_with_hint(2);
    let shown = chorusctl(&home, ["capture", "status"]).expect_success();
    assert!(shown.contains("claude-code  on") && shown.contains(excluded), "{shown}");
    assert!(shown.contains("not found here: ") && !shown.contains("opencode  "), "{shown}");
}

#[test]
fn an_unknown_program_in_the_configuration_stops_the_start() {
    let home = home();
    home.write_config("[capture]\nsources = [\"claude-cod\"]\n");
    let failed = chorusctl(&home, ["daemon", "start"]);
    assert!(failed.stderr.contains("capture.sources") && failed.stderr.contains("claude-code"), "{failed:?}");
}

#[test]
fn a_program_that_writes_elsewhere_is_noticed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("one");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(40 * 24 * 60 * 60);
    File::options().append(true).open(&talk.path).and_then(|file| file.set_modified(long_ago)).expect("dated");
    chorusctl(&home, ["capture", "on", "claude-code"]).expect_success();
    assert_eq!(status_of(&mut client, "claude-code").used_since, None);
    fs::write(home.user_home.join(".claude/history.jsonl"), "{}").expect("written");
    assert!(status_of(&mut client, "claude-code").used_since.is_some());
    let doctor = chorusctl(&home, ["doctor"]);
    assert!(doctor.stdout.contains("capture of claude-code"), "{doctor:?}");
}
