//! A thousand commands and buttons at once, while no disk and no model answers: each is promised an answer at once, and gets it.

use std::time::Duration;

use chorus_tests::chat::Chat as _;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_MESSAGES};
use chorus_tests::discord::{Discord, Interaction};
use chorus_tests::held::HeldDisk;
use chorus_tests::model_server::{Answer, ModelServer};
use chorus_tests::{DEADLINE, Daemon, Need, skip_without, wait_until};

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
    let (discord, model, home) = (Discord::start(), ModelServer::start(), home());
    // How long it takes is measured by the bench; a test may share its machine.
    discord.patience(DEADLINE);
    let server = discord.guild("home");
    let hall = server.channel("hall");
    let mara = server.member("mara", &[], MANAGE_CHANNELS | MANAGE_MESSAGES);
    let daemon = Daemon::start_with(&home, &format!("{}{}", model.config_toml(), discord.config_toml()));
    mara.slash(&hall, "ping", &[]).answer_with("is there");
    daemon.client().init("scribe");
    let room = server.room("scribe");
    room.post("is here");
    model.anthropic().answer(Answer::text(["So far"]).gate("held").then(" so good."));
    let asked = room.say(&mara, "go on");
    model.reached("held");
    let growing = room.post_with_button("Stop");

    let Some(held) = HeldDisk::of(&home, daemon.pid) else {
        return skip_without(Need::Ptrace, "strace cannot be used here");
    };
    let given: Vec<Interaction> = (0..INTERACTIONS)
        .map(|n| match n % 6 {
            5 => mara.press_stale(&room, growing.id, "restore:00000000-0000-0000-0000-000000000000"),
            n => mara.slash(&room, COMMANDS[n].0, COMMANDS[n].1),
        })
        .collect();
    wait_until("all to be promised an answer", DEADLINE, || {
        given.iter().all(Interaction::is_acknowledged).then_some(())
    });
    // Those that only read memory may be answered; those that need the disk are not.
    let on_disk = || given.iter().enumerate().filter(|(n, _)| matches!(n % 6, 0 | 1));
    assert!(on_disk().all(|(_, one)| one.answers().is_empty()), "the disk is not held");
    drop(held);
    model.open("held");
    wait_until("all to be answered", DEADLINE * 3, || given.iter().all(|one| !one.answers().is_empty()).then_some(()));
    room.wait_for("the answer", |all| {
        all.iter().find(|post| post.reply_to == Some(asked) && post.content == "So far so good.").cloned()
    });
    for one in &given {
        assert_eq!(one.answers().len(), 1);
        assert!(one.acknowledged().1 < Duration::from_secs(60));
    }
}
