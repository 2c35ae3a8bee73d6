//! Messages that are changed or deleted before their turn comes.

use std::thread::JoinHandle;

use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_tests::model_server::Response;
use serde_json::json;

use super::InboundFixture;

/// A turn of the terminal, which goes on until the gate `go` opens.
fn at_the_terminal(fixture: &InboundFixture) -> JoinHandle<SendResult> {
    fixture.answer(Response::text(["one"]).gate("go"));
    let mut client = fixture.client();
    let params = SendParams { agent: Some("scribe".into()), text: "terminal".into(), ..Default::default() };
    let turn = std::thread::spawn(move || client.call::<Send>(&params).expect("a turn"));
    fixture.models.wait_for_gate("go");
    turn
}

#[test]
fn a_message_that_waits_says_what_it_says_in_the_end_or_nothing() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["one"]).gate("go"));
    let running = fixture.room.say(&fixture.mara, "running");
    fixture.models.wait_for_gate("go");
    let changed = fixture.room.say(&fixture.mara, "before");
    let deleted = fixture.room.say(&fixture.mara, "a mistake");
    let (first, second) = (fixture.room.say(&fixture.otto, "spam"), fixture.room.say(&fixture.otto, "spam"));
    let last = fixture.room.say(&fixture.mara, "last");
    fixture.room.edit_message(changed, "after");
    fixture.room.delete_message(deleted);
    fixture.room.delete_messages(&[first, second]);
    // What runs is as it was.
    fixture.room.edit_message(running, "too late");
    fixture.room.edit_message(last, "last, and least");
    fixture.say("two");
    fixture.say("three");
    fixture.says(last, "last, and least");
    fixture.models.open_gate("go");
    fixture.answer_to(last);
    assert_eq!(fixture.texts(6), ["running", "one", "after", "two", "last, and least", "three"]);
    let replied: Vec<u64> = fixture.answers().iter().filter_map(|answer| answer.reply_to).collect();
    assert_eq!(replied, [running, changed, last]);
}

#[test]
fn so_does_one_that_waits_for_a_turn_of_the_terminal() {
    let fixture = InboundFixture::new();
    let terminal = at_the_terminal(&fixture);
    let changed = fixture.room.say(&fixture.mara, "before");
    fixture.room.wait_for_post("waiting for");
    fixture.room.edit_message(changed, "after");
    fixture.says(changed, "after");
    let deleted = fixture.room.say(&fixture.mara, "a mistake");
    fixture.claimed(deleted);
    fixture.room.delete_message(deleted);
    fixture.dropped(deleted);
    fixture.say("two");
    fixture.models.open_gate("go");
    terminal.join().expect("the client");
    fixture.answer_to(changed);
    fixture.settle();
    assert_eq!(fixture.texts(6), ["terminal", "one", "after", "two", "Is that all?", "Settled."]);
}

#[test]
fn one_that_is_deleted_behind_a_turn_of_the_terminal_is_not_answered() {
    let fixture = InboundFixture::new();
    let terminal = at_the_terminal(&fixture);
    let deleted = fixture.room.say(&fixture.mara, "a mistake");
    fixture.room.wait_for_post("waiting for");
    fixture.room.delete_message(deleted);
    fixture.room.wait_for_post("was deleted");
    fixture.models.open_gate("go");
    terminal.join().expect("the client");
    fixture.settle();
    assert_eq!(fixture.texts(4), ["terminal", "one", "Is that all?", "Settled."]);
}

#[test]
fn what_was_said_when_its_turn_began_holds() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["one"]).gate("go"));
    let running = fixture.room.say(&fixture.mara, "running");
    fixture.models.wait_for_gate("go");
    fixture.room.edit_message(running, "too late");
    fixture.room.delete_message(running);
    fixture.models.open_gate("go");
    fixture.room.wait_for_post("one");
    fixture.settle();
    assert_eq!(fixture.texts(4), ["running", "one", "Is that all?", "Settled."]);
}

#[test]
fn what_stands_below_a_text_stays_when_that_is_changed() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["one"]).gate("go"));
    fixture.room.say(&fixture.mara, "running");
    fixture.models.wait_for_gate("go");
    let id = fixture.room.messages().last().expect("a message").id + 1;
    let mut message = json!({
        "id": id.to_string(), "channel_id": fixture.room.id.to_string(), "type": 0, "content": "before",
        "author": {"id": fixture.mara.id.to_string(), "username": "mara", "discriminator": "0", "avatar": null},
        "timestamp": "2026-01-01T00:00:00Z", "edited_timestamp": null, "tts": false, "mention_everyone": false,
        "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": false,
        "sticker_items": [{"id": "1", "name": "wave", "format_type": 1}],
    });
    fixture.discord.dispatch_event("MESSAGE_CREATE", &message);
    fixture.says(id, "[sticker: wave]");
    message["content"] = "after".into();
    fixture.discord.dispatch_event("MESSAGE_UPDATE", &message);
    fixture.claim(id, |_, asked| asked.contains("after") && asked.contains("[sticker: wave]"));
    fixture.say("two");
    fixture.models.open_gate("go");
    assert_eq!(fixture.texts(4), ["running", "one", "after\n\n[sticker: wave]", "two"]);
}
