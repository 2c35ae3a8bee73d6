//! What the daemon tells in channels by itself.

use std::collections::HashSet;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_proto::methods::events::{List, ListParams};
use chorus_proto::{Event, EventType};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::permissions::{APPLICATION_DEFAULT, MANAGE_MESSAGES};
use chorus_tests::discord::{ChannelHandle, Fault};
use chorus_tests::{DEADLINE, wait_until};

use super::catalog;
use super::channels::ChannelFixture;

/// An agent that is idle after a second.
fn restless(fixture: &ChannelFixture, name: &str) -> ChannelHandle {
    let params = InitParams { name: name.into(), idle_timeout: Some("1s".into()), ..InitParams::default() };
    let made = fixture.client().call::<Init>(&params).expect("agent.init");
    fixture.room(&made.agent)
}

fn notices(fixture: &ChannelFixture) -> Vec<Event> {
    let events = fixture.client().call::<List>(&ListParams::default()).expect("events").events;
    events.into_iter().filter(|event| event.kind == EventType::Notice).collect()
}

/// What was posted of that form.
fn posted(room: &ChannelHandle, start: &str) -> Vec<String> {
    room.application_posts().into_iter().map(|post| post.content).filter(|text| text.starts_with(start)).collect()
}

#[test]
fn an_idle_notice_is_posted_as_it_is_with_a_button_that_restores() {
    let fixture = ChannelFixture::new();
    let room = restless(&fixture, "maps");
    let (mara, otto) =
        (fixture.guild.add_member("mara", &[], MANAGE_MESSAGES), fixture.guild.add_member("otto", &[], 0));
    fixture.client().append("maps", "We moved the column.");
    let notice = room.wait_for_post("Session saved:");
    assert_eq!(notices(&fixture)[0].data["text"], notice.content);
    assert!(notice.content.contains("Context cleared after 1 second of inactivity. Use /context restore"));
    fixture.set("maps", "idle_timeout", "0").expect("set");
    assert!(otto.press_button(&notice, "Restore").response_with("don't have permission").ephemeral);
    assert!(fixture.client().message_texts("maps").is_empty());
    mara.press_button(&notice, "Restore").response_with("Restored ");
    assert_eq!(fixture.client().message_texts("maps"), ["We moved the column."]);
    assert_eq!(posted(&room, "Session saved:").len(), 1);
}

#[test]
fn the_button_that_restores_is_offered_where_everybody_may_press_it() {
    let fixture = ChannelFixture::new();
    let room = restless(&fixture, "maps");
    let mara = fixture.guild.add_member("mara", &[], MANAGE_MESSAGES);
    fixture.guild.add_member("otto", &[], 0);
    let notice = |number: usize| {
        fixture.client().append("maps", &format!("Word {number}."));
        room.wait_for("the notice", |messages| {
            let mut notices = messages.iter().filter(|message| message.content.starts_with("Session saved:"));
            notices.nth(number).cloned()
        })
    };
    // Who the others are nobody tells: a server is told anew with how many they are.
    fixture.guild.make_available();
    fixture.agent("first").wait_for_post("is ready");
    assert!(notice(0).button("Restore").is_none());
    fixture.set("maps", "idle_timeout", "0").expect("set");
    mara.run_slash_command(&room, "context restore", &[("session", "latest")]).response_with("Restored");
    fixture.set("maps", "idle_timeout", "1s").expect("set");
    fixture.guild.set_application_permissions(APPLICATION_DEFAULT);
    fixture.guild.make_available();
    fixture.agent("second").wait_for_post("is ready");
    assert!(notice(1).button("Restore").is_some());
}

#[test]
fn the_button_that_restores_is_gone_once_somebody_else_was_heard_in_the_owners_server() {
    let fixture = ChannelFixture::new();
    let room = restless(&fixture, "maps");
    let notice = |number: usize| {
        fixture.client().append("maps", &format!("Word {number}."));
        room.wait_for("the notice", |messages| {
            let mut notices = messages.iter().filter(|message| message.content.starts_with("Session saved:"));
            notices.nth(number).cloned()
        })
    };
    assert!(notice(0).button("Restore").is_some(), "the owner is alone with Chorus");
    // Nobody tells of those who join; their first word does.
    let otto = fixture.guild.add_member("otto", &[], 0);
    let offered = notice(1);
    assert!(offered.button("Restore").is_some(), "Chorus does not know better yet");
    assert!(otto.press_button(&offered, "Restore").response_with("don't have permission").ephemeral);
    assert!(notice(2).button("Restore").is_none());
}

#[test]
fn a_crash_neither_loses_nor_doubles_a_notice() {
    let mut fixture = ChannelFixture::new();
    let room = restless(&fixture, "maps");
    for round in 0..4 {
        fixture.client().append("maps", &format!("Word {round}."));
        if round % 2 == 1 {
            // It is done, and nobody hears of it.
            fixture.discord.inject_fault("POST /channels/*/messages", 1, Fault::LoseResponse);
        }
        wait_until("the notice", DEADLINE, || (notices(&fixture).len() > round).then_some(()));
        fixture.kill();
        fixture.start();
        let all = |messages: &[chorus_tests::discord::VisibleMessage]| {
            let notices = messages.iter().filter(|message| message.content.starts_with("Session saved:")).count();
            (notices > round).then_some(())
        };
        room.wait_for("the notice", all);
    }
    let told: Vec<String> =
        notices(&fixture).iter().map(|event| event.data["text"].as_str().expect("a text").into()).collect();
    let posted = posted(&room, "Session saved:");
    assert_eq!(posted, told, "each once and in order");
    assert_eq!(posted.iter().collect::<HashSet<_>>().len(), 4);
}

#[test]
fn a_stop_and_a_start_are_told_where_a_conversation_goes_on_and_not_again_and_again() {
    let mut fixture = ChannelFixture::new();
    let (maps, idle) = (fixture.agent("maps"), fixture.agent("idle"));
    fixture.client().append("maps", "One.");
    fixture.stop();
    maps.wait_for_post("Chorus is stopping. The conversation is saved and continues when Chorus is back.");
    fixture.start();
    maps.wait_for_post("Chorus restarted.");
    fixture.stop();
    fixture.start();
    for _ in 0..2 {
        fixture.kill();
        fixture.start();
    }
    // What is posted later shows that nothing else is on its way.
    fixture.agent("last").wait_for_post("is ready");
    assert_eq!((posted(&maps, "Chorus is stopping").len(), posted(&maps, "Chorus restarted").len()), (1, 1));
    let last = maps.application_posts().pop().expect("a post").content;
    assert!(last.starts_with("Chorus restarted"), "nobody is left with a stop: {last}");
    assert!(idle.application_posts().iter().all(|post| post.content.contains("is ready")));
    assert_eq!(fixture.client().message_texts("maps"), ["One."]);
}

#[test]
fn a_stop_does_not_wait_for_a_discord_that_hangs() {
    let mut fixture = ChannelFixture::new();
    fixture.agent("maps").wait_for_post("is ready");
    fixture.client().append("maps", "One.");
    fixture.discord.inject_fault("POST /channels/*/messages", 10, Fault::Gate("never"));
    let begun = std::time::Instant::now();
    fixture.stop();
    assert!(begun.elapsed() < DEADLINE / 2, "{:?}", begun.elapsed());
    fixture.discord.open_gate("never");
}

#[test]
fn a_notice_that_waited_for_more_than_a_day_is_dropped_counted_and_told() {
    let mut fixture = ChannelFixture::new();
    let room = restless(&fixture, "maps");
    fixture.discord.inject_fault("POST /channels/*/messages", 1000, Fault::Status(503));
    fixture.client().append("maps", "We moved the column.");
    wait_until("the notice", DEADLINE, || (!notices(&fixture).is_empty()).then_some(()));
    let count = "SELECT count(*) FROM discord_outbox WHERE notice_at IS NOT NULL AND sent_id IS NULL";
    wait_until("the notice to wait", DEADLINE, || (catalog::number(&fixture.home, count) == Some(1)).then_some(()));
    fixture.kill();
    // A day and an hour later.
    let aged = "UPDATE discord_outbox SET notice_at = notice_at - 90000000000000, tried_at = tried_at - 90000000000000";
    assert!(catalog::change(&fixture.home, aged) > 0);
    fixture.discord.clear_faults();
    fixture.start();
    fixture.agent("last").wait_for_post("is ready");
    wait_until("the notice to be counted", DEADLINE, || {
        let checks = fixture.client().call::<Doctor>(&DoctorParams::default()).expect("doctor").checks;
        let told = checks.into_iter().find(|check| check.name == "Discord notices")?;
        told.text.starts_with("dropped 1 unposted notice ").then_some(())
    });
    assert_eq!(posted(&room, "Session saved:"), Vec::<String>::new());
}
