//! Channels that somebody deletes in Discord.

use chorus_proto::EventType;
use chorus_proto::methods::events::{List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, wait_until};

use super::ChannelFixture;

#[test]
fn an_agent_whose_channel_is_deleted_goes_on_without_one() {
    let fixture = ChannelFixture::new();
    let room = fixture.agent("maps");
    fixture.client().append("maps", "One.");
    room.delete_channel();
    fixture.detached("maps");
    assert_eq!(fixture.said("maps", "guild_id"), fixture.guild.id.to_string(), "it is no other server's");
    assert_eq!(fixture.client().message_texts("maps"), ["One."]);
    let events = || fixture.client().call::<List>(&ListParams::default()).expect("events").events;
    let noticed = || events().into_iter().find(|event| event.kind == EventType::Notice);
    let notice = wait_until("the notice", DEADLINE, noticed);
    assert!(notice.data["text"].as_str().expect("a text").contains("The Discord channel of maps was deleted"));
    wait_until("the log to say so", DEADLINE, || fixture.log().contains("channel was deleted").then_some(()));
    // It can have another.
    let lounge = fixture.guild.create_channel("lounge");
    fixture.set("maps", "channel_id", lounge.id.to_string()).expect("bound");
}

#[test]
fn a_channel_that_was_deleted_while_the_daemon_was_away_is_noticed() {
    let mut fixture = ChannelFixture::new();
    let (gone, kept) = (fixture.agent("maps"), fixture.agent("tides"));
    fixture.stop();
    gone.delete_channel();
    fixture.discord.forget_sessions();
    fixture.start();
    fixture.detached("maps");
    assert_eq!(fixture.client().agent_status("tides").channel_id, Some(kept.id.to_string()));
}

#[test]
fn a_server_that_is_out_or_left_takes_no_channel_from_its_agents() {
    let fixture = ChannelFixture::new();
    let room = fixture.agent("maps");
    fixture.guild.start_outage();
    fixture.guild.make_available();
    fixture.guild.remove_application();
    wait_until("the log to say so", DEADLINE, || fixture.log().contains("removed from a server").then_some(()));
    assert_eq!(fixture.client().agent_status("maps").channel_id, Some(room.id.to_string()));
}

#[test]
fn a_channel_that_chorus_may_not_see_any_more_stays_its_agents() {
    let mut fixture = ChannelFixture::new();
    let room = fixture.agent("maps");
    room.deny_application(chorus_tests::discord::permissions::VIEW_CHANNEL);
    fixture.stop();
    fixture.discord.forget_sessions();
    fixture.start();
    fixture.agent("tides");
    assert_eq!(fixture.client().agent_status("maps").channel_id, Some(room.id.to_string()));
    fixture.discord.take_violations();
}
