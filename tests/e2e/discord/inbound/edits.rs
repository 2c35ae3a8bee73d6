//! Messages that are changed or deleted before their turn comes.

use std::thread::JoinHandle;

use chorus_proto::methods::send::{Send, SendParams, SendResult};
use chorus_tests::model_server::Response;
use serde_json::json;

use super::Rig;

/// A turn of the terminal, which goes on until the gate `go` opens.
fn at_the_terminal(rig: &Rig) -> JoinHandle<SendResult> {
    rig.answer(Response::text(["one"]).gate("go"));
    let mut client = rig.client();
    let params = SendParams { agent: Some("scribe".into()), text: "terminal".into(), ..Default::default() };
    let turn = std::thread::spawn(move || client.call::<Send>(&params).expect("a turn"));
    rig.models.wait_for_gate("go");
    turn
}

#[test]
fn a_message_that_waits_says_what_it_says_in_the_end_or_nothing() {
    let rig = Rig::new();
    rig.answer(Response::text(["one"]).gate("go"));
    let running = rig.room.say(&rig.mara, "running");
    rig.models.wait_for_gate("go");
    let changed = rig.room.say(&rig.mara, "before");
    let deleted = rig.room.say(&rig.mara, "a mistake");
    let (first, second) = (rig.room.say(&rig.otto, "spam"), rig.room.say(&rig.otto, "spam"));
    let last = rig.room.say(&rig.mara, "last");
    rig.room.edit_message(changed, "after");
    rig.room.delete_message(deleted);
    rig.room.delete_messages(&[first, second]);
    // What runs is as it was.
    rig.room.edit_message(running, "too late");
    rig.room.edit_message(last, "last, and least");
    rig.say("two");
    rig.say("three");
    rig.says(last, "last, and least");
    rig.models.open_gate("go");
    rig.answer_to(last);
    assert_eq!(rig.texts(6), ["running", "one", "after", "two", "last, and least", "three"]);
    let replied: Vec<u64> = rig.answers().iter().filter_map(|answer| answer.reply_to).collect();
    assert_eq!(replied, [running, changed, last]);
}

#[test]
fn so_does_one_that_waits_for_a_turn_of_the_terminal() {
    let rig = Rig::new();
    let terminal = at_the_terminal(&rig);
    let changed = rig.room.say(&rig.mara, "before");
    rig.room.wait_for_post("waits for");
    rig.room.edit_message(changed, "after");
    rig.says(changed, "after");
    let deleted = rig.room.say(&rig.mara, "a mistake");
    rig.claimed(deleted);
    rig.room.delete_message(deleted);
    rig.dropped(deleted);
    rig.say("two");
    rig.models.open_gate("go");
    terminal.join().expect("the client");
    rig.answer_to(changed);
    rig.settle();
    assert_eq!(rig.texts(6), ["terminal", "one", "after", "two", "Is that all?", "Settled."]);
}

#[test]
fn one_that_is_deleted_behind_a_turn_of_the_terminal_is_not_answered() {
    let rig = Rig::new();
    let terminal = at_the_terminal(&rig);
    let deleted = rig.room.say(&rig.mara, "a mistake");
    rig.room.wait_for_post("waits for");
    rig.room.delete_message(deleted);
    rig.room.wait_for_post("taken back");
    rig.models.open_gate("go");
    terminal.join().expect("the client");
    rig.settle();
    assert_eq!(rig.texts(4), ["terminal", "one", "Is that all?", "Settled."]);
}

#[test]
fn what_was_said_when_its_turn_began_holds() {
    let rig = Rig::new();
    rig.answer(Response::text(["one"]).gate("go"));
    let running = rig.room.say(&rig.mara, "running");
    rig.models.wait_for_gate("go");
    rig.room.edit_message(running, "too late");
    rig.room.delete_message(running);
    rig.models.open_gate("go");
    rig.room.wait_for_post("one");
    rig.settle();
    assert_eq!(rig.texts(4), ["running", "one", "Is that all?", "Settled."]);
}

#[test]
fn what_stands_below_a_text_stays_when_that_is_changed() {
    let rig = Rig::new();
    rig.answer(Response::text(["one"]).gate("go"));
    rig.room.say(&rig.mara, "running");
    rig.models.wait_for_gate("go");
    let id = rig.room.messages().last().expect("a message").id + 1;
    let mut message = json!({
        "id": id.to_string(), "channel_id": rig.room.id.to_string(), "type": 0, "content": "before",
        "author": {"id": rig.mara.id.to_string(), "username": "mara", "discriminator": "0", "avatar": null},
        "timestamp": "2026-01-01T00:00:00Z", "edited_timestamp": null, "tts": false, "mention_everyone": false,
        "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": false,
        "sticker_items": [{"id": "1", "name": "wave", "format_type": 1}],
    });
    rig.discord.dispatch_event("MESSAGE_CREATE", &message);
    rig.says(id, "[sticker: wave]");
    message["content"] = "after".into();
    rig.discord.dispatch_event("MESSAGE_UPDATE", &message);
    rig.claim(id, |_, asked| asked.contains("after") && asked.contains("[sticker: wave]"));
    rig.say("two");
    rig.models.open_gate("go");
    assert_eq!(rig.texts(4), ["running", "one", "after\n\n[sticker: wave]", "two"]);
}
