//! Who is heard, and what is heard of them.

use chorus_proto::SourceKind;
use chorus_proto::methods::send::{Send, SendParams};
use chorus_tests::model_server::Response;
use serde_json::json;

use super::{Rig, asked};

#[test]
fn a_message_is_a_turn_with_its_author_and_the_answer_is_a_reply() {
    let rig = Rig::new();
    rig.mara.set_nick("Mara of the north");
    rig.say("Good day!");
    let id = rig.room.say(&rig.mara, "Good morning.");
    let answer = rig.answer_to(id);
    assert_eq!(answer.content, "Good day!");
    let record = rig.record();
    let message = &record[0];
    assert_eq!((message.content.as_str(), record.len()), ("Good morning.", 2));
    let author = message.author.as_ref().expect("an author");
    assert_eq!((author.id.clone(), author.name.as_str()), (rig.mara.id.to_string(), "Mara of the north"));
    let source = message.source.as_ref().expect("a source");
    assert_eq!(source.kind, SourceKind::Discord);
    assert_eq!(source.channel_id, Some(rig.room.id.to_string()));
    assert_eq!(source.message_id, Some(id.to_string()));
    // The model hears who speaks; the record stays as it came.
    rig.say("And to you.");
    let other = rig.room.say(&rig.otto, "[Mara of the north]\nHello.");
    rig.answer_to(other);
    let requests = rig.models.wait_for_requests(2);
    let heard = asked(&requests[1].body);
    assert_eq!(heard, ["[otto]\n[Mara of the north]\nHello.", "[Mara of the north]\nGood morning."]);
}

#[test]
fn only_what_people_write_is_answered() {
    let rig = Rig::new();
    let bot = rig.server.add_bot("counter");
    let elsewhere = rig.server.create_channel("general");
    elsewhere.say(&rig.mara, "Not here.");
    rig.room.say(&bot, "I am a bot.");
    rig.room.post_by_webhook("news", "I am a webhook.");
    rig.room.say(&rig.discord.own_user(), "I am the application.");
    for kind in [6, 7, 8] {
        rig.room.post_system_message(&rig.mara, kind);
    }
    let thread = json!({
        "id": "990000000000000001", "channel_id": "990000000000000002", "guild_id": "1", "type": 0, "content": "In a thread.",
        "author": {"id": rig.mara.id.to_string(), "username": "mara", "discriminator": "0", "avatar": null},
        "timestamp": "2026-01-01T00:00:00Z", "edited_timestamp": null, "tts": false, "mention_everyone": false,
        "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": false,
    });
    rig.discord.dispatch_event("MESSAGE_CREATE", &thread);
    rig.settle();
    assert_eq!(rig.texts(2), ["Is that all?", "Settled."]);
    assert_eq!(rig.models.requests().len(), 1);
}

#[test]
fn mentions_are_names() {
    let rig = Rig::new();
    let lounge = rig.server.create_channel("lounge");
    rig.say("Yes.");
    let id = rig.room.say(&rig.mara, &format!("Ask <@{}> in <#{}>, not <@1> in <#1>!", rig.otto.id, lounge.id));
    rig.answer_to(id);
    assert_eq!(rig.texts(2)[0], "Ask @otto in #lounge, not <@1> in <#1>!");
}

#[test]
fn a_reply_carries_the_message_that_it_answers() {
    let rig = Rig::new();
    let bot = rig.server.add_bot("counter");
    let plan = rig.room.say_with_files(&bot, "Blue?\nOr green?", &[("a.txt", "text/plain", b"a list")]);
    let gone = rig.room.say(&bot, "Never mind.");
    rig.say("Blue it is.");
    let first = rig.room.reply(&rig.mara, plan, "The first.");
    let answer = rig.answer_to(first).id;
    let said = rig.texts(2).swap_remove(0);
    assert!(said.starts_with("The first.\n\n[in reply to counter]\n> Blue?\n> Or green?\n"), "{said}");
    assert!(said.contains("a list"), "with what came with it: {said}");
    rig.say("Sure.");
    let second = rig.room.reply(&rig.otto, answer, "Sure?");
    rig.answer_to(second);
    assert_eq!(rig.texts(4)[2], "Sure?\n\n[in reply to your message]\n> Blue it is.");
    rig.room.delete_message(gone);
    rig.say("What?");
    let third = rig.room.reply(&rig.mara, gone, "And that?");
    rig.answer_to(third);
    assert_eq!(rig.texts(6)[4], "And that?\n\n[in reply to a message that cannot be seen]");
}

#[test]
fn a_thread_below_the_channel_is_told_once_where_the_agent_hears() {
    let rig = Rig::new();
    let thread = rig.server.create_thread(&rig.room, "aside");
    thread.say(&rig.mara, "And here?");
    let told = thread.wait_for_post("does not hear threads");
    assert!(told.content.contains(&format!("<#{}>", rig.room.id)), "{}", told.content);
    thread.say(&rig.otto, "Really?");
    rig.settle();
    let rig = rig.crash();
    rig.discord.wait_connected();
    thread.say(&rig.mara, "Still not?");
    rig.settle();
    assert_eq!(thread.application_posts().len(), 1);
    // Other channels are nobody's business.
    let lounge = rig.server.create_channel("lounge");
    let aside = rig.server.create_thread(&lounge, "aside");
    aside.say(&rig.mara, "Nobody here.");
    rig.settle();
    assert!(aside.application_posts().is_empty() && lounge.application_posts().is_empty());
}

#[test]
fn typing_is_shown_while_a_turn_works() {
    let rig = Rig::new();
    rig.answer(Response::text(["Yes."]).gate("go"));
    let id = rig.room.say(&rig.mara, "Well?");
    let _ = rig.discord.wait_for_requests("POST /channels/*/typing", 1);
    rig.models.open_gate("go");
    rig.answer_to(id);
}

#[test]
fn messages_are_answered_one_after_the_other() {
    let rig = Rig::new();
    rig.answer(Response::text(["answer 0"]).gate("go"));
    let first = rig.room.say(&rig.mara, "message 0");
    rig.models.wait_for_gate("go");
    for number in 1..5 {
        rig.say(&format!("answer {number}"));
        rig.room.say(if number % 2 == 0 { &rig.mara } else { &rig.otto }, &format!("message {number}"));
    }
    assert_eq!(rig.models.requests().len(), 1, "nothing comes between");
    rig.models.open_gate("go");
    rig.answer_to(first);
    rig.room.wait_for_post("answer 4");
    let due: Vec<String> =
        (0..5).flat_map(|number| [format!("message {number}"), format!("answer {number}")]).collect();
    assert_eq!(rig.texts(10), due);
}

#[test]
fn why_there_is_no_answer_is_said_in_the_channel() {
    let rig = Rig::new();
    rig.config("daily_token_limit", "10");
    rig.answer(Response::text(["Once."]).usage(12, 3));
    let first = rig.room.say(&rig.mara, "Hello.");
    rig.answer_to(first);
    let second = rig.room.say(&rig.mara, "Again.");
    let told = rig.answer_to(second).content;
    assert!(told.contains("Error:") && told.contains("day"), "{told}");
    assert_eq!(rig.texts(2).len(), 2, "nothing is kept of it");
    rig.config("daily_token_limit", "0");
    rig.answer(Response::error(401, r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#));
    let third = rig.room.say(&rig.mara, "And now?");
    let told = rig.answer_to(third).content;
    assert!(told.contains("Error:"), "{told}");
}

#[test]
fn a_hundred_wait_and_the_next_is_told_so() {
    let rig = Rig::new();
    rig.models.anthropic().set_fallback(Response::text(["Yes."]));
    rig.answer(Response::text(["First."]).gate("go"));
    rig.room.say(&rig.mara, "first");
    rig.models.wait_for_gate("go");
    for number in 2..=100 {
        rig.room.say(&rig.mara, &format!("message {number}"));
    }
    let next = rig.room.say(&rig.otto, "one too many");
    let told = rig.answer_to(next).content;
    assert!(told.starts_with("100 messages wait for this agent already"), "{told}");
    for _ in 0..3 {
        let another = rig.room.say(&rig.otto, "and another");
        rig.dropped(another);
    }
    rig.models.open_gate("go");
    // Half of them first: that many turns take their time.
    rig.texts(100);
    let texts = rig.texts(200);
    assert_eq!((texts.len(), texts[198].as_str()), (200, "message 100"));
    // There is room again.
    rig.settle();
    let told = rig.room.application_posts().into_iter().filter(|post| post.content.contains("messages wait")).count();
    assert_eq!(told, 1, "it is said once");
}

#[test]
fn a_channel_where_nothing_can_be_read_is_told_so_once() {
    let rig = Rig::new();
    let message = |id: u64| {
        json!({
            "id": id.to_string(), "channel_id": rig.room.id.to_string(), "type": 0, "content": "",
            "author": {"id": rig.mara.id.to_string(), "username": "mara", "discriminator": "0", "avatar": null},
            "timestamp": "2026-01-01T00:00:00Z", "edited_timestamp": null, "tts": false, "mention_everyone": false,
            "mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "pinned": false,
        })
    };
    let id = rig.room.application_posts()[0].id;
    let told = || rig.room.application_posts().into_iter().filter(|post| post.content.contains("cannot read")).count();
    // A game that others may join, without a word: there is something to see.
    let mut game = message(id + 3);
    game["embeds"] = json!([{"type": "rich", "title": "Chess"}]);
    rig.discord.dispatch_event("MESSAGE_CREATE", &game);
    rig.settle();
    assert_eq!(told(), 0);
    rig.discord.dispatch_event("MESSAGE_CREATE", &message(id + 1));
    rig.room.wait_for_post("cannot read what you write here");
    rig.discord.dispatch_event("MESSAGE_CREATE", &message(id + 2));
    rig.settle();
    assert_eq!((told(), rig.models.requests().len()), (1, 2));
}

#[test]
fn the_same_agent_is_asked_in_its_channel_and_at_the_terminal() {
    let rig = Rig::new();
    rig.say("In the channel.");
    let id = rig.room.say(&rig.mara, "Where are we?");
    rig.answer_to(id);
    rig.say("At the terminal.");
    let params = SendParams { agent: Some("scribe".into()), text: "And now?".into(), ..Default::default() };
    let answer = rig.client().call::<Send>(&params).expect("a turn");
    assert_eq!(answer.reply, "At the terminal.");
    assert_eq!(rig.texts(4), ["Where are we?", "In the channel.", "And now?", "At the terminal."]);
}
