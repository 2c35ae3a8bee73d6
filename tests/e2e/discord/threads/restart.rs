//! Threads while the daemon is down, and over its ends.

use chorus_proto::methods::conversations::Conversation;
use chorus_tests::model_server::Response;

use super::{ThreadFixture, answer_to, answers};

#[test]
fn what_was_written_in_threads_while_the_daemon_was_down_is_answered_once_and_in_order() {
    let mut threads = ThreadFixture::new();
    let known = threads.thread("known");
    threads.talk(&known, "zero", "Zero.");
    threads.fixture.stop();
    threads.fixture.server.anthropic().set_fallback(Response::text(["Yes."]));
    let mut asked = vec![known.say(&threads.mara, "one"), known.say(&threads.otto, "two")];
    let new = threads.thread("new");
    let told = new.say(&threads.mara, "first");
    threads.fixture.start();
    answer_to(&new, told);
    for message in &asked {
        answer_to(&known, *message);
    }
    assert_eq!(threads.texts(&known), ["zero", "Zero.", "one", "Yes.", "two", "Yes."]);
    assert_eq!(threads.texts(&new), ["first", "Yes."]);
    // The same when the session is forgotten, and once more when there is nothing new.
    threads.fixture.kill();
    threads.fixture.discord.forget_sessions();
    asked.push(known.say(&threads.mara, "three"));
    threads.fixture.start();
    answer_to(&known, asked[2]);
    threads.fixture.kill();
    threads.fixture.start();
    threads.settle_with("Yes.");
    assert_eq!((answers(&known).len(), answers(&new).len()), (4, 1));
    assert_eq!(threads.texts(&known).len(), 8);
}

#[test]
fn threads_stay_open_over_restarts_that_go_on_with_the_connection() {
    let mut threads = ThreadFixture::new();
    let (known, shut) = (threads.thread("known"), threads.thread("shut"));
    threads.talk(&known, "zero", "Zero.");
    threads.talk(&shut, "one", "One.");
    let begun = threads.fixture.discord.identifies();
    let started = |conversation: Conversation| conversation.context.map(|context| context.started_at);
    let before = threads.conversation(&known).and_then(started);
    threads.fixture.stop();
    threads.fixture.start();
    threads.settle();
    threads.fixture.kill();
    shut.archive();
    threads.fixture.start();
    threads.closed(&shut);
    threads.settle();
    assert_eq!(threads.fixture.discord.identifies(), begun, "the sessions were resumed");
    assert_eq!(threads.texts(&known), ["zero", "Zero."]);
    assert!(before.is_some());
    assert_eq!(threads.conversation(&known).and_then(started), before, "it was closed and brought back");
}

#[test]
fn a_message_that_was_taken_up_before_a_kill_is_answered_in_its_thread() {
    let mut threads = ThreadFixture::new();
    let (first, second) = (threads.thread("first"), threads.thread("second"));
    threads.answer(Response::text(["On"]).gate("never"));
    let cut = first.say(&threads.mara, "one");
    threads.fixture.server.wait_for_gate("never");
    threads.answer(Response::text(["On"]).gate("nor this"));
    let other = second.say(&threads.otto, "two");
    threads.fixture.server.wait_for_gate("nor this");
    threads.fixture.kill();
    threads.fixture.server.anthropic().set_fallback(Response::text(["Yes."]));
    threads.fixture.start();
    assert_eq!((answer_to(&first, cut).content, answer_to(&second, other).content), ("Yes.".into(), "Yes.".into()));
    threads.settle_with("Yes.");
    assert_eq!((threads.texts(&first), threads.texts(&second)), (texts(["one", "Yes."]), texts(["two", "Yes."])));
    assert_eq!((answers(&first).len(), answers(&second).len()), (1, 1));
}

fn texts(texts: [&str; 2]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

impl ThreadFixture {
    /// As `settle`, where every answer is this one.
    fn settle_with(&self, answer: &str) {
        let asked = self.room.say(&self.otto, "Is that all?");
        assert_eq!(answer_to(&self.room, asked).content, answer);
    }
}
