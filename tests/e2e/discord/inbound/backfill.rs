//! What is written while nobody listens.

use chorus_tests::Daemon;
use chorus_tests::discord::Fault;
use chorus_tests::discord::permissions::READ_MESSAGE_HISTORY;
use chorus_tests::model_server::Response;

use super::Rig;

const HISTORY: &str = "GET /channels/*/messages";

#[test]
fn what_was_written_while_the_daemon_was_down_is_answered_once_and_in_order() {
    let rig = Rig::new();
    rig.say("zero");
    let before = rig.room.say(&rig.mara, "message 0");
    rig.answer_to(before);
    let Rig { models, discord, server, room, mara, otto, home, daemon } = rig;
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
    let rig = Rig { models, discord, server, room, mara, otto, home, daemon };
    rig.room.wait_for_post("answer 3");
    let due = ["zero", "answer 1", "answer 2", "answer 3"].into_iter().enumerate();
    let due: Vec<String> = due.flat_map(|(number, answer)| [format!("message {number}"), answer.to_owned()]).collect();
    assert_eq!(rig.texts(8), due);
    // Once more: there is nothing new.
    let rig = rig.crash();
    rig.discord.wait_connected();
    rig.settle();
    assert_eq!(rig.texts(10).len(), 10);
    assert_eq!(rig.models.requests().len(), 5);
}

#[test]
fn what_was_written_during_an_outage_is_answered_once_and_in_order() {
    let rig = Rig::new();
    for round in 0..3 {
        rig.discord.refuse_connections();
        rig.discord.wait_disconnected();
        let forgotten = round % 2 == 0;
        if forgotten {
            rig.discord.forget_sessions();
        }
        for number in 0..3 {
            rig.say(&format!("answer {round}.{number}"));
            rig.room.say(&rig.mara, &format!("message {round}.{number}"));
        }
        rig.discord.accept_connections();
        rig.room.wait_for_post(&format!("answer {round}.2"));
    }
    let texts = rig.texts(18);
    let rounds = (0..3).flat_map(|round| (0..3).map(move |number| format!("{round}.{number}")));
    let due: Vec<String> = rounds.flat_map(|of| [format!("message {of}"), format!("answer {of}")]).collect();
    assert_eq!(texts, due);
    assert_eq!(rig.answers().len(), 9);
}

#[test]
fn a_message_told_before_ready_hides_nothing_that_was_written_before_it() {
    let rig = Rig::new();
    rig.discord.refuse_connections();
    rig.discord.wait_disconnected();
    rig.discord.forget_sessions();
    for number in 0..3 {
        rig.say(&format!("answer {number}"));
    }
    rig.room.say(&rig.mara, "message 0");
    rig.room.say(&rig.otto, "message 1");
    let last = rig.room.say_before_ready(&rig.mara, "message 2");
    rig.discord.accept_connections();
    rig.answer_to(last);
    assert_eq!(rig.texts(6), ["message 0", "answer 0", "message 1", "answer 1", "message 2", "answer 2"]);
    assert_eq!(rig.answers().len(), 3);
}

#[test]
fn the_newest_hundred_are_taken_up_and_the_others_named() {
    let rig = Rig::new();
    rig.models.anthropic().set_fallback(Response::text(["Yes."]));
    let Rig { models, discord, server, room, mara, otto, home, daemon } = rig;
    daemon.terminate();
    for number in 0..230 {
        room.say(&mara, &format!("message {number}"));
    }
    let daemon = Daemon::start(&home);
    let rig = Rig { models, discord, server, room, mara, otto, home, daemon };
    let line = rig.room.wait_for_post("while Chorus was away");
    assert!(line.content.contains("older messages were written here"), "{}", line.content);
    let texts = rig.texts(200);
    assert_eq!((texts.len(), texts[0].as_str(), texts[198].as_str()), (200, "message 130", "message 229"));
    rig.settle();
    // What was skipped was told of again by the gateway's session, and is skipped all the same.
    let told = |text: &str| rig.room.application_posts().iter().filter(|post| post.content.contains(text)).count();
    assert_eq!((told("away"), told("messages wait"), rig.texts(202).len()), (1, 0, 202));
}

#[test]
fn an_existing_channel_is_heard_from_when_it_is_bound() {
    let rig = Rig::new();
    let other = rig.server.create_channel("old");
    let old: Vec<u64> = (0..3).map(|_| other.say(&rig.mara, "long ago")).collect();
    rig.config("channel_id", &other.id.to_string());
    // The gateway tells later of what was there before.
    other.redeliver(old[2]);
    rig.say("Here I am.");
    let id = other.say(&rig.mara, "Are you here?");
    other.wait_for("an answer", |messages| {
        messages.iter().find(|post| post.is_own && post.reply_to == Some(id)).cloned()
    });
    assert_eq!(rig.texts(2), ["Are you here?", "Here I am."]);
}

#[test]
fn changes_of_what_waits_are_seen_after_a_restart() {
    let rig = Rig::new();
    rig.answer(Response::text(["one"]).gate("never"));
    rig.room.say(&rig.mara, "running");
    rig.models.wait_for_gate("never");
    rig.room.say(&rig.mara, "next");
    let deleted = rig.room.say(&rig.mara, "a mistake");
    let last = rig.room.say(&rig.mara, "last");
    rig.claimed(last);
    let Rig { models, discord, server, room, mara, otto, home, daemon } = rig;
    discord.refuse_connections();
    daemon.terminate();
    room.delete_message(deleted);
    room.edit_message(last, "the last");
    // The first of them is held up until the channel was read.
    models.anthropic().queue(Response::empty().gate("read").then_text("two"));
    models.anthropic().queue_text(["three"]);
    let daemon = Daemon::start(&home);
    discord.accept_connections();
    let rig = Rig { models, discord, server, room, mara, otto, home, daemon };
    rig.dropped(deleted);
    rig.says(last, "the last");
    rig.models.open_gate("read");
    rig.answer_to(last);
    let texts = rig.texts(5);
    assert_eq!(texts[texts.len() - 4..], ["next", "two", "the last", "three"]);
}

#[test]
fn what_a_channel_does_not_show_is_neither_deleted_nor_lost() {
    let rig = Rig::new();
    rig.answer(Response::text(["one"]).gate("go"));
    rig.room.say(&rig.mara, "running");
    rig.models.wait_for_gate("go");
    let (odd, last) = (rig.room.say(&rig.mara, "odd"), rig.room.say(&rig.mara, "last"));
    rig.claimed(last);
    rig.room.make_unparsable(odd);
    // Without the right to read what was, Discord shows a channel as empty.
    rig.discord.refuse_connections();
    rig.discord.wait_disconnected();
    rig.discord.forget_sessions();
    rig.room.deny_application(READ_MESSAGE_HISTORY);
    let missed = rig.room.say(&rig.mara, "missed");
    let before = rig.discord.requests_to(HISTORY).len();
    rig.discord.accept_connections();
    rig.discord.wait_connected();
    let _ = rig.discord.wait_for_requests(HISTORY, before + 1);
    let live = rig.room.say(&rig.mara, "live");
    rig.claimed(live);
    rig.room.clear_denials();
    rig.claimed(missed);
    for answer in ["two", "three", "four", "five"] {
        rig.say(answer);
    }
    rig.models.open_gate("go");
    rig.answer_to(missed);
    let due = ["running", "one", "odd", "two", "last", "three", "live", "four", "missed", "five"];
    assert_eq!(rig.texts(10), due);
}

#[test]
fn a_channel_that_may_not_be_read_is_read_once_it_may() {
    let rig = Rig::new();
    rig.models.anthropic().set_fallback(Response::text(["Yes."]));
    let miss = |text: &str, times: usize, fault: Fault| {
        rig.discord.refuse_connections();
        rig.discord.wait_disconnected();
        rig.discord.forget_sessions();
        rig.discord.inject_fault(HISTORY, times, fault);
        let missed = rig.room.say(&rig.mara, text);
        let before = rig.discord.requests_to(HISTORY).len();
        rig.discord.accept_connections();
        rig.discord.wait_connected();
        let _ = rig.discord.wait_for_requests(HISTORY, before + 1);
        missed
    };
    let missed = miss("missed", 1000, Fault::Refuse(403, 50_001, "Missing Access"));
    let live = rig.room.say(&rig.mara, "live");
    rig.answer_to(live);
    rig.discord.clear_faults();
    rig.server.make_available();
    rig.answer_to(missed);
    // What stands before Discord refuses for a moment only.
    let missed = miss("missed, too", 1, Fault::Html403);
    rig.answer_to(missed);
    assert_eq!(rig.texts(6), ["live", "Yes.", "missed", "Yes.", "missed, too", "Yes."]);
}

#[test]
fn what_was_written_while_chorus_was_not_in_the_server_is_answered_when_it_is_again() {
    let rig = Rig::new();
    rig.server.remove_application();
    let missed = rig.room.say(&rig.mara, "Where are you?");
    rig.say("Here.");
    rig.server.make_available();
    rig.answer_to(missed);
    assert_eq!(rig.texts(2), ["Where are you?", "Here."]);
}
