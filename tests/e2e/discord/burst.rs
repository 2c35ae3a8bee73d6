//! A thousand commands and buttons at once, while no disk and no model answers: each is promised an answer at once, and gets it.

use std::time::Duration;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_MESSAGES};
use chorus_tests::discord::{FakeDiscord, Interaction};
use chorus_tests::frozen_disk::FrozenDisk;
use chorus_tests::model_server::{ModelServer, Response};
use chorus_tests::{DEADLINE, Daemon, Need, skip, skip_without, wait_until};

use crate::home;

const INTERACTIONS: usize = 1000;

/// Some of which change the disk and some of which read it.
const COMMANDS: [(&str, &[(&str, &str)]); 5] = [
    ("context history", &[]),
    ("context restore", &[("session", "latest~7")]),
    ("status", &[]),
    ("usage", &[]),
    ("context rewind", &[("undo", "true")]),
];

#[test]
fn a_thousand_are_promised_an_answer_while_disk_and_model_are_held_shut() {
    let (discord, model, home) = (FakeDiscord::start(), ModelServer::start(), home());
    if home.database_url().is_some() {
        return skip("the daemon that is held writes nothing to the disk with PostgreSQL");
    }
    // How long it takes is measured by the bench; a test may share its machine.
    discord.set_interaction_timeout(DEADLINE);
    let server = discord.create_guild("home");
    let hall = server.create_channel("hall");
    let mara = server.add_member("mara", &[], MANAGE_CHANNELS | MANAGE_MESSAGES);
    let daemon = Daemon::start_with(&home, &format!("{}{}", model.config_toml(), discord.config_toml()));
    mara.run_slash_command(&hall, "ping", &[]).response_with("is online");
    daemon.client().init("scribe");
    let room = server.wait_for_channel("scribe");
    room.wait_for_post("is ready");
    model.anthropic().queue(Response::text(["So far"]).gate("held").then_text(" so good."));
    let asked = room.say(&mara, "go on");
    model.wait_for_gate("held");
    let growing = room.wait_for_post_with_button("Stop");

    let Some(held) = FrozenDisk::freeze(&home, daemon.pid) else {
        return skip_without(Need::Ptrace, "strace cannot be used here");
    };
    let given: Vec<Interaction> = (0..INTERACTIONS)
        .map(|n| match n % 6 {
            5 => mara.press_stale_button(&room, growing.id, "restore:00000000-0000-0000-0000-000000000000"),
            n => mara.run_slash_command(&room, COMMANDS[n].0, COMMANDS[n].1),
        })
        .collect();
    wait_until("all to be promised an answer", DEADLINE, || {
        given.iter().all(Interaction::is_acknowledged).then_some(())
    });
    // Those that only read memory may be answered; those that need the disk are not.
    let on_disk = || given.iter().enumerate().filter(|(n, _)| matches!(n % 6, 0 | 1));
    assert!(on_disk().all(|(_, one)| one.responses().is_empty()), "the disk is not held");
    drop(held);
    model.open_gate("held");
    wait_until("all to be answered", DEADLINE * 3, || {
        given.iter().all(|one| !one.responses().is_empty()).then_some(())
    });
    room.wait_for("the answer", |all| {
        all.iter().find(|post| post.reply_to == Some(asked) && post.content == "So far so good.").cloned()
    });
    for one in &given {
        assert_eq!(one.responses().len(), 1);
        assert!(one.wait_for_acknowledgement().1 < Duration::from_secs(60));
    }
}
