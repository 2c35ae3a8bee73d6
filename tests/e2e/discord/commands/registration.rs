//! Servers are told the commands when they do not know them, and only those that are configured.

use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::permissions::ADMINISTRATOR;
use chorus_tests::discord::{FakeDiscord, Fault};
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::CommandFixture;
use crate::home;

#[test]
fn commands_are_told_once_and_anew_to_a_server_that_comes_back() {
    let fixture = CommandFixture::new();
    assert_eq!(fixture.discord.registrations(), 1);
    let names: Vec<String> =
        fixture.server.commands().iter().map(|command| command["name"].as_str().expect("a name").to_owned()).collect();
    let due = [
        "help",
        "cancel",
        "undo",
        "pin",
        "unpin",
        "agent",
        "context",
        "conversation",
        "session",
        "memory",
        "file",
        "permissions",
        "settings",
        "schedule",
        "tasks",
        "status",
        "models",
        "approvals",
        "usage",
        "ping",
    ];
    assert_eq!(names, due);
    let other = fixture.discord.create_guild("other");
    let guilds = format!("guilds = [\"{}\", \"{}\"]", fixture.server.id, other.id);
    fixture.home.write_config(&format!("{}{guilds}\n", fixture.discord.config_toml()));
    let fixture = fixture.restart();
    // Whoever is asked has looked at the servers before.
    fixture.slash("ping", &[]).response_with("is online");
    let room = other.create_channel("x");
    other.add_member("vera", &[], 0).run_slash_command(&room, "ping", &[]).response_with("is online");
    assert_eq!(fixture.discord.registrations(), 2, "the first server knew them already");
}

#[test]
fn what_fails_is_tried_again() {
    let (discord, home) = (FakeDiscord::start(), home());
    let server = discord.create_guild("home");
    let (room, mara) = (server.create_channel("x"), server.add_member("mara", &[], 0));
    discord.inject_fault("PUT /applications/*/guilds/*/commands", 4, Fault::Status(503));
    let _daemon = Daemon::start_with(&home, &discord.config_toml());
    mara.run_slash_command(&room, "ping", &[]).response_with("is online");
}

#[test]
fn a_server_that_is_not_configured_is_not_told_and_not_heard() {
    let (discord, home) = (FakeDiscord::start(), home());
    let (ours, theirs) = (discord.create_guild("ours"), discord.create_guild("theirs"));
    let (room, abroad) = (ours.create_channel("x"), theirs.create_channel("y"));
    let (mara, boss) = (ours.add_member("mara", &[], 0), theirs.add_member("boss", &[], 0));
    let config = format!("{}guilds = [\"{}\"]\n", discord.config_toml(), ours.id);
    let _daemon = Daemon::start_with(&home, &config);
    mara.run_slash_command(&room, "ping", &[]).response_with("is online");
    assert_eq!((discord.registrations(), theirs.commands().len()), (1, 0));
    let stale = boss.press_stale_button(&abroad, 1_u64, "history:00000000-0000-0000-0000-000000000001:1");
    // What came behind it was answered.
    mara.run_slash_command(&room, "ping", &[]).response_with("is online");
    assert!(!stale.is_acknowledged());
}

#[test]
fn what_cannot_be_answered_at_once_is_not_done() {
    let fixture = CommandFixture::new();
    fixture.talk("scribe");
    fixture.discord.inject_fault("POST /interactions/*/*/callback", 1, Fault::Status(500));
    let callback = "POST /interactions/*/*/callback";
    let before = fixture.discord.requests_to(callback).len();
    let lost = fixture.slash("context save", &[("description", "lost")]);
    assert_eq!(fixture.discord.wait_for_requests(callback, before + 1).len(), before + 1);
    fixture.slash("context save", &[("description", "kept")]).response_with("Saved as");
    let sessions = wait_until("a session", DEADLINE, || {
        let sessions = chorus_tests::client_ext::ClientExt::history(&mut fixture.client(), "scribe");
        (!sessions.is_empty()).then_some(sessions)
    });
    assert_eq!((sessions.len(), sessions[0].header.description.as_deref()), (1, Some("kept")));
    assert!(lost.responses().is_empty());
}

#[test]
fn a_server_that_comes_later_is_not_served_until_it_is_listed() {
    let fixture = CommandFixture::new();
    let later = fixture.discord.create_guild("la\u{202e}ter");
    let (hall, boss) = (later.create_channel("hall"), later.add_member("boss", &["admin"], ADMINISTRATOR));
    let why = |fixture: &CommandFixture| {
        let mut client = fixture.client();
        wait_until("the server to be named", DEADLINE, || {
            client.call::<Status>(&StatusParams::default()).ok()?.discord.why
        })
    };
    let unheard = |fixture: &CommandFixture| {
        let said = why(fixture);
        assert!(said.contains("la<U+202E>ter") && said.contains(&later.id.to_string()), "{said}");
        let stale = boss.press_stale_button(&hall, 1_u64, "history:00000000-0000-0000-0000-000000000001:1");
        fixture.slash("ping", &[]).response_with("is online");
        assert!(!stale.is_acknowledged() && later.commands().is_empty());
        assert!(hall.messages().is_empty(), "{:?}", hall.messages());
    };
    unheard(&fixture);
    let doctor = chorusctl(&fixture.home, ["doctor"]).stdout;
    assert!(doctor.contains("not an allowed server") && doctor.contains("`guilds`"), "{doctor}");
    // A connection that is taken up, and a new one.
    let fixture = fixture.restart();
    unheard(&fixture);
    fixture.discord.forget_sessions();
    let fixture = fixture.restart();
    unheard(&fixture);
    // It is no reason to be in doubt which server is meant.
    fixture.client().init("poet");
    assert_eq!(fixture.client().agent_status("poet").guild_id, Some(fixture.server.id.to_string()));
    fixture.home.write_config(&format!("{}guilds = [\"{}\"]\n", fixture.discord.config_toml(), later.id));
    let fixture = fixture.restart();
    boss.run_slash_command(&hall, "ping", &[]).response_with("is online");
    // The other is not listed: nothing is said in it any more.
    let said = fixture.room.messages().len();
    let stale = fixture.mara.press_stale_button(&fixture.room, 1_u64, "history:00000000-0000-0000-0000-000000000001:1");
    fixture.room.say(&fixture.mara, "hello?");
    boss.run_slash_command(&hall, "ping", &[]).response_with("is online");
    assert!(!stale.is_acknowledged());
    assert_eq!(fixture.room.messages().len(), said + 1);
}

#[test]
fn where_there_was_no_server_the_first_is_served() {
    let (discord, home) = (FakeDiscord::start(), home());
    let _daemon = Daemon::start_with(&home, &discord.config_toml());
    discord.wait_connected();
    let (first, second) = (discord.create_guild("first"), discord.create_guild("second"));
    let (ours, theirs) = (first.create_channel("x"), second.create_channel("y"));
    let mara = first.add_member("mara", &[], 0);
    mara.run_slash_command(&ours, "ping", &[]).response_with("is online");
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
    mara.run_slash_command(&room, "ping", &[]).response_with("is online");
    assert!(first.commands().is_empty());
}
