//! Channels that somebody deletes in Discord.

use chorus_proto::EventType;
use chorus_proto::methods::events::{List, ListParams};
use chorus_tests::chat::Chat as _;
use chorus_tests::{DEADLINE, wait_until};

use super::Rig;

#[test]
fn an_agent_whose_channel_is_deleted_goes_on_without_one() {
    let rig = Rig::new();
    let room = rig.agent("maps");
    rig.client().append("maps", "One.");
    room.remove();
    rig.detached("maps");
    assert_eq!(rig.said("maps", "guild_id"), rig.guild.id.to_string(), "it is no other server's");
    assert_eq!(rig.client().texts("maps"), ["One."]);
    let events = rig.client().call::<List>(&ListParams::default()).expect("events").events;
    let notice = events.iter().find(|event| event.kind == EventType::Notice).expect("a notice");
    assert!(notice.data["text"].as_str().expect("a text").contains("The channel of maps in Discord is gone"));
    wait_until("the log to say so", DEADLINE, || rig.log().contains("is gone").then_some(()));
    // It can have another.
    let lounge = rig.guild.channel("lounge");
    rig.set("maps", "channel_id", lounge.id.to_string()).expect("bound");
}

#[test]
fn a_channel_that_was_deleted_while_the_daemon_was_away_is_noticed() {
    let mut rig = Rig::new();
    let (gone, kept) = (rig.agent("maps"), rig.agent("tides"));
    rig.stop();
    gone.remove();
    rig.discord.forget_sessions();
    rig.start();
    rig.detached("maps");
    assert_eq!(rig.client().status_of("tides").channel_id, Some(kept.id.to_string()));
}

#[test]
fn a_server_that_is_out_or_left_takes_no_channel_from_its_agents() {
    let rig = Rig::new();
    let room = rig.agent("maps");
    rig.guild.outage();
    rig.guild.back();
    rig.guild.throw_out();
    wait_until("the log to say so", DEADLINE, || rig.log().contains("removed from a server").then_some(()));
    assert_eq!(rig.client().status_of("maps").channel_id, Some(room.id.to_string()));
}

#[test]
fn a_channel_that_chorus_may_not_see_any_more_stays_its_agents() {
    let mut rig = Rig::new();
    let room = rig.agent("maps");
    room.deny(chorus_tests::discord::permissions::VIEW_CHANNEL);
    rig.stop();
    rig.discord.forget_sessions();
    rig.start();
    rig.agent("tides");
    assert_eq!(rig.client().status_of("maps").channel_id, Some(room.id.to_string()));
    rig.discord.take_violations();
}
