//! A connection that is of no use: Discord takes no posts, or Chorus may not write in a channel.

use chorus_proto::methods::daemon::{DiscordInfo, Status, StatusParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams, Verdict};
use chorus_tests::discord::{Fault, permissions};
use chorus_tests::{DEADLINE, wait_until};

use super::channels::ChannelFixture;

/// Waits until `status` says of Discord what fits.
fn says(fixture: &ChannelFixture, what: &str, fits: impl Fn(&str) -> bool) -> DiscordInfo {
    let mut client = fixture.client();
    wait_until(what, DEADLINE, || {
        let info = client.call::<Status>(&StatusParams::default()).expect("status").discord;
        fits(info.why.as_deref().unwrap_or_default()).then_some(info)
    })
}

/// What `doctor` warns of under this name.
fn warning(fixture: &ChannelFixture, name: &str) -> Option<String> {
    let checks = fixture.client().call::<Doctor>(&DoctorParams::default()).expect("doctor").checks;
    checks.into_iter().find(|check| check.name == name && check.verdict == Verdict::Warn).map(|check| check.text)
}

#[test]
fn posts_that_wait_and_channels_that_cannot_be_written_in_are_told() {
    let fixture = ChannelFixture::new();
    let maps = fixture.agent("maps");
    maps.wait_for_post("is ready");
    fixture.discord.inject_fault("POST /channels/*/messages", 1000, Fault::Status(503));
    let tides = fixture.agent("tides");
    let info = says(&fixture, "a post that waits", |why| why.contains("pending posts for tides"));
    assert!(info.connected && info.hint.is_some(), "{info:?}");
    let warned = warning(&fixture, "Discord posts").expect("a warning");
    assert!(warned.contains("pending posts for tides") && !warned.contains("maps"), "{warned}");
    fixture.discord.clear_faults();
    tides.wait_for_post("is ready");
    says(&fixture, "nothing to wait", str::is_empty);
    assert_eq!(warning(&fixture, "Discord posts"), None);

    maps.deny_application(permissions::SEND_MESSAGES);
    says(&fixture, "a channel that is closed", |why| why.contains("maps") && why.contains("Send Messages"));
    assert!(warning(&fixture, "Discord channels").expect("a warning").contains("Send Messages"));
    maps.clear_denials();
    says(&fixture, "nothing amiss", str::is_empty);
}
