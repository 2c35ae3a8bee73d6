//! A daemon that starts anew goes on with the session of the one before: that costs nothing of the budget.

use chorus_proto::methods::daemon::DiscordState;
use chorus_tests::discord::{FakeDiscord, TOKEN};
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{SOON, becomes, rig};

fn resumed(discord: &FakeDiscord, count: usize) {
    wait_until("the session to be taken up", DEADLINE, || (discord.resumes() == count).then_some(()));
}

#[test]
fn restarts_and_crashes_take_the_session_up() {
    let (discord, home) = rig(SOON);
    let second = discord.create_guild("second");
    let daemon = Daemon::start(&home);
    becomes(&daemon, DiscordState::Connected);
    daemon.terminate();
    discord.wait_disconnected();
    for count in 1..=4 {
        let daemon = Daemon::start(&home);
        resumed(&discord, count);
        // What a new session would have told it has asked for.
        assert_eq!(becomes(&daemon, DiscordState::Connected).guilds, 2);
        second.create_channel(&format!("room-{count}"));
        if count % 2 == 0 {
            assert!(daemon.terminate().success());
        } else {
            daemon.kill9();
        }
        discord.wait_disconnected();
    }
    assert_eq!((discord.identifies(), discord.identifies_refused()), (1, 0));
    // It is not for ever.
    discord.forget_sessions();
    let daemon = Daemon::start(&home);
    wait_until("a new session", DEADLINE, || (discord.identifies() == 2).then_some(()));
    assert_eq!(becomes(&daemon, DiscordState::Connected).guilds, 2);
    daemon.terminate();
    // Of another token it is none.
    let other = format!("{}x", &TOKEN[..TOKEN.len() - 1]);
    std::fs::write(discord.token_file(), other).expect("the token");
    let daemon = Daemon::start(&home);
    becomes(&daemon, DiscordState::Stopped);
    assert_eq!((discord.identifies(), discord.resumes()), (2, 4));
}
