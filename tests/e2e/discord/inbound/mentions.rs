//! Who is heard, and what is heard of them.

use chorus_proto::SourceKind;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::model_server::Response;
use serde_json::json;

use super::{InboundFixture, asked};

#[test]
fn a_message_is_a_turn_with_its_author_and_the_answer_is_a_reply() {
    let fixture = InboundFixture::new();
    fixture.mara.set_nick("Mara of the north");
    fixture.say("Good day!");
    let id = fixture.room.say(&fixture.mara, "Good morning.");
    let answer = fixture.answer_to(id);
    assert_eq!(answer.content, "Good day!");
    let record = fixture.record();
    let message = &record[0];
    assert_eq!((message.content.as_str(), record.len()), ("Good morning.", 2));
    let author = message.author.as_ref().expect("an author");
    assert_eq!((author.id.clone(), author.name.as_str()), (fixture.mara.id.to_string(), "Mara of the north"));
    let source = message.source.as_ref().expect("a source");
    assert_eq!(source.kind, SourceKind::Discord);
    assert_eq!(source.channel_id, Some(fixture.room.id.to_string()));
    assert_eq!(source.message_id, Some(id.to_string()));
    // The model hears who speaks; the record stays as it came.
    fixture.say("And to you.");
    let other = fixture.room.say(&fixture.otto, "[Mara of the north]\nHello.");
    fixture.answer_to(other);
    let requests = fixture.models.wait_for_requests(2);
    let heard = asked(&requests[1].body);
    assert_eq!(heard, ["[otto]\n[Mara of the north]\nHello.", "[Mara of the north]\nGood morning."]);
}

#[test]
fn only_what_people_write_is_answered() {
    let fixture = InboundFixture::new();
    let bot = fixture.server.add_bot("counter");
    let elsewhere = fixture.server.create_channel("general");
    elsewhere.say(&fixture.mara, "Not here.");
    fixture.room.say(&bot, "I am a bot.");
    fixture.room.post_by_webhook("news", "I am a webhook.");
    fixture.room.say(&fixture.discord.own_user(), "I am the application.");
    for kind in [6, 7, 8] {
        fixture.room.post_system_message(&fixture.mara, kind);
    }
    let thread = json!({
        "id": "990000000000000001", "channel_id": "990000000000000002", "guild_id": "1", "type": 0, "content": "In a thread.",
        "author": {"id": fixture.mara.id.to_string(), "username": "mara", "discriminator": "0", "avatar": null},
        "timestamp": "2026-01-01T00:00:00Z", "edited_timestamp": null, "tts": false, "mention_everyone": false,
        "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": false,
    });
    fixture.discord.dispatch_event("MESSAGE_CREATE", &thread);
    fixture.settle();
    assert_eq!(fixture.texts(2), ["Is that all?", "Settled."]);
    assert_eq!(fixture.models.requests().len(), 1);
}

#[test]
fn mentions_are_names() {
    let fixture = InboundFixture::new();
    let lounge = fixture.server.create_channel("lounge");
    fixture.say("Yes.");
    let id =
        fixture.room.say(&fixture.mara, &format!("Ask <@{}> in <#{}>, not <@1> in <#1>!", fixture.otto.id, lounge.id));
    fixture.answer_to(id);
    assert_eq!(fixture.texts(2)[0], "Ask @otto in #lounge, not <@1> in <#1>!");
}

#[test]
fn a_reply_carries_the_message_that_it_answers() {
    let fixture = InboundFixture::new();
    let bot = fixture.server.add_bot("counter");
    let plan = fixture.room.say_with_files(&bot, "Blue?\nOr green?", &[("a.txt", "text/plain", b"a list")]);
    let gone = fixture.room.say(&bot, "Never mind.");
    fixture.say("Blue it is.");
    let first = fixture.room.reply(&fixture.mara, plan, "The first.");
    let answer = fixture.answer_to(first).id;
    let said = fixture.texts(2).swap_remove(0);
    assert!(said.starts_with("The first.\n\n[in reply to counter]\n> Blue?\n> Or green?\n"), "{said}");
    assert!(said.contains("a list"), "with what came with it: {said}");
    fixture.say("Sure.");
    let second = fixture.room.reply(&fixture.otto, answer, "Sure?");
    fixture.answer_to(second);
    assert_eq!(fixture.texts(4)[2], "Sure?\n\n[in reply to your message]\n> Blue it is.");
    fixture.room.delete_message(gone);
    fixture.say("What?");
    let third = fixture.room.reply(&fixture.mara, gone, "And that?");
    fixture.answer_to(third);
    assert_eq!(fixture.texts(6)[4], "And that?\n\n[in reply to an unavailable message]");
}

#[test]
fn a_thread_below_another_channel_is_nobodys_business() {
    let fixture = InboundFixture::new();
    let lounge = fixture.server.create_channel("lounge");
    let aside = fixture.server.create_thread(&lounge, "aside");
    aside.say(&fixture.mara, "Nobody here.");
    fixture.settle();
    assert!(aside.application_posts().is_empty() && lounge.application_posts().is_empty());
}

#[test]
fn typing_is_shown_while_a_turn_works() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["Yes."]).gate("go"));
    let id = fixture.room.say(&fixture.mara, "Well?");
    let _ = fixture.discord.wait_for_requests("POST /channels/*/typing", 1);
    fixture.models.open_gate("go");
    fixture.answer_to(id);
}

#[test]
fn messages_are_answered_one_after_the_other() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["answer 0"]).gate("go"));
    let first = fixture.room.say(&fixture.mara, "message 0");
    fixture.models.wait_for_gate("go");
    for number in 1..5 {
        fixture.say(&format!("answer {number}"));
        fixture.room.say(if number % 2 == 0 { &fixture.mara } else { &fixture.otto }, &format!("message {number}"));
    }
    assert_eq!(fixture.models.requests().len(), 1, "nothing comes between");
    fixture.models.open_gate("go");
    fixture.answer_to(first);
    fixture.room.wait_for_post("answer 4");
    let due: Vec<String> =
        (0..5).flat_map(|number| [format!("message {number}"), format!("answer {number}")]).collect();
    assert_eq!(fixture.texts(10), due);
}

#[test]
fn why_there_is_no_answer_is_said_in_the_channel() {
    let fixture = InboundFixture::new();
    fixture.config("daily_token_limit", "10");
    fixture.answer(Response::text(["Once."]).usage(12, 3));
    let first = fixture.room.say(&fixture.mara, "Hello.");
    fixture.answer_to(first);
    let second = fixture.room.say(&fixture.mara, "Again.");
    let told = fixture.answer_to(second).content;
    assert!(told.contains("Error:") && told.contains("day"), "{told}");
    assert_eq!(fixture.texts(2).len(), 2, "nothing is kept of it");
    fixture.config("daily_token_limit", "0");
    fixture.answer(Response::error(401, r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#));
    let third = fixture.room.say(&fixture.mara, "And now?");
    let told = fixture.answer_to(third).content;
    assert!(told.contains("Error:"), "{told}");
}

#[test]
fn a_hundred_wait_and_the_next_is_told_so() {
    let fixture = InboundFixture::new();
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    fixture.answer(Response::text(["First."]).gate("go"));
    fixture.room.say(&fixture.mara, "first");
    fixture.models.wait_for_gate("go");
    for number in 2..=100 {
        fixture.room.say(&fixture.mara, &format!("message {number}"));
    }
    let next = fixture.room.say(&fixture.otto, "one too many");
    let told = fixture.answer_to(next).content;
    assert!(told.starts_with("Queue full (100 messages)"), "{told}");
    for _ in 0..3 {
        let another = fixture.room.say(&fixture.otto, "and another");
        fixture.dropped(another);
    }
    fixture.models.open_gate("go");
    // Half of them first: that many turns take their time.
    fixture.texts(100);
    let texts = fixture.texts(200);
    assert_eq!((texts.len(), texts[198].as_str()), (200, "message 100"));
    // There is room again.
    fixture.settle();
    let told = fixture.room.application_posts().into_iter().filter(|post| post.content.contains("Queue full")).count();
    assert_eq!(told, 1, "it is said once");
}

#[test]
fn a_channel_where_nothing_can_be_read_is_told_so_once() {
    let fixture = InboundFixture::new();
    let message = |id: u64| {
        json!({
            "id": id.to_string(), "channel_id": fixture.room.id.to_string(), "type": 0, "content": "",
            "author": {"id": fixture.mara.id.to_string(), "username": "mara", "discriminator": "0", "avatar": null},
            "timestamp": "2026-01-01T00:00:00Z", "edited_timestamp": null, "tts": false, "mention_everyone": false,
            "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": false,
        })
    };
    let id = fixture.room.application_posts()[0].id;
    let told =
        || fixture.room.application_posts().into_iter().filter(|post| post.content.contains("cannot read")).count();
    // A game that others may join, without a word: there is something to see.
    let mut game = message(id + 3);
    game["embeds"] = json!([{"type": "rich", "title": "Chess"}]);
    fixture.discord.dispatch_event("MESSAGE_CREATE", &game);
    fixture.settle();
    assert_eq!(told(), 0);
    fixture.discord.dispatch_event("MESSAGE_CREATE", &message(id + 1));
    fixture.room.wait_for_post("cannot read messages here");
    fixture.discord.dispatch_event("MESSAGE_CREATE", &message(id + 2));
    fixture.settle();
    assert_eq!((told(), fixture.models.requests().len()), (1, 2));
}

#[test]
fn the_same_agent_is_asked_in_its_channel_and_at_the_terminal() {
    let fixture = InboundFixture::new();
    fixture.say("In the channel.");
    let id = fixture.room.say(&fixture.mara, "Where are we?");
    fixture.answer_to(id);
    fixture.say("At the terminal.");
    let params = SendParams { agent: Some("scribe".into()), text: "And now?".into(), ..Default::default() };
    let answer = fixture.client().call::<Send>(&params).expect("a turn");
    assert_eq!(answer.reply, "At the terminal.");
    assert_eq!(fixture.texts(4), ["Where are we?", "In the channel.", "And now?", "At the terminal."]);
}
