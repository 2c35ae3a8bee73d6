//! Servers are told the commands when they do not know them, and only those that are configured.

use chorus_tests::discord::{Discord, Fault};
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::Rig;
use crate::home;

#[test]
fn commands_are_told_once_and_anew_to_a_server_that_comes_back() {
    let rig = Rig::new();
    assert_eq!(rig.discord.registrations(), 1);
    let names: Vec<String> =
        rig.server.commands().iter().map(|command| command["name"].as_str().expect("a name").to_owned()).collect();
    let due = ["agent", "context", "settings", "tasks", "status", "models", "approvals", "usage", "ping"];
    assert_eq!(names, due);
    let rig = rig.restart();
    // Whoever is asked has looked at the servers before.
    rig.slash("ping", &[]).answer_with("is there");
    let other = rig.discord.guild("other");
    let room = other.channel("x");
    other.member("vera", &[], 0).slash(&room, "ping", &[]).answer_with("is there");
    assert_eq!(rig.discord.registrations(), 2, "the first server knew them already");
}

#[test]
fn what_fails_is_tried_again() {
    let (discord, home) = (Discord::start(), home());
    let server = discord.guild("home");
    let (room, mara) = (server.channel("x"), server.member("mara", &[], 0));
    discord.fail("PUT /applications/*/guilds/*/commands", 4, Fault::Status(503));
    let _daemon = Daemon::start_with(&home, &discord.config_toml());
    mara.slash(&room, "ping", &[]).answer_with("is there");
}

#[test]
fn a_server_that_is_not_configured_is_not_told_and_not_heard() {
    let (discord, home) = (Discord::start(), home());
    let (ours, theirs) = (discord.guild("ours"), discord.guild("theirs"));
    let (room, abroad) = (ours.channel("x"), theirs.channel("y"));
    let (mara, boss) = (ours.member("mara", &[], 0), theirs.member("boss", &[], 0));
    let config = format!("{}guilds = [\"{}\"]\n", discord.config_toml(), ours.id);
    let _daemon = Daemon::start_with(&home, &config);
    mara.slash(&room, "ping", &[]).answer_with("is there");
    assert_eq!((discord.registrations(), theirs.commands().len()), (1, 0));
    let stale = boss.press_stale(&abroad, 1_u64, "history:00000000-0000-0000-0000-000000000001:1");
    // What came behind it was answered.
    mara.slash(&room, "ping", &[]).answer_with("is there");
    assert!(!stale.is_acknowledged());
}

#[test]
fn what_cannot_be_answered_at_once_is_not_done() {
    let rig = Rig::new();
    rig.talk("scribe");
    rig.discord.fail("POST /interactions/*/*/callback", 1, Fault::Status(500));
    let callback = "POST /interactions/*/*/callback";
    let before = rig.discord.requests_to(callback).len();
    let lost = rig.slash("context save", &[("description", "lost")]);
    assert_eq!(rig.discord.wait_for_requests(callback, before + 1).len(), before + 1);
    rig.slash("context save", &[("description", "kept")]).answer_with("Saved as");
    let sessions = wait_until("a session", DEADLINE, || {
        let sessions = chorus_tests::chat::Chat::history(&mut rig.client(), "scribe");
        (!sessions.is_empty()).then_some(sessions)
    });
    assert_eq!((sessions.len(), sessions[0].header.description.as_deref()), (1, Some("kept")));
    assert!(lost.answers().is_empty());
}
