//! A daemon that is killed while a conversation grows loses and doubles nothing.

use chorus_tests::Daemon;
use chorus_tests::rng::{Rng, rounds_from_env};

use super::*;

#[test]
fn kills_while_a_conversation_grows_lose_and_double_nothing() {
    let home = home();
    let mut rng = Rng::new(25);
    let mut talk = Transcript::claude_code(&home, "/home/mara/shop", "aaaaaaaa");
    talk.say("message 0");
    let mut daemon = Daemon::start(&home);
    chorusctl(&home, ["capture", "on"]).expect_success();
    for round in 0..rounds_from_env("CHORUS_CAPTURE_KILLS", 12) {
        for n in 0..=rng.below(20) {
            talk.say(&format!("round {round}, message {n}"));
        }
        if round % 3 == 0 {
            wait_until_kept(&mut daemon.client(), &talk);
            talk.say("written just before the kill");
        }
        daemon.kill9();
        daemon = Daemon::start(&home);
    }
    let mut client = daemon.client();
    wait_until_kept(&mut client, &talk);
    assert_eq!(captured(&mut client).len(), 1, "one conversation");
}
