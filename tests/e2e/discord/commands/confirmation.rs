//! What is asked back: by whom it is answered, how long, and what a restart does to it.

use std::time::Duration;

use chorus_proto::methods::agent::{List, ListParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::discord::FakeDiscord;
use chorus_tests::discord::permissions::{MANAGE_CHANNELS, MANAGE_MESSAGES};
use chorus_tests::{DEADLINE, InProcessDaemon, ManualClock, wait_until};
use jiff::Timestamp;

use super::{CommandFixture, refused};
use crate::home;

#[test]
fn clearing_is_confirmed_and_told_to_everybody() {
    let fixture = CommandFixture::new();
    fixture.slash("context clear", &[]).response_with("already empty");
    fixture.talk("scribe");
    let asked = fixture.slash("context clear", &[]).response_with("Clear the conversation");
    assert!(
        asked.ephemeral && asked.content.contains("2 messages") && asked.content.contains("It is not saved"),
        "{asked:?}"
    );
    fixture.mara.press_button(&asked, "Cancel").response_with("Nothing was changed");
    assert_eq!(fixture.client().message_texts("scribe").len(), 2);

    let asked = fixture.slash("context clear", &[("save", "true")]).response_with("It will be saved first");
    // Somebody who is handed the button, and who has the right: it was not asked of them.
    let vera = fixture.server.add_member("vera", &[], MANAGE_MESSAGES);
    let id = asked.button("Clear").expect("a button").custom_id.clone();
    refused(&vera.press_stale_button(&fixture.room, &asked, &id), "This confirmation is for someone else");
    assert_eq!(fixture.client().message_texts("scribe").len(), 2);
    let done = fixture.mara.press_button(&asked, "Clear");
    let answer = done.response_with("Cleared 2 messages. Saved as");
    assert!(answer.ephemeral && answer.buttons.is_empty());
    fixture.room.wait_for_post("mara cleared the conversation of **scribe**: 2 messages.");
    assert!(fixture.client().message_texts("scribe").is_empty());
    refused(&fixture.mara.press_stale_button(&fixture.room, &asked, &id), "was already answered");
}

#[test]
fn who_loses_the_right_before_the_button_is_pressed_does_nothing() {
    let fixture = CommandFixture::new();
    fixture.talk("scribe");
    let asked = fixture.slash("context clear", &[]).response_with("Clear the conversation");
    fixture.mara.grant_permissions(0);
    refused(&fixture.mara.press_button(&asked, "Clear"), "You don't have permission");
    assert_eq!(fixture.client().message_texts("scribe").len(), 2);
}

#[test]
fn a_question_is_over_after_a_restart() {
    let fixture = CommandFixture::new();
    fixture.talk("scribe");
    let clear = fixture.slash("context clear", &[]).response_with("Clear the conversation");
    let destroy = fixture.slash("agent destroy", &[("name", "scribe")]).response_with("Delete agent");
    let fixture = fixture.restart();
    refused(&fixture.mara.press_button(&clear, "Clear"), "was already answered or has expired");
    refused(&fixture.mara.press_button(&destroy, "Delete"), "was already answered or has expired");
    assert_eq!(fixture.client().message_texts("scribe").len(), 2);
}

#[test]
fn a_question_is_over_after_a_minute() {
    let (discord, home) = (FakeDiscord::start(), home());
    let server = discord.create_guild("home");
    let (hall, mara) =
        (server.create_channel("hall"), server.add_member("mara", &[], MANAGE_CHANNELS | MANAGE_MESSAGES));
    home.write_config(&discord.config_toml());
    let hands = ManualClock::new(Timestamp::from_second(1_771_000_000).expect("a time"));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    mara.run_slash_command(&hall, "ping", &[]).response_with("is online");
    client.init("scribe");
    let room = server.wait_for_channel("scribe");
    client.append("scribe", "something said");
    for (seconds, there) in [(61, 1), (59, 0)] {
        let asked = mara.run_slash_command(&room, "context clear", &[]).response_with("Clear the conversation");
        hands.advance(Duration::from_secs(seconds));
        let what = if there == 1 { "has expired" } else { "Cleared 1 message." };
        mara.press_button(&asked, "Clear").response_with(what);
        assert_eq!(client.message_texts("scribe").len(), there, "after {seconds} s");
    }
}

#[test]
fn destroying_is_confirmed() {
    let fixture = CommandFixture::new();
    fixture.talk("scribe");
    let asked = fixture
        .mara
        .run_slash_command(&fixture.hall, "agent destroy", &[("name", "scribe")])
        .response_with("Delete agent **scribe**?");
    assert!(asked.ephemeral && asked.content.contains("(2 messages) is saved first"), "{asked:?}");
    let done = fixture.mara.press_button(&asked, "Delete");
    done.response_with("Agent **scribe** was deleted. Its conversation was saved as");
    fixture.hall.wait_for_post("was deleted. Its conversation was saved as");
    assert!(fixture.client().call::<List>(&ListParams::default()).expect("agent.list").agents.is_empty());
    wait_until("its channel to go", DEADLINE, || (!fixture.room.exists()).then_some(()));
    let row = fixture.audit().into_iter().rfind(|row| row.action == "discord:agent.destroy").expect("a row");
    assert_eq!((row.agent.as_str(), row.user), ("scribe", format!("discord:{}", fixture.mara.id)));
}
