//! What Chorus posts by itself about the conversation of a thread is posted in the thread.

use chorus_tests::discord::permissions::MANAGE_MESSAGES;
use chorus_tests::model_server::Response;
use serde_json::json;

use super::super::channels::ChannelFixture;
use super::{ThreadFixture, answer_to};

#[test]
fn the_idle_notice_of_a_thread_is_posted_in_it_and_restores_it_there() {
    let threads = ThreadFixture::new();
    let thread = threads.thread("colours");
    threads.talk(&thread, "Our colour?", "Blue.");
    threads.fixture.set("maps", "idle_timeout", "1s").expect("set");
    let notice = thread.wait_for_post("Session saved:");
    threads.fixture.set("maps", "idle_timeout", "0").expect("set");
    let ada = threads.fixture.guild.add_member("ada", &[], MANAGE_MESSAGES);
    let session = threads.conversation(&thread).and_then(|one| one.last_session).expect("a session").id;
    ada.press_stale_button(&thread, &notice, &format!("restore:{session}")).response_with("Restored ");
    threads.says(&thread, &["Our colour?", "Blue."]);
    assert!(threads.main_texts().is_empty());
    threads.settle();
    let told = threads.room.application_posts();
    assert!(told.iter().all(|post| !post.content.contains("Session saved:")), "{told:#?}");
}

#[test]
fn an_approval_is_asked_and_answered_in_the_thread() {
    let asking = "[permissions.asking]\nask = [\"tool:list_models:.*\"]\nallow = [\".*\"]\n";
    let fixture = ChannelFixture::with("", asking, "approvers = [\"crew\"]\n");
    let threads = ThreadFixture::of(fixture);
    threads.fixture.set("maps", "permissions", "asking").expect("set");
    let thread = threads.thread("models");
    threads.answer(Response::empty().then_call("c1", "list_models", &json!({})));
    let asked = thread.say(&threads.mara, "Which are there?");
    let question = thread.wait_for_post_with_button("Allow once");
    // The channel goes on meanwhile.
    threads.talk(&threads.room, "Our word?", "Done.");
    threads.say("Those.");
    threads.mara.press_button(&question, "Allow once").response_with("Allowed once.");
    assert_eq!(answer_to(&thread, asked).content, "Those.");
    thread.wait_for_post("**Allowed** by");
    let told = threads.room.application_posts();
    assert!(told.iter().all(|post| !post.content.contains("use a tool")), "{told:#?}");
}

#[test]
fn a_conversation_that_makes_room_is_told_of_in_its_thread() {
    let threads = ThreadFixture::new();
    threads.fixture.set("maps", "max_conversations", 1).expect("set");
    let (first, second) = (threads.thread("first"), threads.thread("second"));
    threads.talk(&first, "one", "One.");
    threads.talk(&second, "two", "Two.");
    let notice = first.wait_for_post("saved and cleared to make room");
    assert!(notice.content.contains("`/context restore") && !notice.content.contains("chorusctl"), "{notice:?}");
    assert!(second.application_posts().iter().all(|post| !post.content.contains("make room")));
    // While all are at work, a message waits.
    threads.answer(Response::text(["Two again."]).gate("go"));
    let held = second.say(&threads.mara, "again");
    threads.fixture.server.wait_for_gate("go");
    threads.say("One again.");
    let waits = first.say(&threads.mara, "again");
    threads.fixture.server.open_gate("go");
    assert_eq!(
        (answer_to(&second, held).content, answer_to(&first, waits).content),
        ("Two again.".into(), "One again.".into())
    );
}
