//! What is written while nobody listens.

use chorus_tests::Daemon;
use chorus_tests::discord::Fault;
use chorus_tests::discord::permissions::READ_MESSAGE_HISTORY;
use chorus_tests::model_server::Response;

use super::InboundFixture;

const HISTORY: &str = "GET /channels/*/messages";

#[test]
fn what_was_written_while_the_daemon_was_down_is_answered_once_and_in_order() {
    let fixture = InboundFixture::new();
    fixture.say("zero");
    let before = fixture.room.say(&fixture.mara, "message 0");
    fixture.answer_to(before);
    let InboundFixture { models, discord, server, room, mara, otto, home, daemon } = fixture;
    daemon.terminate();
    let bot = server.add_bot("counter");
    for number in 1..4 {
        room.say(&mara, &format!("message {number}"));
        room.say(&bot, "beep");
        models.anthropic().queue_text([format!("answer {number}")]);
    }
    let deleted = room.say(&mara, "a mistake");
    room.delete_message(deleted);
    let daemon = Daemon::start(&home);
    let fixture = InboundFixture { models, discord, server, room, mara, otto, home, daemon };
    fixture.room.wait_for_post("answer 3");
    let due = ["zero", "answer 1", "answer 2", "answer 3"].into_iter().enumerate();
    let due: Vec<String> = due.flat_map(|(number, answer)| [format!("message {number}"), answer.to_owned()]).collect();
    assert_eq!(fixture.texts(8), due);
    // Once more: there is nothing new.
    let fixture = fixture.crash();
    fixture.discord.wait_connected();
    fixture.settle();
    assert_eq!(fixture.texts(10).len(), 10);
    assert_eq!(fixture.models.requests().len(), 5);
}

#[test]
fn what_was_written_during_an_outage_is_answered_once_and_in_order() {
    let fixture = InboundFixture::new();
    for round in 0..3 {
        fixture.discord.refuse_connections();
        fixture.discord.wait_disconnected();
        let forgotten = round % 2 == 0;
        if forgotten {
            fixture.discord.forget_sessions();
        }
        for number in 0..3 {
            fixture.say(&format!("answer {round}.{number}"));
            fixture.room.say(&fixture.mara, &format!("message {round}.{number}"));
        }
        fixture.discord.accept_connections();
        fixture.room.wait_for_post(&format!("answer {round}.2"));
    }
    let texts = fixture.texts(18);
    let rounds = (0..3).flat_map(|round| (0..3).map(move |number| format!("{round}.{number}")));
    let due: Vec<String> = rounds.flat_map(|of| [format!("message {of}"), format!("answer {of}")]).collect();
    assert_eq!(texts, due);
    assert_eq!(fixture.answers().len(), 9);
}

#[test]
fn a_message_told_before_ready_hides_nothing_that_was_written_before_it() {
    let fixture = InboundFixture::new();
    fixture.discord.refuse_connections();
    fixture.discord.wait_disconnected();
    fixture.discord.forget_sessions();
    for number in 0..3 {
        fixture.say(&format!("answer {number}"));
    }
    fixture.room.say(&fixture.mara, "message 0");
    fixture.room.say(&fixture.otto, "message 1");
    let last = fixture.room.say_before_ready(&fixture.mara, "message 2");
    fixture.discord.accept_connections();
    fixture.answer_to(last);
    assert_eq!(fixture.texts(6), ["message 0", "answer 0", "message 1", "answer 1", "message 2", "answer 2"]);
    assert_eq!(fixture.answers().len(), 3);
}

#[test]
fn the_newest_hundred_are_taken_up_and_the_others_named() {
    let fixture = InboundFixture::new();
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let InboundFixture { models, discord, server, room, mara, otto, home, daemon } = fixture;
    daemon.terminate();
    for number in 0..230 {
        room.say(&mara, &format!("message {number}"));
    }
    let daemon = Daemon::start(&home);
    let fixture = InboundFixture { models, discord, server, room, mara, otto, home, daemon };
    let line = fixture.room.wait_for_post("while Chorus was offline");
    assert!(line.content.contains("older messages were sent"), "{}", line.content);
    let texts = fixture.texts(200);
    assert_eq!((texts.len(), texts[0].as_str(), texts[198].as_str()), (200, "message 130", "message 229"));
    fixture.settle();
    // What was skipped was told of again by the gateway's session, and is skipped all the same.
    let told = |text: &str| fixture.room.application_posts().iter().filter(|post| post.content.contains(text)).count();
    assert_eq!((told("offline"), told("Queue full"), fixture.texts(202).len()), (1, 0, 202));
}

#[test]
fn an_existing_channel_is_heard_from_when_it_is_bound() {
    let fixture = InboundFixture::new();
    let other = fixture.server.create_channel("old");
    let old: Vec<u64> = (0..3).map(|_| other.say(&fixture.mara, "long ago")).collect();
    fixture.config("channel_id", &other.id.to_string());
    // The gateway tells later of what was there before.
    other.redeliver(old[2]);
    fixture.say("Here I am.");
    let id = other.say(&fixture.mara, "Are you here?");
    other.wait_for("an answer", |messages| {
        messages.iter().find(|post| post.is_own && post.reply_to == Some(id)).cloned()
    });
    assert_eq!(fixture.texts(2), ["Are you here?", "Here I am."]);
}

#[test]
fn changes_of_what_waits_are_seen_after_a_restart() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["one"]).gate("never"));
    fixture.room.say(&fixture.mara, "running");
    fixture.models.wait_for_gate("never");
    fixture.room.say(&fixture.mara, "next");
    let deleted = fixture.room.say(&fixture.mara, "a mistake");
    let last = fixture.room.say(&fixture.mara, "last");
    fixture.claimed(last);
    let InboundFixture { models, discord, server, room, mara, otto, home, daemon } = fixture;
    discord.refuse_connections();
    daemon.terminate();
    room.delete_message(deleted);
    room.edit_message(last, "the last");
    // The first of them is held up until the channel was read.
    models.anthropic().queue(Response::empty().gate("read").then_text("two"));
    models.anthropic().queue_text(["three"]);
    let daemon = Daemon::start(&home);
    discord.accept_connections();
    let fixture = InboundFixture { models, discord, server, room, mara, otto, home, daemon };
    fixture.dropped(deleted);
    fixture.says(last, "the last");
    fixture.models.open_gate("read");
    fixture.answer_to(last);
    let texts = fixture.texts(5);
    assert_eq!(texts[texts.len() - 4..], ["next", "two", "the last", "three"]);
}

#[test]
fn what_a_channel_does_not_show_is_neither_deleted_nor_lost() {
    let fixture = InboundFixture::new();
    fixture.answer(Response::text(["one"]).gate("go"));
    fixture.room.say(&fixture.mara, "running");
    fixture.models.wait_for_gate("go");
    let (odd, last) = (fixture.room.say(&fixture.mara, "odd"), fixture.room.say(&fixture.mara, "last"));
    fixture.claimed(last);
    fixture.room.make_unparsable(odd);
    // Without the right to read what was, Discord shows a channel as empty.
    fixture.discord.refuse_connections();
    fixture.discord.wait_disconnected();
    fixture.discord.forget_sessions();
    fixture.room.deny_application(READ_MESSAGE_HISTORY);
    let missed = fixture.room.say(&fixture.mara, "missed");
    let before = fixture.discord.requests_to(HISTORY).len();
    fixture.discord.accept_connections();
    fixture.discord.wait_connected();
    let _ = fixture.discord.wait_for_requests(HISTORY, before + 1);
    let live = fixture.room.say(&fixture.mara, "live");
    fixture.claimed(live);
    fixture.room.clear_denials();
    fixture.claimed(missed);
    for answer in ["two", "three", "four", "five"] {
        fixture.say(answer);
    }
    fixture.models.open_gate("go");
    fixture.answer_to(missed);
    let due = ["running", "one", "odd", "two", "last", "three", "live", "four", "missed", "five"];
    assert_eq!(fixture.texts(10), due);
}

#[test]
fn a_channel_that_may_not_be_read_is_read_once_it_may() {
    let fixture = InboundFixture::new();
    fixture.models.anthropic().set_fallback(Response::text(["Yes."]));
    let miss = |text: &str, times: usize, fault: Fault| {
        fixture.discord.refuse_connections();
        fixture.discord.wait_disconnected();
        fixture.discord.forget_sessions();
        fixture.discord.inject_fault(HISTORY, times, fault);
        let missed = fixture.room.say(&fixture.mara, text);
        let before = fixture.discord.requests_to(HISTORY).len();
        fixture.discord.accept_connections();
        fixture.discord.wait_connected();
        let _ = fixture.discord.wait_for_requests(HISTORY, before + 1);
        missed
    };
    let missed = miss("missed", 1000, Fault::Refuse(403, 50_001, "Missing Access"));
    let live = fixture.room.say(&fixture.mara, "live");
    fixture.answer_to(live);
    fixture.discord.clear_faults();
    fixture.server.make_available();
    fixture.answer_to(missed);
    // What stands before Discord refuses for a moment only.
    let missed = miss("missed, too", 1, Fault::Html403);
    fixture.answer_to(missed);
    assert_eq!(fixture.texts(6), ["live", "Yes.", "missed", "Yes.", "missed, too", "Yes."]);
}

#[test]
fn what_was_written_while_chorus_was_not_in_the_server_is_answered_when_it_is_again() {
    let fixture = InboundFixture::new();
    fixture.server.remove_application();
    let missed = fixture.room.say(&fixture.mara, "Where are you?");
    fixture.say("Here.");
    fixture.server.make_available();
    fixture.answer_to(missed);
    assert_eq!(fixture.texts(2), ["Where are you?", "Here."]);
}
