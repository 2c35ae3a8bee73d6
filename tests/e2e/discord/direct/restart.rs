//! Direct messages while the daemon is down, and over its ends.

use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;

use super::{DirectFixture, answer_to, answers};

#[test]
fn what_was_written_while_the_daemon_was_down_is_answered_once_and_in_order() {
    let mut dms = DirectFixture::new();
    let (hers, his) = (dms.direct(&dms.mara), dms.direct(&dms.otto));
    dms.talk_direct(&dms.mara, "zero", "Zero.");
    dms.talk_direct(&dms.otto, "null", "Null.");
    dms.fixture.stop();
    dms.fixture.server.anthropic().set_fallback(Response::text(["Yes."]));
    let asked = [hers.say(&dms.mara, "one"), hers.say(&dms.mara, "two"), his.say(&dms.otto, "eins")];
    dms.fixture.start();
    answer_to(&hers, asked[1]);
    answer_to(&his, asked[2]);
    assert_eq!(dms.texts(&dms.mara), ["zero", "Zero.", "one", "Yes.", "two", "Yes."]);
    assert_eq!(dms.texts(&dms.otto), ["null", "Null.", "eins", "Yes."]);
    // The same when the session is forgotten, and once more when there is nothing new.
    dms.fixture.kill();
    dms.fixture.discord.forget_sessions();
    let third = hers.say(&dms.mara, "three");
    dms.fixture.start();
    answer_to(&hers, third);
    dms.fixture.kill();
    dms.fixture.start();
    let last = dms.room.say(&dms.mara, "Is that all?");
    answer_to(&dms.room, last);
    assert_eq!((answers(&hers).len(), answers(&his).len()), (4, 2));
    assert_eq!((dms.texts(&dms.mara).len(), dms.texts(&dms.otto).len()), (8, 4));
}

#[test]
fn so_is_what_was_written_to_an_agent_that_has_the_name_of_a_destroyed_one() {
    let mut dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    dms.talk_direct(&dms.mara, "one", "First.");
    chorusctl(&dms.fixture.home, ["agent", "destroy", "maps", "--yes"]).expect_success();
    dms.room = dms.fixture.agent("maps");
    dms.talk_direct(&dms.mara, "two", "Second.");
    dms.fixture.stop();
    dms.fixture.server.anthropic().set_fallback(Response::text(["Yes."]));
    let asked = hers.say(&dms.mara, "three");
    dms.fixture.start();
    answer_to(&hers, asked);
    assert_eq!(dms.texts(&dms.mara), ["two", "Second.", "three", "Yes."]);
}

#[test]
fn a_message_that_was_taken_up_before_a_kill_is_answered_in_its_conversation() {
    let mut dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    dms.answer(Response::text(["On"]).gate("never"));
    let cut = hers.say(&dms.mara, "one");
    dms.fixture.server.wait_for_gate("never");
    let waits = hers.say(&dms.mara, "two");
    super::super::inbound::wait_for_claim(&dms.fixture.home, waits, |state, _| state == "queued");
    dms.fixture.kill();
    dms.fixture.server.anthropic().set_fallback(Response::text(["Yes."]));
    dms.fixture.start();
    assert_eq!((answer_to(&hers, cut).content, answer_to(&hers, waits).content), ("Yes.".into(), "Yes.".into()));
    assert_eq!(dms.texts(&dms.mara), ["one", "Yes.", "two", "Yes."]);
    assert_eq!((answers(&hers).len(), dms.main_texts().len()), (2, 0));
}
