//! The agent that holds captured conversations is destroyed: that deletes each of them, until it is restored.

use std::time::{Duration, SystemTime};

use chorus_tests::Daemon;
use chorus_tests::interactive::InteractiveCommand;

use super::*;

/// A home in which two conversations were captured. The second is so old that its program deletes it soon.
fn captured_home() -> (Home, Daemon, Client, [Transcript; 2]) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    let mut old = Transcript::claude_code(&home, "/home/mara/shop", "bbbbbbbb");
    talk.say("one");
    old.say("an old question");
    let days = SystemTime::now() - Duration::from_secs(26 * 24 * 60 * 60);
    File::options().write(true).open(&old.path).expect("opened").set_modified(days).expect("set");
    chorusctl(&home, ["capture", "on", "claude-code"]).expect_success();
    wait_until_kept(&mut client, &talk);
    wait_until_kept(&mut client, &old);
    (home, daemon, client, [talk, old])
}

fn counts(client: &mut Client) -> (u64, u64, Option<u64>) {
    let status = status_of(client, "claude-code");
    (status.conversations, status.messages, status.deletion.map(|deletion| deletion.not_captured))
}

#[test]
fn its_conversations_stay_away_until_it_is_restored_beside_newer_ones() {
    let (home, _daemon, mut client, [mut talk, old]) = captured_home();
    let session = wait_until_kept(&mut client, &talk);
    assert_eq!(counts(&mut client), (2, 2, Some(0)));
    let mut command = home.command(home.bins.chorusctl);
    command.args(["agent", "destroy", "claude-code"]);
    let mut asked = InteractiveCommand::on_terminal_of(&command, 200, 24);
    asked.stdout.wait_for("[y/N] ");
    asked.type_text("n\n");
    let (_, shown, _) = asked.wait_for_exit();
    assert!(shown.contains("They will count as deleted, and not be captured again."), "{shown}");
    assert_eq!(counts(&mut client), (2, 2, Some(0)));
    let told = chorusctl(&home, ["agent", "destroy", "claude-code", "--yes"]).expect_success();
    assert!(told.contains("not captured again") && told.contains("capture forget --undo"), "{told}");
    assert_eq!(counts(&mut client), (0, 0, Some(1)));
    talk.say("two");
    chorusctl(&home, ["capture", "on", "claude-code"]).expect_success();
    assert!(captured(&mut client).is_empty());
    let told = chorusctl(&home, ["import", "--yes"]).expect_success();
    assert!(told.contains("2 left out: forgotten or excluded"), "{told}");
    // A new conversation gets a new agent of the same name.
    let mut other = Transcript::claude_code(&home, "/home/mara/shop", "cccccccc");
    other.say("another");
    let kept_other = wait_until_kept(&mut client, &other);
    assert_eq!(captured(&mut client).len(), 1);
    assert_eq!(counts(&mut client), (1, 1, Some(1)));
    chorusctl(&home, ["trash", "restore", "claude-code"]).expect_success();
    let grown = wait_until_kept(&mut client, &talk);
    assert_eq!(grown.header.id, session.header.id, "with what was written meanwhile");
    wait_until_kept(&mut client, &old);
    assert_eq!(wait_until_kept(&mut client, &other).header.id, kept_other.header.id);
    assert_eq!((captured(&mut client).len(), counts(&mut client)), (3, (3, 4, Some(0))));
    assert_eq!(chorusctl(&home, ["--json", "trash", "list"]).expect_json()["entries"], json!([]));
    chorusctl(&home, ["doctor"]).expect_success();
    let shown = chorusctl(&home, ["show", &grown.short_id]).expect_success();
    assert!(shown.contains("two"), "{shown}");
}

#[test]
fn its_conversations_are_captured_again_when_that_is_undone() {
    let (home, _daemon, mut client, [talk, old]) = captured_home();
    chorusctl(&home, ["agent", "destroy", "claude-code", "--yes"]).expect_success();
    chorusctl(&home, ["capture", "forget", "--undo", &talk.id]).expect_success();
    let again = wait_until_kept(&mut client, &talk);
    assert_eq!(captured(&mut client).len(), 1);
    // The agent in the trash has it, too; only the other one moves.
    let told = chorusctl(&home, ["trash", "restore", "claude-code"]).expect_success();
    assert!(told.contains("1 session left in the trash"), "{told}");
    wait_until_kept(&mut client, &old);
    assert_eq!(wait_until_kept(&mut client, &talk).header.id, again.header.id);
    assert_eq!(captured(&mut client).len(), 2);
    assert_eq!(
        chorusctl(&home, ["--json", "trash", "list"]).expect_json()["entries"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn it_is_restored_with_its_conversations_if_nothing_took_its_place() {
    let (home, _daemon, mut client, [mut talk, _]) = captured_home();
    for (destroy, restore) in [
        (&["agent", "destroy", "claude-code", "--yes"][..], &["trash", "restore", "claude-code"][..]),
        (&["agent", "destroy", "claude-code", "--yes", "--keep-files"], &["agent", "init", "claude-code"]),
    ] {
        let session = wait_until_kept(&mut client, &talk);
        chorusctl(&home, destroy).expect_success();
        talk.say("written meanwhile");
        chorusctl(&home, ["capture", "on", "claude-code"]).expect_success();
        assert!(captured(&mut client).is_empty());
        chorusctl(&home, restore).expect_success();
        assert_eq!(wait_until_kept(&mut client, &talk).header.id, session.header.id, "{restore:?}");
        assert_eq!(captured(&mut client).len(), 2);
    }
}

#[test]
fn purging_it_deletes_its_conversations_for_capture_too() {
    let (home, daemon, client, _talks) = captured_home();
    drop(client);
    chorusctl(&home, ["agent", "destroy", "claude-code", "--yes", "--purge"]).expect_success();
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    chorusctl(&home, ["capture", "on", "claude-code"]).expect_success();
    assert!(captured(&mut client).is_empty());
    let told = chorusctl(&home, ["import", "--yes"]).expect_success();
    assert!(told.contains("2 left out"), "{told}");
}
