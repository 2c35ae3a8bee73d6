//! Which conversation a message belongs to.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_tests::model_server::Response;

use super::super::inbound::wait_for_claim;
use super::{ThreadFixture, answer_to, answers};

#[test]
fn two_threads_and_the_channel_work_at_once_each_in_its_own_conversation() {
    let threads = ThreadFixture::new();
    let (colours, numbers) = (threads.thread("Fix the Colours!"), threads.thread("numbers"));
    assert!(threads.conversation(&colours).is_none(), "nobody wrote there");
    threads.answer(Response::text(["Blue."]).gate("colours"));
    let first = colours.say(&threads.mara, "Our colour?");
    threads.fixture.server.wait_for_gate("colours");
    threads.talk(&numbers, "Our number?", "Seven.");
    threads.talk(&threads.room, "Our word?", "Bread.");
    threads.fixture.server.open_gate("colours");
    assert_eq!(answer_to(&colours, first).content, "Blue.");
    threads.talk(&colours, "Sure?", "Yes, blue.");
    assert_eq!(threads.texts(&colours), ["Our colour?", "Blue.", "Sure?", "Yes, blue."]);
    assert_eq!(threads.texts(&numbers), ["Our number?", "Seven."]);
    assert_eq!(threads.main_texts(), ["Our word?", "Bread."]);
    let asked = threads.requests();
    assert!(!asked[1].contains("colour") && !asked[2].contains("number"), "{asked:?}");
    assert!(asked[3].contains("Our colour?") && !asked[3].contains("number"), "{}", asked[3]);
    let conversation = threads.conversation(&colours).expect("a conversation");
    assert_eq!(conversation.name, "discord-thread-fix-the-colours");
    assert_eq!(conversation.title.as_deref(), Some("Fix the Colours!"));
    assert_eq!((answers(&colours).len(), answers(&numbers).len(), answers(&threads.room).len()), (2, 1, 1));
}

#[test]
fn messages_of_a_thread_are_answered_in_order_and_follow_their_edits() {
    let threads = ThreadFixture::new();
    let thread = threads.thread("list");
    threads.answer(Response::text(["One."]).gate("go"));
    thread.say(&threads.mara, "first");
    threads.fixture.server.wait_for_gate("go");
    let second = thread.say(&threads.otto, "secnd");
    let third = thread.say(&threads.mara, "third");
    let gone = thread.say(&threads.otto, "a mistake");
    thread.edit_message(second, "second");
    thread.delete_message(gone);
    threads.say("Two.");
    threads.say("Three.");
    wait_for_claim(&threads.fixture.home, second, |state, asked| state == "queued" && asked.contains("second"));
    wait_for_claim(&threads.fixture.home, gone, |state, _| state == "dropped");
    threads.fixture.server.open_gate("go");
    answer_to(&thread, third);
    let texts = ["first", "One.", "second", "Two.", "third", "Three."];
    assert_eq!(threads.texts(&thread), texts);
    assert_eq!(answers(&thread).len(), 3);
}

#[test]
fn a_thread_that_was_there_before_the_agent_is_heard_from_now_on() {
    let threads = ThreadFixture::new();
    let hall = threads.fixture.guild.create_channel("hall");
    let old = threads.fixture.guild.create_thread(&hall, "old");
    old.say(&threads.mara, "Long ago.");
    let params =
        ConfigParams { name: "maps".into(), key: Some("channel_id".into()), value: Some(hall.id.to_string().into()) };
    threads.fixture.client().call::<Config>(&params).expect("agent.config");
    hall.wait_for_post("is ready");
    threads.talk(&old, "And now?", "Here I am.");
    assert_eq!(threads.texts(&old), ["And now?", "Here I am."]);
    // The agent has left the threads of its former channel.
    let left = threads.thread("left");
    left.say(&threads.mara, "Anybody?");
    threads.talk(&old, "Still?", "Yes.");
    assert!(left.application_posts().is_empty());
}

#[test]
fn a_deleted_thread_leaves_its_conversation_saved() {
    let threads = ThreadFixture::new();
    let (thread, other) = (threads.thread("gone"), threads.thread("stays"));
    threads.talk(&thread, "Keep this.", "Kept.");
    threads.talk(&other, "And this.", "Kept, too.");
    thread.delete_channel();
    let saved = threads.closed(&thread).last_session.expect("a session");
    let (_, messages) = threads.fixture.client().get_session_texts(&saved.id.to_string());
    assert_eq!(messages, ["Keep this.", "Kept."]);
    assert_eq!(threads.texts(&other), ["And this.", "Kept, too."]);
    // With the channel its threads are gone.
    threads.room.delete_channel();
    threads.closed(&other);
}

trait SessionTexts {
    fn get_session_texts(&mut self, id: &str) -> (String, Vec<String>);
}

impl SessionTexts for chorus_proto::Client {
    fn get_session_texts(&mut self, id: &str) -> (String, Vec<String>) {
        let (session, messages) = chorus_tests::client_ext::ClientExt::get_session(self, "maps", id);
        (session.header.session_id, messages.into_iter().map(|message| message.content).collect())
    }
}
