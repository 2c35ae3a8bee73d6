//! `kill -9` between the claim, the turn and the answer.

use chorus_tests::Daemon;
use chorus_tests::discord::Fault;
use chorus_tests::model_server::Response;

use super::super::catalog;
use super::InboundFixture;

#[test]
fn a_turn_that_was_cut_off_before_anything_was_done_is_asked_again_and_what_waited_is_answered() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["On"]).gate("never"));
    let cut = fixture.room.say(&fixture.mara, "one");
    fixture.models.wait_for_gate("never");
    let waiting = fixture.room.say(&fixture.mara, "two");
    let third = fixture.room.say(&fixture.otto, "three");
    fixture.claimed(third);
    for answer in ["first", "second", "third"] {
        fixture.say(answer);
    }
    let fixture = fixture.crash();
    assert_eq!(fixture.answer_to(cut).content, "first");
    assert_eq!(fixture.answer_to(waiting).content, "second");
    fixture.room.wait_for_post("third");
    assert_eq!(fixture.texts(6), ["one", "first", "two", "second", "three", "third"]);
    assert_eq!(fixture.models.requests().len(), 4);
    let fixture = fixture.crash();
    fixture.discord.wait_connected();
    fixture.settle();
    assert_eq!(fixture.answers().len(), 4, "and nothing is said twice");
}

#[test]
fn a_turn_that_was_cut_off_four_times_or_after_a_tool_is_told_of() {
    let mut fixture = InboundFixture::new();
    fixture.answer(Response::text(["On"]).gate("1"));
    let cut = fixture.room.say(&fixture.mara, "one");
    fixture.models.wait_for_gate("1");
    for gate in ["2", "3", "4"] {
        fixture.answer(Response::text(["On"]).gate(gate));
        fixture = fixture.crash();
        fixture.models.wait_for_gate(gate);
    }
    let fixture = fixture.crash();
    let told = fixture.answer_to(cut).content;
    assert!(told.contains("restarted while answering"), "{told}");
    fixture.answer(Response::tool_call("a", "list_agents", &serde_json::json!({})));
    fixture.answer(Response::text(["On"]).gate("three"));
    let cut = fixture.room.say(&fixture.mara, "two");
    fixture.models.wait_for_gate("three");
    let fixture = fixture.crash();
    let told = fixture.answer_to(cut).content;
    assert!(told.contains("restarted while answering"), "{told}");
    fixture.settle();
    assert_eq!(fixture.models.requests().len(), 7);
}

#[test]
fn an_answer_that_was_given_is_posted_once_though_the_daemon_was_killed_before() {
    let fixture = InboundFixture::new();
    // The answer is in the journal, and its way into the channel is shut.
    fixture.discord.inject_fault("POST /channels/*/messages", 1000, Fault::Status(503));
    fixture.say("Once.");
    let id = fixture.room.say(&fixture.mara, "Do it.");
    assert_eq!(fixture.texts(2), ["Do it.", "Once."]);
    let InboundFixture { models, discord, server, room, mara, otto, home, daemon } = fixture;
    daemon.kill9();
    discord.clear_faults();
    let daemon = Daemon::start(&home);
    let fixture = InboundFixture { models, discord, server, room, mara, otto, home, daemon };
    assert_eq!(fixture.answer_to(id).content, "Once.");
    fixture.settle();
    assert_eq!((fixture.answers().len(), fixture.models.requests().len()), (2, 2));
}

#[test]
fn kills_at_any_moment_lose_and_double_nothing() {
    let mut fixture = InboundFixture::new();
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let mut said = Vec::new();
    for round in 0..6 {
        for number in 0..4 {
            said.push(fixture.room.say(&fixture.mara, &format!("message {round}.{number}")));
        }
        // Nobody waits for anything: the kill comes at another moment each time.
        if round % 2 == 0 {
            fixture.room.wait_for("an answer", |posts| {
                posts
                    .iter()
                    .any(|post| post.is_own && post.reply_to.is_some_and(|to| said[said.len() - 4..].contains(&to)))
                    .then_some(())
            });
        }
        fixture = fixture.crash();
    }
    for message in &said {
        fixture.answer_to(*message);
    }
    fixture.settle();
    let answers = fixture.answers();
    for message in &said {
        let count = answers.iter().filter(|answer| answer.reply_to == Some(*message)).count();
        assert_eq!(count, 1, "{message}");
    }
    let texts = fixture.texts(said.len());
    for round in 0..6 {
        for number in 0..4 {
            let text = format!("message {round}.{number}");
            assert_eq!(texts.iter().filter(|said| **said == text).count(), 1, "{text} in {texts:?}");
        }
    }
}

#[test]
fn a_stop_leaves_what_waits_for_the_next_start() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["On"]).gate("never"));
    let cut = fixture.room.say(&fixture.mara, "one");
    fixture.models.wait_for_gate("never");
    let waiting = fixture.room.say(&fixture.mara, "two");
    fixture.claimed(waiting);
    let InboundFixture { models, discord, server, room, mara, otto, home, daemon } = fixture;
    daemon.terminate();
    models.anthropic().queue_text(["second"]);
    let daemon = Daemon::start(&home);
    let fixture = InboundFixture { models, discord, server, room, mara, otto, home, daemon };
    assert_eq!(fixture.answer_to(waiting).content, "second");
    let told = fixture.answer_to(cut).content;
    assert!(told.contains("during the turn"), "{told}");
    assert_eq!(fixture.answers().len(), 2);
}

#[test]
fn what_was_taken_up_and_cannot_be_read_any_more_is_told_of_and_holds_up_nothing() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["On"]).gate("never"));
    fixture.room.say(&fixture.mara, "one");
    fixture.models.wait_for_gate("never");
    let (spoilt, last) = (fixture.room.say(&fixture.mara, "two"), fixture.room.say(&fixture.mara, "three"));
    fixture.claimed(last);
    let InboundFixture { models, discord, server, room, mara, otto, home, daemon } = fixture;
    daemon.kill9();
    let spoil = format!("UPDATE claims SET asked = '{{' WHERE message_id = {spoilt}");
    assert_eq!(catalog::change(&home, &spoil), 1);
    models.anthropic().queue_text(["first"]);
    models.anthropic().queue_text(["third"]);
    let daemon = Daemon::start(&home);
    let fixture = InboundFixture { models, discord, server, room, mara, otto, home, daemon };
    let told = fixture.answer_to(spoilt).content;
    assert!(told.contains("cannot read this saved message"), "{told}");
    assert_eq!(fixture.answer_to(last).content, "third");
    fixture.claim(spoilt, |state, _| state == "done");
}
