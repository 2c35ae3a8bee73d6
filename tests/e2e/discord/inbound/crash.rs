//! `kill -9` between the claim, the turn and the answer.

use chorus_tests::Daemon;
use chorus_tests::discord::Fault;
use chorus_tests::model_server::Response;

use super::Rig;

#[test]
fn a_turn_that_was_cut_off_before_anything_was_done_is_asked_again_and_what_waited_is_answered() {
    let rig = Rig::new();
    rig.answer(Response::text(["On"]).gate("never"));
    let cut = rig.room.say(&rig.mara, "one");
    rig.models.wait_for_gate("never");
    let waiting = rig.room.say(&rig.mara, "two");
    let third = rig.room.say(&rig.otto, "three");
    rig.claimed(third);
    for answer in ["first", "second", "third"] {
        rig.say(answer);
    }
    let rig = rig.crash();
    assert_eq!(rig.answer_to(cut).content, "first");
    assert_eq!(rig.answer_to(waiting).content, "second");
    rig.room.wait_for_post("third");
    assert_eq!(rig.texts(6), ["one", "first", "two", "second", "three", "third"]);
    assert_eq!(rig.models.requests().len(), 4);
    let rig = rig.crash();
    rig.discord.wait_connected();
    rig.settle();
    assert_eq!(rig.answers().len(), 4, "and nothing is said twice");
}

#[test]
fn a_turn_that_was_cut_off_again_or_after_a_tool_is_told_of() {
    let rig = Rig::new();
    rig.answer(Response::text(["On"]).gate("one"));
    let cut = rig.room.say(&rig.mara, "one");
    rig.models.wait_for_gate("one");
    rig.answer(Response::text(["On"]).gate("two"));
    let rig = rig.crash();
    rig.models.wait_for_gate("two");
    let rig = rig.crash();
    let told = rig.answer_to(cut).content;
    assert!(told.contains("ended in the middle of this turn"), "{told}");
    rig.answer(Response::tool_call("a", "list_agents", &serde_json::json!({})));
    rig.answer(Response::text(["On"]).gate("three"));
    let cut = rig.room.say(&rig.mara, "two");
    rig.models.wait_for_gate("three");
    let rig = rig.crash();
    let told = rig.answer_to(cut).content;
    assert!(told.contains("ended in the middle of this turn"), "{told}");
    rig.settle();
    assert_eq!(rig.models.requests().len(), 5);
}

#[test]
fn an_answer_that_was_given_is_posted_once_though_the_daemon_was_killed_before() {
    let rig = Rig::new();
    // The answer is in the journal, and its way into the channel is shut.
    rig.discord.inject_fault("POST /channels/*/messages", 1000, Fault::Status(503));
    rig.say("Once.");
    let id = rig.room.say(&rig.mara, "Do it.");
    assert_eq!(rig.texts(2), ["Do it.", "Once."]);
    let Rig { models, discord, server, room, mara, otto, home, daemon } = rig;
    daemon.kill9();
    discord.clear_faults();
    let daemon = Daemon::start(&home);
    let rig = Rig { models, discord, server, room, mara, otto, home, daemon };
    assert_eq!(rig.answer_to(id).content, "Once.");
    rig.settle();
    assert_eq!((rig.answers().len(), rig.models.requests().len()), (2, 2));
}

#[test]
fn kills_at_any_moment_lose_and_double_nothing() {
    let mut rig = Rig::new();
    rig.models.anthropic().set_fallback(Response::text(["Yes."]));
    let mut said = Vec::new();
    for round in 0..6 {
        for number in 0..4 {
            said.push(rig.room.say(&rig.mara, &format!("message {round}.{number}")));
        }
        // Nobody waits for anything: the kill comes at another moment each time.
        if round % 2 == 0 {
            rig.room.wait_for("an answer", |posts| {
                posts
                    .iter()
                    .any(|post| post.is_own && post.reply_to.is_some_and(|to| said[said.len() - 4..].contains(&to)))
                    .then_some(())
            });
        }
        rig = rig.crash();
    }
    for message in &said {
        rig.answer_to(*message);
    }
    rig.settle();
    let answers = rig.answers();
    for message in &said {
        let count = answers.iter().filter(|answer| answer.reply_to == Some(*message)).count();
        assert_eq!(count, 1, "{message}");
    }
    let texts = rig.texts(said.len());
    for round in 0..6 {
        for number in 0..4 {
            let text = format!("message {round}.{number}");
            assert_eq!(texts.iter().filter(|said| **said == text).count(), 1, "{text} in {texts:?}");
        }
    }
}

#[test]
fn a_stop_leaves_what_waits_for_the_next_start() {
    let rig = Rig::new();
    rig.answer(Response::text(["On"]).gate("never"));
    let cut = rig.room.say(&rig.mara, "one");
    rig.models.wait_for_gate("never");
    let waiting = rig.room.say(&rig.mara, "two");
    rig.claimed(waiting);
    let Rig { models, discord, server, room, mara, otto, home, daemon } = rig;
    daemon.terminate();
    models.anthropic().queue_text(["second"]);
    let daemon = Daemon::start(&home);
    let rig = Rig { models, discord, server, room, mara, otto, home, daemon };
    assert_eq!(rig.answer_to(waiting).content, "second");
    let told = rig.answer_to(cut).content;
    assert!(told.contains("in the middle of th"), "{told}");
    assert_eq!(rig.answers().len(), 2);
}

#[test]
fn what_was_taken_up_and_cannot_be_read_any_more_is_told_of_and_holds_up_nothing() {
    let rig = Rig::new();
    rig.answer(Response::text(["On"]).gate("never"));
    rig.room.say(&rig.mara, "one");
    rig.models.wait_for_gate("never");
    let (spoilt, last) = (rig.room.say(&rig.mara, "two"), rig.room.say(&rig.mara, "three"));
    rig.claimed(last);
    let Rig { models, discord, server, room, mara, otto, home, daemon } = rig;
    daemon.kill9();
    let conn = rusqlite::Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    conn.execute("UPDATE claims SET asked = '{' WHERE message_id = ?1", [spoilt]).expect("a spoilt row");
    drop(conn);
    models.anthropic().queue_text(["first"]);
    models.anthropic().queue_text(["third"]);
    let daemon = Daemon::start(&home);
    let rig = Rig { models, discord, server, room, mara, otto, home, daemon };
    let told = rig.answer_to(spoilt).content;
    assert!(told.contains("cannot be read any more"), "{told}");
    assert_eq!(rig.answer_to(last).content, "third");
    rig.claim(spoilt, |state, _| state == "done");
}
