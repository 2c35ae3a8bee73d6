//! Answers that are too long for a message, that have nothing in them, or that would call everybody.

use chorus_tests::discord::permissions::{APPLICATION_DEFAULT, MENTION_EVERYONE};
use chorus_tests::model_server::Response;

use super::fixture::ReplyFixture;

fn said(fixture: &ReplyFixture, text: &str) -> Vec<chorus_tests::discord::VisibleMessage> {
    fixture.model.anthropic().queue_text([text]);
    fixture.answer(fixture.ask("go on"))
}

fn contents(fixture: &ReplyFixture, text: &str) -> Vec<String> {
    said(fixture, text).into_iter().map(|post| post.content).collect()
}

#[test]
fn two_thousand_characters_are_a_message_and_more_are_more() {
    let fixture = ReplyFixture::new();
    for letter in ["x", "漢", "🦀"] {
        assert_eq!(contents(&fixture, &letter.repeat(2000)), [letter.repeat(2000)]);
        assert_eq!(contents(&fixture, &letter.repeat(2001)), [letter.repeat(2000), letter.into()]);
    }
    // Never between the parts of what is one for people.
    let family = "👩‍👩‍👧‍👦";
    let parts = contents(&fixture, &("a".repeat(1996) + &family.repeat(3)));
    assert_eq!(parts, ["a".repeat(1996), family.repeat(3)]);
    let parts = contents(&fixture, &"z".repeat(8000));
    assert_eq!(parts, vec!["z".repeat(2000); 4], "alike, and each of them is there");
}

#[test]
fn a_block_of_code_is_whole_in_every_message() {
    let fixture = ReplyFixture::new();
    let lines: Vec<String> = (0..250).map(|n| format!("let number_{n} = {n};")).collect();
    let parts = contents(&fixture, &format!("Look:\n```rust\n{}\n```\nDone.", lines.join("\n")));
    assert!(parts.len() > 2, "{parts:?}");
    let mut found = Vec::new();
    for part in &parts {
        assert_eq!(part.matches("```").count(), 2, "{part}");
        let code = part.split("```").nth(1).expect("a block").strip_prefix("rust\n").expect("its language");
        found.extend(code.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    }
    assert_eq!(found, lines);
    assert!(parts[parts.len() - 1].ends_with("```\nDone."));
}

#[test]
fn sixty_thousand_characters_are_a_file_with_their_beginning() {
    let fixture = ReplyFixture::new();
    let text: String = (0..6000).map(|n| format!("{n:08}\n\n")).collect();
    assert_eq!(text.len(), 60_000);
    let posts = said(&fixture, &text);
    assert_eq!(posts.len(), 1);
    assert!(posts[0].content.starts_with("00000000\n\n00000001") && posts[0].content.contains("60000 characters"));
    let file = &posts[0].files[0];
    assert_eq!((&*file.name, &*file.bytes), ("answer.md", text.as_bytes()));
    // Also where a message was shown while it grew.
    fixture.model.anthropic().queue(Response::text([&*text]).gate("go"));
    let asked = fixture.ask("again");
    let live = fixture.room.wait_for_post("step 1");
    assert!(live.content.contains("…\n") && live.content.contains("00005999"), "{}", live.content);
    fixture.model.open_gate("go");
    // What was said makes the conversation too long for the model, and that is told, too.
    let answer = fixture.answer(asked).into_iter().find(|post| post.reply_to == Some(asked)).expect("an answer");
    assert!(answer.id == live.id && answer.files[0].bytes == text.as_bytes());
}

#[test]
fn nothing_said_is_told_and_nobody_is_called() {
    let fixture = ReplyFixture::new();
    assert_eq!(contents(&fixture, " \n "), ["(no text)"]);
    // Even where it might.
    fixture.server.set_application_permissions(APPLICATION_DEFAULT | MENTION_EVERYONE);
    let posts = said(&fixture, &format!("@everyone and @here and <@{}>", fixture.otto.id));
    assert!(!posts[0].mentions_everyone && posts[0].content.starts_with("@everyone"), "{posts:?}");
    for request in fixture.discord.requests_to("* /channels/*/messages/**") {
        if !request.body.is_null() {
            assert_eq!(request.body["allowed_mentions"], serde_json::json!({"parse": []}), "{request:?}");
        }
    }
}
