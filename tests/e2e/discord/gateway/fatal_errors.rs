//! What no second try would mend ends it, and says what a person has to do.

use chorus_proto::methods::daemon::DiscordState;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::TOKEN;
use chorus_tests::{Daemon, Home};

use super::{SOON, becomes, rig};

/// It has stopped, says why and what to do, and nothing of the token.
fn stopped(home: &Home, daemon: &Daemon, why: &str, hint: &str) {
    let info = becomes(daemon, DiscordState::Stopped);
    assert!(info.why.is_some_and(|said| said.contains(why)) && info.hint.is_some_and(|said| said.contains(hint)));
    let status = chorusctl(home, ["status"]).expect_success();
    assert!(status.contains("Discord stopped: ") && status.contains(why) && status.contains(hint), "{status}");
    let doctor = chorusctl(home, ["doctor"]);
    assert_eq!(doctor.status, 1, "{}", doctor.stdout);
    assert!(doctor.stdout.contains(why) && doctor.stdout.contains(hint), "{}", doctor.stdout);
    assert!(!daemon.read_log().contains(TOKEN) && !doctor.stdout.contains(TOKEN) && !status.contains(TOKEN));
}

#[test]
fn a_token_that_is_none_is_tried_once() {
    let (discord, home) = rig(SOON);
    discord.set_token_revoked(true);
    let daemon = Daemon::start(&home);
    stopped(&home, &daemon, "rejected the token", "Reset Token");
    assert_eq!((discord.requests_to("GET /gateway/bot").len(), discord.identifies()), (1, 0));
    daemon.terminate();
    // Another one is given.
    discord.set_token_revoked(false);
    let daemon = Daemon::start(&home);
    discord.wait_connected();
    // It is taken away while it is in use.
    discord.set_token_revoked(true);
    stopped(&home, &daemon, "rejected the token", "Reset Token");
    assert_eq!(discord.identifies(), 1);
}

#[test]
fn without_the_content_of_messages_there_is_no_second_try() {
    let (discord, home) = rig(SOON);
    discord.set_message_content(false);
    let daemon = Daemon::start(&home);
    stopped(&home, &daemon, "intent is not enabled", "Message Content Intent");
    assert_eq!(discord.requests_to("GET /gateway/bot").len(), 1);
    daemon.terminate();
    discord.set_message_content(true);
    let daemon = Daemon::start(&home);
    discord.wait_connected();
    discord.close_connections(4012);
    stopped(&home, &daemon, "this version", "newer version");
}

#[test]
fn a_token_that_cannot_be_read_is_said_and_the_daemon_works() {
    let (discord, home) = rig(SOON);
    std::fs::write(discord.token_file(), "two words\n").expect("the token");
    let daemon = Daemon::start(&home);
    stopped(&home, &daemon, "not a Discord token", "[discord]");
    daemon.terminate();
    std::fs::remove_file(discord.token_file()).expect("no token");
    let daemon = Daemon::start(&home);
    stopped(&home, &daemon, "cannot read", "[discord]");
}
