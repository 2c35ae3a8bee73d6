//! What Discord refuses, forgets or cannot do now.

use std::time::Duration;

use chorus_tests::discord::permissions::{ATTACH_FILES, READ_MESSAGE_HISTORY, SEND_MESSAGES};
use chorus_tests::discord::{ChannelHandle, Fault};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};

use super::fixture::ReplyFixture;

fn posts(room: &ChannelHandle) -> String {
    format!("POST /channels/{}/messages", room.id)
}

fn logged(fixture: &ReplyFixture, text: &str) {
    wait_until(text, DEADLINE, || fixture.daemon().read_log().contains(text).then_some(()));
}

#[test]
fn a_channel_that_has_to_wait_holds_up_no_other_and_loses_nothing() {
    let mut fixture = ReplyFixture::new();
    let other = fixture.agent("other");
    fixture.settled();
    let after = Duration::from_secs(1336);
    let before = fixture.discord.requests_to(&posts(&fixture.room)).len();
    fixture.discord.inject_fault(&posts(&fixture.room), 1, Fault::RateLimit { after, global: false });
    for word in ["one", "two", "three"] {
        fixture.model.anthropic().queue_text([word]);
    }
    let asked = fixture.ask("first");
    _ = fixture.discord.wait_for_requests(&posts(&fixture.room), before + 1);
    fixture.conversation_ends("one");
    other.say(&fixture.mara, "second");
    let at_once = other.wait_for("an answer", |all| all.iter().find(|post| post.reply_to.is_some()).cloned());
    assert_eq!(at_once.content, "two");
    let second = fixture.ask("third");
    fixture.conversation_ends("three");
    assert!(fixture.since(asked).is_empty());
    assert_eq!(
        fixture.discord.requests_to(&posts(&fixture.room)).len(),
        before + 1,
        "it is not asked again before its time"
    );
    // A new daemon does not know of the limit, and has what is to be posted.
    fixture.kill();
    fixture.start();
    fixture.settled();
    let answers: Vec<_> = fixture.since(asked).into_iter().map(|post| (post.reply_to, post.content)).collect();
    assert_eq!(answers, [(Some(asked), "one".into()), (Some(second), "three".into())]);
}

#[test]
fn what_waits_is_tried_again_when_discord_takes_another_request() {
    let fixture = ReplyFixture::new();
    fixture.settled();
    let (path, before) = (posts(&fixture.room), fixture.discord.requests_to(&posts(&fixture.room)).len());
    fixture.discord.inject_fault(&path, usize::MAX, Fault::Status(502));
    fixture.model.anthropic().queue_text(["one"]);
    let asked = fixture.ask("first");
    // The waits so far were 0.5, 1, 2 and 4 s. The next is 8 s.
    let tries = fixture.discord.wait_for_requests(&path, before + 5);
    fixture.discord.clear_faults();
    fixture.mara.run_slash_command(&fixture.room, "ping", &[]).response_with("is online");
    let again = fixture.discord.wait_for_requests(&path, before + 6);
    let waited = again[before + 5].at - tries[before + 4].at;
    assert!(waited < Duration::from_secs(6), "nothing woke it for {waited:?}");
    assert_eq!(fixture.one(asked).content, "one");
}

#[test]
fn what_may_pass_is_tried_until_it_is_there_and_is_there_once() {
    let fixture = ReplyFixture::new();
    let short = Duration::from_millis(50);
    for (fault, times) in [
        (Fault::Status(502), 3),
        (Fault::Reset, 2),
        (Fault::LoseResponse, 1),
        (Fault::Html403, 2),
        (Fault::RateLimit { after: short, global: false }, 2),
        (Fault::RateLimit { after: short, global: true }, 1),
    ] {
        let said = format!("{fault:?}").replace(['{', '}'], "").trim().to_owned();
        fixture.discord.inject_fault(&posts(&fixture.room), times, fault);
        fixture.model.anthropic().queue_text([&*said]);
        assert_eq!(fixture.one(fixture.ask("go on")).content, said);
    }
    // The same for what changes a message.
    for fault in [Fault::Status(500), Fault::LoseResponse, Fault::Reset] {
        let said = format!("{fault:?}");
        fixture.model.anthropic().queue(Response::text(["So "]).gate(&said).then_text(&said));
        let asked = fixture.ask("go on");
        fixture.room.wait_for("a live message", |all| all.iter().find(|post| post.reply_to == Some(asked)).map(drop));
        fixture.discord.inject_fault("PATCH /channels/*/messages/*", 2, fault);
        fixture.model.open_gate(&said);
        assert_eq!(fixture.one(asked).content, format!("So {said}"));
    }
}

#[test]
fn a_channel_that_is_deleted_takes_its_posts_with_it_and_nothing_else() {
    let fixture = ReplyFixture::new();
    let other = fixture.agent("other");
    fixture.model.anthropic().queue(Response::text(["So far"]).gate("go").then_text("!"));
    fixture.ask("tell me");
    fixture.room.wait_for_post("So far");
    fixture.room.delete_channel();
    fixture.model.open_gate("go");
    logged(&fixture, "a channel was deleted");
    fixture.model.anthropic().queue_text(["Here."]);
    other.say(&fixture.mara, "and you?");
    assert_eq!(other.wait_for_post("Here.").content, "Here.");
    wait_until("an empty outbox", DEADLINE, || (fixture.outbox() == 0).then_some(()));
}

#[test]
fn without_the_permission_to_post_it_goes_on_when_it_has_it_again() {
    let fixture = ReplyFixture::new();
    fixture.settled();
    fixture.room.deny_application(SEND_MESSAGES);
    fixture.model.anthropic().queue_text(["unheard"]);
    let first = fixture.ask("can you hear me?");
    logged(&fixture, "a post is delayed until Chorus has permission to post here");
    fixture.room.clear_denials();
    assert_eq!(fixture.one(first).content, "unheard");
    fixture.model.anthropic().queue_text(["Now I can."]);
    assert_eq!(fixture.one(fixture.ask("and now?")).content, "Now I can.");
}

#[test]
fn a_lesser_permission_that_is_missing_costs_only_what_needs_it() {
    let fixture = ReplyFixture::new();
    fixture.settled();
    fixture.room.deny_application(ATTACH_FILES);
    fixture.model.anthropic().queue_text(["line\n".repeat(12_000)]);
    let answer = fixture.one(fixture.ask("all of it"));
    assert!(answer.files.is_empty() && answer.content.contains("Attach Files"), "{answer:?}");
    fixture.room.deny_application(READ_MESSAGE_HISTORY);
    fixture.model.anthropic().queue_text(["No reply, but an answer."]);
    fixture.ask("are you there?");
    assert_eq!(fixture.room.wait_for_post("No reply").reply_to, None);
}

#[test]
fn an_answer_whose_message_was_deleted_is_posted_anew() {
    let fixture = ReplyFixture::new();
    fixture.model.anthropic().queue(Response::text(["So far"]).gate("go").then_text("!"));
    let asked = fixture.ask("tell me");
    let live = fixture.room.wait_for_post("So far");
    fixture.room.delete_message(live.id);
    fixture.model.open_gate("go");
    let answer = fixture.one(asked);
    assert!(answer.id != live.id && answer.content == "So far!", "{answer:?}");
    // So is one to a question that was deleted: it answers nothing then.
    fixture.model.anthropic().queue(Response::text(["On my way"]).gate("on"));
    let asked = fixture.ask("never mind");
    fixture.model.wait_for_gate("on");
    fixture.room.delete_message(asked);
    fixture.model.open_gate("on");
    fixture.room.wait_for_post("On my way");
}
