//! `agent config NAME channel_id ID`.

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::discord::{Fault, permissions};
use chorus_tests::{DEADLINE, wait_until};

use super::{ChannelFixture, told};

#[test]
fn a_channel_that_is_there_is_bound_and_unbound() {
    let fixture = ChannelFixture::new();
    let (made, lounge) = (fixture.agent("maps"), fixture.guild.create_channel("lounge"));
    let set = fixture.set("maps", "channel_id", format!("<#{}>", lounge.id)).expect("bound");
    assert_eq!(set.old, Some(made.id.to_string().into()));
    assert_eq!(
        (set.agent.channel_id, set.agent.guild_id),
        (Some(lounge.id.to_string()), Some(fixture.guild.id.to_string()))
    );
    assert_eq!(fixture.said("maps", "guild_id"), fixture.guild.id.to_string());
    assert!(made.exists(), "it is nobody's now, and left");
    let set = fixture.set("maps", "channel_id", "").expect("unbound");
    // Its server stays: it is no other's.
    assert_eq!((set.agent.channel_id, set.agent.guild_id), (None, Some(fixture.guild.id.to_string())));
    assert_eq!(expect_error_kind(fixture.set("maps", "guild_id", "7")), ErrorKind::InvalidParams);
}

#[test]
fn a_channel_is_told_of_the_agent_that_it_gets_and_loses() {
    let fixture = ChannelFixture::new();
    let (made, lounge) = (fixture.agent("maps"), fixture.guild.create_channel("lounge"));
    fixture.set("maps", "channel_id", lounge.id.to_string()).expect("bound");
    lounge.wait_for_post("**maps** is ready");
    made.wait_for_post("**maps** has left this channel");
    let params = DestroyParams { name: "maps".into(), ..DestroyParams::default() };
    fixture.client().call::<Destroy>(&params).expect("agent.destroy");
    lounge.wait_for_post("**maps** was deleted");
    assert!(lounge.exists() && made.exists());
    assert_eq!(lounge.application_posts().len(), 2);
}

#[test]
fn an_agent_without_a_channel_gets_one_made() {
    let fixture = ChannelFixture::new();
    fixture.agent("maps");
    let refused = told(fixture.set("maps", "channel_id", "new"));
    assert!(refused.contains("maps already has channel"), "{refused}");
    fixture.set("maps", "channel_id", "").expect("unbound");
    let set = fixture.set("maps", "channel_id", "new").expect("made");
    let room = fixture.room(&set.agent);
    room.wait_for_post("**maps** is ready");
    assert_eq!((room.category().as_deref(), room.topic().as_str()), (Some("Agents"), "You are maps."));
    // It is its own, and goes with it.
    let params = DestroyParams { name: "maps".into(), ..DestroyParams::default() };
    fixture.client().call::<Destroy>(&params).expect("agent.destroy");
    assert!(!room.exists());
    fixture.client().init("tides");
    fixture.set("tides", "channel_id", "").expect("unbound");
    fixture.discord.refuse_connections();
    fixture.away();
    let refused = told(fixture.set("tides", "channel_id", "new"));
    assert!(refused.contains("no channel was created: Chorus is not connected"), "{refused}");
}

#[test]
fn a_channel_made_for_an_agent_that_got_one_meanwhile_goes() {
    let fixture = ChannelFixture::new();
    fixture.agent("maps");
    fixture.set("maps", "channel_id", "").expect("unbound");
    let lounge = fixture.guild.create_channel("lounge");
    let before = fixture.guild.text_channels().len();
    fixture.discord.inject_fault(&format!("POST /guilds/{}/channels", fixture.guild.id), 1, Fault::Gate("made"));
    let refused = std::thread::scope(|scope| {
        let new = scope.spawn(|| fixture.set("maps", "channel_id", "new"));
        fixture.discord.wait_for_gate("made");
        fixture.set("maps", "channel_id", lounge.id.to_string()).expect("bound");
        fixture.discord.open_gate("made");
        new.join().expect("an answer")
    });
    assert_eq!(expect_error_kind(refused), ErrorKind::AlreadyExists);
    assert_eq!(fixture.said("maps", "channel_id"), lounge.id.to_string());
    assert_eq!(fixture.guild.text_channels().len(), before, "it is left to nobody");
}

#[test]
fn a_channel_that_no_agent_can_have_is_refused_with_the_reason() {
    let fixture = ChannelFixture::new();
    let (maps, lounge) = (fixture.agent("maps"), fixture.guild.create_channel("lounge"));
    fixture.client().init("tides");
    let before = fixture.said("tides", "channel_id");
    let refused = |id: String| told(fixture.set("tides", "channel_id", id));
    for wrong in ["lounge", "0", "-1", "#lounge", "1 2"] {
        assert!(refused(wrong.into()).contains("Copy Channel ID"), "{wrong}");
    }
    assert!(refused(maps.id.to_string()).contains("the channel belongs to maps"));
    assert!(refused("77".into()).contains("has no channel 77"));
    assert!(refused(fixture.guild.create_category("Rooms").to_string()).contains("not a text channel"));
    lounge.deny_application(permissions::SEND_MESSAGES);
    let why = wait_until("the denial to be known", DEADLINE, || {
        let refused = fixture.set("tides", "channel_id", lounge.id.to_string()).err().map(|error| error.to_string());
        if refused.is_none() {
            fixture.set("tides", "channel_id", before.clone()).expect("bound again");
        }
        refused
    });
    assert!(why.contains("Send Messages"), "{why}");
    lounge.deny_application(permissions::ATTACH_FILES);
    wait_until("the next denial to be known", DEADLINE, || {
        let Err(error) = fixture.set("tides", "channel_id", lounge.id.to_string()) else {
            fixture.set("tides", "channel_id", before.clone()).expect("bound again");
            return None;
        };
        error.to_string().contains("Attach Files").then_some(())
    });
    lounge.deny_application(permissions::VIEW_CHANNEL);
    assert!(refused(lounge.id.to_string()).contains("cannot see"));
    assert_eq!(fixture.said("tides", "channel_id"), before);
    fixture.discord.take_violations();
}

#[test]
fn what_is_bound_without_a_connection_is_looked_at_with_the_next() {
    let mut fixture = ChannelFixture::new();
    for name in ["maps", "tides"] {
        fixture.client().init(name);
    }
    let lounge = fixture.guild.create_channel("lounge");
    fixture.discord.refuse_connections();
    fixture.away();
    let set = fixture.set("maps", "channel_id", lounge.id.to_string()).expect("bound");
    assert_eq!(set.agent.guild_id, None);
    fixture.set("tides", "channel_id", "77").expect("nobody can tell");
    fixture.discord.forget_sessions();
    fixture.discord.accept_connections();
    fixture.stop();
    fixture.start();
    let mut client = fixture.client();
    wait_until("the server of the channel", DEADLINE, || {
        (client.agent_status("maps").guild_id == Some(fixture.guild.id.to_string())).then_some(())
    });
    fixture.detached("tides");
}
