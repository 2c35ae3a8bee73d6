//! A connection that is of no use: Discord takes no posts, or Chorus may not write in a channel.

use chorus_proto::methods::daemon::{DiscordInfo, Status, StatusParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams, Verdict};
use chorus_tests::discord::{Fault, permissions};
use chorus_tests::{DEADLINE, wait_until};

use super::channels::Rig;

/// Waits until `status` says of Discord what fits.
fn says(rig: &Rig, what: &str, fits: impl Fn(&str) -> bool) -> DiscordInfo {
    let mut client = rig.client();
    wait_until(what, DEADLINE, || {
        let info = client.call::<Status>(&StatusParams::default()).expect("status").discord;
        fits(info.why.as_deref().unwrap_or_default()).then_some(info)
    })
}

/// What `doctor` warns of under this name.
fn warning(rig: &Rig, name: &str) -> Option<String> {
    let checks = rig.client().call::<Doctor>(&DoctorParams::default()).expect("doctor").checks;
    checks.into_iter().find(|check| check.name == name && check.verdict == Verdict::Warn).map(|check| check.text)
}

#[test]
fn posts_that_wait_and_channels_that_cannot_be_written_in_are_told() {
    let rig = Rig::new();
    let maps = rig.agent("maps");
    maps.wait_for_post("is here");
    rig.discord.inject_fault("POST /channels/*/messages", 1000, Fault::Status(503));
    let tides = rig.agent("tides");
    let info = says(&rig, "a post that waits", |why| why.contains("posts for tides wait"));
    assert!(info.connected && info.hint.is_some(), "{info:?}");
    let warned = warning(&rig, "Discord posts").expect("a warning");
    assert!(warned.contains("posts for tides wait") && !warned.contains("maps"), "{warned}");
    rig.discord.clear_faults();
    tides.wait_for_post("is here");
    says(&rig, "nothing to wait", str::is_empty);
    assert_eq!(warning(&rig, "Discord posts"), None);

    maps.deny_application(permissions::SEND_MESSAGES);
    says(&rig, "a channel that is closed", |why| why.contains("maps") && why.contains("Send Messages"));
    assert!(warning(&rig, "Discord channels").expect("a warning").contains("Send Messages"));
    maps.clear_denials();
    says(&rig, "nothing amiss", str::is_empty);
}
