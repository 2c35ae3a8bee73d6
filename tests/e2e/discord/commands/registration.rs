//! Servers are told the commands when they do not know them, and only those that are configured.

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::ADMINISTRATOR;
use chorus_tests::discord::{FakeDiscord, Fault};
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
    let other = rig.discord.create_guild("other");
    let guilds = format!("guilds = [\"{}\", \"{}\"]", rig.server.id, other.id);
    rig.home.write_config(&format!("{}{guilds}\n", rig.discord.config_toml()));
    let rig = rig.restart();
    // Whoever is asked has looked at the servers before.
    rig.slash("ping", &[]).response_with("is there");
    let room = other.create_channel("x");
    other.add_member("vera", &[], 0).run_slash_command(&room, "ping", &[]).response_with("is there");
    assert_eq!(rig.discord.registrations(), 2, "the first server knew them already");
}

#[test]
fn what_fails_is_tried_again() {
    let (discord, home) = (FakeDiscord::start(), home());
    let server = discord.create_guild("home");
    let (room, mara) = (server.create_channel("x"), server.add_member("mara", &[], 0));
    discord.inject_fault("PUT /applications/*/guilds/*/commands", 4, Fault::Status(503));
    let _daemon = Daemon::start_with(&home, &discord.config_toml());
    mara.run_slash_command(&room, "ping", &[]).response_with("is there");
}

#[test]
fn a_server_that_is_not_configured_is_not_told_and_not_heard() {
    let (discord, home) = (FakeDiscord::start(), home());
    let (ours, theirs) = (discord.create_guild("ours"), discord.create_guild("theirs"));
    let (room, abroad) = (ours.create_channel("x"), theirs.create_channel("y"));
    let (mara, boss) = (ours.add_member("mara", &[], 0), theirs.add_member("boss", &[], 0));
    let config = format!("{}guilds = [\"{}\"]\n", discord.config_toml(), ours.id);
    let _daemon = Daemon::start_with(&home, &config);
    mara.run_slash_command(&room, "ping", &[]).response_with("is there");
    assert_eq!((discord.registrations(), theirs.commands().len()), (1, 0));
    let stale = boss.press_stale_button(&abroad, 1_u64, "history:00000000-0000-0000-0000-000000000001:1");
    // What came behind it was answered.
    mara.run_slash_command(&room, "ping", &[]).response_with("is there");
    assert!(!stale.is_acknowledged());
}

#[test]
fn what_cannot_be_answered_at_once_is_not_done() {
    let rig = Rig::new();
    rig.talk("scribe");
    rig.discord.inject_fault("POST /interactions/*/*/callback", 1, Fault::Status(500));
    let callback = "POST /interactions/*/*/callback";
    let before = rig.discord.requests_to(callback).len();
    let lost = rig.slash("context save", &[("description", "lost")]);
    assert_eq!(rig.discord.wait_for_requests(callback, before + 1).len(), before + 1);
    rig.slash("context save", &[("description", "kept")]).response_with("Saved as");
    let sessions = wait_until("a session", DEADLINE, || {
        let sessions = chorus_tests::client_ext::ClientExt::history(&mut rig.client(), "scribe");
        (!sessions.is_empty()).then_some(sessions)
    });
    assert_eq!((sessions.len(), sessions[0].header.description.as_deref()), (1, Some("kept")));
    assert!(lost.responses().is_empty());
}

#[test]
fn a_server_that_comes_later_is_not_served_until_it_is_listed() {
    let rig = Rig::new();
    let later = rig.discord.create_guild("la\u{202e}ter");
    let (hall, boss) = (later.create_channel("hall"), later.add_member("boss", &["admin"], ADMINISTRATOR));
    let why = |rig: &Rig| {
        let mut client = rig.client();
        wait_until("the server to be named", DEADLINE, || {
            client.call::<Status>(&StatusParams::default()).ok()?.discord.why
        })
    };
    let unheard = |rig: &Rig| {
        let said = why(rig);
        assert!(said.contains("la<U+202E>ter") && said.contains(&later.id.to_string()), "{said}");
        let stale = boss.press_stale_button(&hall, 1_u64, "history:00000000-0000-0000-0000-000000000001:1");
        rig.slash("ping", &[]).response_with("is there");
        assert!(!stale.is_acknowledged() && later.commands().is_empty());
        assert!(hall.messages().is_empty(), "{:?}", hall.messages());
    };
    unheard(&rig);
    let doctor = chorusctl(&rig.home, ["doctor"]).stdout;
    assert!(doctor.contains("not served") && doctor.contains("`guilds`"), "{doctor}");
    // A connection that is taken up, and a new one.
    let rig = rig.restart();
    unheard(&rig);
    rig.discord.forget_sessions();
    let rig = rig.restart();
    unheard(&rig);
    // It is no reason to be in doubt which server is meant.
    rig.client().init("poet");
    assert_eq!(rig.client().agent_status("poet").guild_id, Some(rig.server.id.to_string()));
    rig.home.write_config(&format!("{}guilds = [\"{}\"]\n", rig.discord.config_toml(), later.id));
    let rig = rig.restart();
    boss.run_slash_command(&hall, "ping", &[]).response_with("is there");
    // The other is not listed: nothing is said in it any more.
    let said = rig.room.messages().len();
    let stale = rig.mara.press_stale_button(&rig.room, 1_u64, "history:00000000-0000-0000-0000-000000000001:1");
    rig.room.say(&rig.mara, "hello?");
    boss.run_slash_command(&hall, "ping", &[]).response_with("is there");
    assert!(!stale.is_acknowledged());
    assert_eq!(rig.room.messages().len(), said + 1);
}

#[test]
fn where_there_was_no_server_the_first_is_served() {
    let (discord, home) = (FakeDiscord::start(), home());
    let _daemon = Daemon::start_with(&home, &discord.config_toml());
    discord.wait_connected();
    let (first, second) = (discord.create_guild("first"), discord.create_guild("second"));
    let (ours, theirs) = (first.create_channel("x"), second.create_channel("y"));
    let mara = first.add_member("mara", &[], 0);
    mara.run_slash_command(&ours, "ping", &[]).response_with("is there");
    assert!(second.commands().is_empty() && theirs.messages().is_empty());
}

#[test]
fn a_server_that_does_not_take_the_commands_keeps_no_other_from_them() {
    let (discord, home) = (FakeDiscord::start(), home());
    let (first, second) = (discord.create_guild("first"), discord.create_guild("second"));
    let (room, mara) = (second.create_channel("x"), second.add_member("mara", &[], 0));
    let refusing = format!("PUT /applications/*/guilds/{}/commands", first.id);
    discord.inject_fault(&refusing, 1000, Fault::Status(503));
    let _daemon = Daemon::start_with(&home, &discord.config_toml());
    mara.run_slash_command(&room, "ping", &[]).response_with("is there");
    assert!(first.commands().is_empty());
}
