//! What Discord refuses, forgets or cannot do now.

use std::time::Duration;

use chorus_tests::discord::permissions::{ATTACH_FILES, READ_MESSAGE_HISTORY, SEND_MESSAGES};
use chorus_tests::discord::{ChannelHandle, Fault};
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};

use super::rig::Rig;

fn posts(room: &ChannelHandle) -> String {
    format!("POST /channels/{}/messages", room.id)
}

fn logged(rig: &Rig, text: &str) {
    wait_until(text, DEADLINE, || rig.daemon().read_log().contains(text).then_some(()));
}

#[test]
fn a_channel_that_has_to_wait_holds_up_no_other_and_loses_nothing() {
    let mut rig = Rig::new();
    let other = rig.agent("other");
    rig.settled();
    let after = Duration::from_secs(1336);
    let before = rig.discord.requests_to(&posts(&rig.room)).len();
    rig.discord.inject_fault(&posts(&rig.room), 1, Fault::RateLimit { after, global: false });
    for word in ["one", "two", "three"] {
        rig.model.anthropic().queue_text([word]);
    }
    let asked = rig.ask("first");
    _ = rig.discord.wait_for_requests(&posts(&rig.room), before + 1);
    rig.conversation_ends("one");
    other.say(&rig.mara, "second");
    let at_once = other.wait_for("an answer", |all| all.iter().find(|post| post.reply_to.is_some()).cloned());
    assert_eq!(at_once.content, "two");
    let second = rig.ask("third");
    rig.conversation_ends("three");
    assert!(rig.since(asked).is_empty());
    assert_eq!(rig.discord.requests_to(&posts(&rig.room)).len(), before + 1, "it is not asked again before its time");
    // A new daemon does not know of the limit, and has what is to be posted.
    rig.kill();
    rig.start();
    rig.settled();
    let answers: Vec<_> = rig.since(asked).into_iter().map(|post| (post.reply_to, post.content)).collect();
    assert_eq!(answers, [(Some(asked), "one".into()), (Some(second), "three".into())]);
}

#[test]
fn what_waits_is_tried_again_when_discord_takes_another_request() {
    let rig = Rig::new();
    rig.settled();
    let (path, before) = (posts(&rig.room), rig.discord.requests_to(&posts(&rig.room)).len());
    rig.discord.inject_fault(&path, usize::MAX, Fault::Status(502));
    rig.model.anthropic().queue_text(["one"]);
    let asked = rig.ask("first");
    // The waits so far were 0.5, 1, 2 and 4 s. The next is 8 s.
    let tries = rig.discord.wait_for_requests(&path, before + 5);
    rig.discord.clear_faults();
    rig.mara.run_slash_command(&rig.room, "ping", &[]).response_with("is there");
    let again = rig.discord.wait_for_requests(&path, before + 6);
    let waited = again[before + 5].at - tries[before + 4].at;
    assert!(waited < Duration::from_secs(6), "nothing woke it for {waited:?}");
    assert_eq!(rig.one(asked).content, "one");
}

#[test]
fn what_may_pass_is_tried_until_it_is_there_and_is_there_once() {
    let rig = Rig::new();
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
        rig.discord.inject_fault(&posts(&rig.room), times, fault);
        rig.model.anthropic().queue_text([&*said]);
        assert_eq!(rig.one(rig.ask("go on")).content, said);
    }
    // The same for what changes a message.
    for fault in [Fault::Status(500), Fault::LoseResponse, Fault::Reset] {
        let said = format!("{fault:?}");
        rig.model.anthropic().queue(Response::text(["So "]).gate(&said).then_text(&said));
        let asked = rig.ask("go on");
        rig.room.wait_for("a live message", |all| all.iter().find(|post| post.reply_to == Some(asked)).map(drop));
        rig.discord.inject_fault("PATCH /channels/*/messages/*", 2, fault);
        rig.model.open_gate(&said);
        assert_eq!(rig.one(asked).content, format!("So {said}"));
    }
}

#[test]
fn a_channel_that_is_deleted_takes_its_posts_with_it_and_nothing_else() {
    let rig = Rig::new();
    let other = rig.agent("other");
    rig.model.anthropic().queue(Response::text(["So far"]).gate("go").then_text("!"));
    rig.ask("tell me");
    rig.room.wait_for_post("So far");
    rig.room.delete_channel();
    rig.model.open_gate("go");
    logged(&rig, "a channel is gone");
    rig.model.anthropic().queue_text(["Here."]);
    other.say(&rig.mara, "and you?");
    assert_eq!(other.wait_for_post("Here.").content, "Here.");
    wait_until("an empty outbox", DEADLINE, || (rig.outbox() == 0).then_some(()));
}

#[test]
fn without_the_permission_to_post_it_goes_on_when_it_has_it_again() {
    let rig = Rig::new();
    rig.settled();
    rig.room.deny_application(SEND_MESSAGES);
    rig.model.anthropic().queue_text(["unheard"]);
    let first = rig.ask("can you hear me?");
    logged(&rig, "a post has to wait until Chorus may post here");
    rig.room.clear_denials();
    assert_eq!(rig.one(first).content, "unheard");
    rig.model.anthropic().queue_text(["Now I can."]);
    assert_eq!(rig.one(rig.ask("and now?")).content, "Now I can.");
}

#[test]
fn a_lesser_permission_that_is_missing_costs_only_what_needs_it() {
    let rig = Rig::new();
    rig.settled();
    rig.room.deny_application(ATTACH_FILES);
    rig.model.anthropic().queue_text(["line\n".repeat(12_000)]);
    let answer = rig.one(rig.ask("all of it"));
    assert!(answer.files.is_empty() && answer.content.contains("Attach Files"), "{answer:?}");
    rig.room.deny_application(READ_MESSAGE_HISTORY);
    rig.model.anthropic().queue_text(["No reply, but an answer."]);
    rig.ask("are you there?");
    assert_eq!(rig.room.wait_for_post("No reply").reply_to, None);
}

#[test]
fn an_answer_whose_message_was_deleted_is_posted_anew() {
    let rig = Rig::new();
    rig.model.anthropic().queue(Response::text(["So far"]).gate("go").then_text("!"));
    let asked = rig.ask("tell me");
    let live = rig.room.wait_for_post("So far");
    rig.room.delete_message(live.id);
    rig.model.open_gate("go");
    let answer = rig.one(asked);
    assert!(answer.id != live.id && answer.content == "So far!", "{answer:?}");
    // So is one to a question that was deleted: it answers nothing then.
    rig.model.anthropic().queue(Response::text(["On my way"]).gate("on"));
    let asked = rig.ask("never mind");
    rig.model.wait_for_gate("on");
    rig.room.delete_message(asked);
    rig.model.open_gate("on");
    rig.room.wait_for_post("On my way");
}
