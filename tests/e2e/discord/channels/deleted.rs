//! Channels that somebody deletes in Discord.

use chorus_proto::EventType;
use chorus_proto::methods::events::{List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, wait_until};

use super::Rig;

#[test]
fn an_agent_whose_channel_is_deleted_goes_on_without_one() {
    let rig = Rig::new();
    let room = rig.agent("maps");
    rig.client().append("maps", "One.");
    room.delete_channel();
    rig.detached("maps");
    assert_eq!(rig.said("maps", "guild_id"), rig.guild.id.to_string(), "it is no other server's");
    assert_eq!(rig.client().message_texts("maps"), ["One."]);
    let events = || rig.client().call::<List>(&ListParams::default()).expect("events").events;
    let noticed = || events().into_iter().find(|event| event.kind == EventType::Notice);
    let notice = wait_until("the notice", DEADLINE, noticed);
    assert!(notice.data["text"].as_str().expect("a text").contains("The channel of maps in Discord is gone"));
    wait_until("the log to say so", DEADLINE, || rig.log().contains("is gone").then_some(()));
    // It can have another.
    let lounge = rig.guild.create_channel("lounge");
    rig.set("maps", "channel_id", lounge.id.to_string()).expect("bound");
}

#[test]
fn a_channel_that_was_deleted_while_the_daemon_was_away_is_noticed() {
    let mut rig = Rig::new();
    let (gone, kept) = (rig.agent("maps"), rig.agent("tides"));
    rig.stop();
    gone.delete_channel();
    rig.discord.forget_sessions();
    rig.start();
    rig.detached("maps");
    assert_eq!(rig.client().agent_status("tides").channel_id, Some(kept.id.to_string()));
}

#[test]
fn a_server_that_is_out_or_left_takes_no_channel_from_its_agents() {
    let rig = Rig::new();
    let room = rig.agent("maps");
    rig.guild.start_outage();
    rig.guild.make_available();
    rig.guild.remove_application();
    wait_until("the log to say so", DEADLINE, || rig.log().contains("removed from a server").then_some(()));
    assert_eq!(rig.client().agent_status("maps").channel_id, Some(room.id.to_string()));
}

#[test]
fn a_channel_that_chorus_may_not_see_any_more_stays_its_agents() {
    let mut rig = Rig::new();
    let room = rig.agent("maps");
    room.deny_application(chorus_tests::discord::permissions::VIEW_CHANNEL);
    rig.stop();
    rig.discord.forget_sessions();
    rig.start();
    rig.agent("tides");
    assert_eq!(rig.client().agent_status("maps").channel_id, Some(room.id.to_string()));
    rig.discord.take_violations();
}
