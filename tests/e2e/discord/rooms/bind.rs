//! `agent config NAME channel_id ID`.

use chorus_proto::ErrorKind;
use chorus_tests::chat::{Chat as _, kind_of};
use chorus_tests::discord::permissions;
use chorus_tests::{DEADLINE, wait_until};

use super::{Rig, told};

#[test]
fn a_channel_that_is_there_is_bound_and_unbound() {
    let rig = Rig::new();
    let (made, lounge) = (rig.agent("maps"), rig.guild.channel("lounge"));
    let set = rig.set("maps", "channel_id", format!("<#{}>", lounge.id)).expect("bound");
    assert_eq!(set.old, Some(made.id.to_string().into()));
    assert_eq!(
        (set.agent.channel_id, set.agent.guild_id),
        (Some(lounge.id.to_string()), Some(rig.guild.id.to_string()))
    );
    assert_eq!(rig.said("maps", "guild_id"), rig.guild.id.to_string());
    assert!(made.is_there(), "it is nobody's now, and left");
    let set = rig.set("maps", "channel_id", "").expect("unbound");
    assert_eq!((set.agent.channel_id, set.agent.guild_id), (None, None));
    assert_eq!(kind_of(rig.set("maps", "guild_id", "7")), ErrorKind::InvalidParams);
}

#[test]
fn a_channel_that_no_agent_can_have_is_refused_with_the_reason() {
    let rig = Rig::new();
    let (maps, lounge) = (rig.agent("maps"), rig.guild.channel("lounge"));
    rig.client().init("tides");
    let before = rig.said("tides", "channel_id");
    let refused = |id: String| told(rig.set("tides", "channel_id", id));
    for wrong in ["lounge", "0", "-1", "#lounge", "1 2"] {
        assert!(refused(wrong.into()).contains("Copy Channel ID"), "{wrong}");
    }
    assert!(refused(maps.id.to_string()).contains("the channel of maps"));
    assert!(refused("77".into()).contains("knows no channel 77"));
    assert!(refused(rig.guild.category("Rooms").to_string()).contains("no text channel"));
    lounge.deny(permissions::SEND_MESSAGES);
    let why = wait_until("the denial to be known", DEADLINE, || {
        let refused = rig.set("tides", "channel_id", lounge.id.to_string()).err().map(|error| error.to_string());
        if refused.is_none() {
            rig.set("tides", "channel_id", before.clone()).expect("bound again");
        }
        refused
    });
    assert!(why.contains("Send Messages"), "{why}");
    lounge.deny(permissions::VIEW_CHANNEL);
    assert!(refused(lounge.id.to_string()).contains("may not see"));
    assert_eq!(rig.said("tides", "channel_id"), before);
    rig.discord.take_violations();
}

#[test]
fn what_is_bound_without_a_connection_is_looked_at_with_the_next() {
    let mut rig = Rig::new();
    for name in ["maps", "tides"] {
        rig.client().init(name);
    }
    let lounge = rig.guild.channel("lounge");
    rig.discord.refuse_connections();
    rig.away();
    let set = rig.set("maps", "channel_id", lounge.id.to_string()).expect("bound");
    assert_eq!(set.agent.guild_id, None);
    rig.set("tides", "channel_id", "77").expect("nobody can tell");
    rig.discord.forget_sessions();
    rig.discord.accept_connections();
    rig.stop();
    rig.start();
    let mut client = rig.client();
    wait_until("the server of the channel", DEADLINE, || {
        (client.status_of("maps").guild_id == Some(rig.guild.id.to_string())).then_some(())
    });
    rig.detached("tides");
}
