//! Which conversation a direct message belongs to.

use chorus_tests::model_server::Response;

use super::super::inbound::wait_for_claim;
use super::{DirectFixture, answer_to, answers};

#[test]
fn each_person_has_a_conversation_apart_from_the_channel() {
    let dms = DirectFixture::new();
    assert!(dms.conversation(&dms.mara).is_none(), "nobody wrote");
    let (hers, his) = (dms.direct(&dms.mara), dms.direct(&dms.otto));
    dms.answer(Response::text(["Blue."]).gate("hers"));
    let asked = hers.say(&dms.mara, "Our colour?");
    dms.fixture.server.wait_for_gate("hers");
    dms.talk_direct(&dms.otto, "My number?", "Seven.");
    dms.talk(&dms.mara, &dms.room, "Our word?", "Bread.");
    dms.fixture.server.open_gate("hers");
    assert_eq!(answer_to(&hers, asked).content, "Blue.");
    dms.talk_direct(&dms.mara, "Sure?", "Yes, blue.");
    assert_eq!(dms.texts(&dms.mara), ["Our colour?", "Blue.", "Sure?", "Yes, blue."]);
    assert_eq!(dms.texts(&dms.otto), ["My number?", "Seven."]);
    assert_eq!(dms.main_texts(), ["Our word?", "Bread."]);
    let conversation = dms.conversation(&dms.mara).expect("a conversation");
    assert_eq!((conversation.name.as_str(), conversation.title.as_deref()), ("discord-dm-mara", Some("mara")));
    let request = dms.fixture.server.requests().pop().expect("a request").body["messages"].to_string();
    assert!(request.contains("Our colour?") && !request.contains("number") && !request.contains("word"), "{request}");
    assert_eq!((answers(&hers).len(), answers(&his).len(), answers(&dms.room).len()), (2, 1, 1));
}

#[test]
fn direct_messages_are_answered_in_order_and_follow_their_edits() {
    let dms = DirectFixture::new();
    let direct = dms.direct(&dms.mara);
    dms.answer(Response::text(["One."]).gate("go"));
    direct.say(&dms.mara, "first");
    dms.fixture.server.wait_for_gate("go");
    let second = direct.say(&dms.mara, "secnd");
    let third = direct.say(&dms.mara, "third");
    let gone = direct.say(&dms.mara, "a mistake");
    direct.edit_message(second, "second");
    direct.delete_message(gone);
    dms.say("Two.");
    dms.say("Three.");
    wait_for_claim(&dms.fixture.home, second, |state, asked| state == "queued" && asked.contains("second"));
    wait_for_claim(&dms.fixture.home, gone, |state, _| state == "dropped");
    dms.fixture.server.open_gate("go");
    answer_to(&direct, third);
    assert_eq!(dms.texts(&dms.mara), ["first", "One.", "second", "Two.", "third", "Three."]);
    assert_eq!(answers(&direct).len(), 3);
}

#[test]
fn people_of_one_name_have_conversations_of_different_names() {
    let dms = DirectFixture::new();
    let other = dms.fixture.guild.add_member("mara", &[], 0);
    dms.talk_direct(&dms.mara, "Who am I?", "The first.");
    dms.talk_direct(&other, "Who am I?", "The second.");
    let name = |who| dms.conversation(who).expect("a conversation").name;
    assert_eq!((name(&dms.mara), name(&other)), ("discord-dm-mara".to_owned(), "discord-dm-mara-2".to_owned()));
}
