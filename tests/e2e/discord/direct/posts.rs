//! What Chorus posts about the conversation of direct messages is posted there, and its buttons work there.

use chorus_tests::model_server::Response;
use serde_json::json;

use super::{DirectFixture, answer_to};

#[test]
fn an_approval_is_asked_and_answered_in_the_direct_messages() {
    let asking = "[permissions.asking]\nask = [\"tool:list_models:.*\"]\nallow = [\".*\"]\n";
    let dms = DirectFixture::with(asking, "");
    dms.fixture.set("maps", "permissions", "asking").expect("set");
    let hers = dms.direct(&dms.mara);
    for (button, told) in [("Allow once", "Allowed once."), ("No", "Denied.")] {
        dms.answer(Response::empty().then_call("c1", "list_models", &json!({})));
        let asked = hers.say(&dms.mara, "Which are there?");
        let question = hers.wait_for_post_with_button(button);
        // Nobody else is shown it.
        let listed = dms.mara.run_slash_command(&dms.room, "approvals", &[]);
        listed.response_with("No pending approvals.");
        dms.mara.run_slash_command(&hers, "approvals", &[]).response_with("list_models");
        dms.say("Those.");
        dms.mara.press_button(&question, button).response_with(told);
        assert_eq!(answer_to(&hers, asked).content, "Those.");
    }
    // A reason is asked for by a form.
    dms.answer(Response::empty().then_call("c1", "list_models", &json!({})));
    let asked = hers.say(&dms.mara, "Which are there?");
    let question = hers.wait_for_post_with_button("No, because …");
    let pressed = dms.mara.press_button(&question, "No, because …");
    dms.say("As you like.");
    dms.mara.submit_form(&pressed, "not today").response_with("Denied.");
    assert_eq!(answer_to(&hers, asked).content, "As you like.");
    let told = dms.room.application_posts();
    assert!(told.iter().all(|post| !post.content.contains("list_models")), "{told:#?}");
}

#[test]
fn the_idle_notice_is_posted_in_the_direct_messages_and_restores_the_conversation_there() {
    let dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    dms.talk_direct(&dms.mara, "Our colour?", "Blue.");
    dms.fixture.set("maps", "idle_timeout", "1s").expect("set");
    let notice = hers.wait_for_post_with_button("Restore");
    dms.fixture.set("maps", "idle_timeout", "0").expect("set");
    assert!(notice.content.contains("Session saved:") && dms.texts(&dms.mara).is_empty(), "{notice:?}");
    dms.mara.press_button(&notice, "Restore").response_with("Restored ");
    assert_eq!(dms.texts(&dms.mara), ["Our colour?", "Blue."]);
    dms.settle();
    let told = dms.room.application_posts();
    assert!(told.iter().all(|post| !post.content.contains("Session saved:")), "{told:#?}");
}

#[test]
fn the_stop_button_stops_the_turn() {
    let dms = DirectFixture::new();
    let hers = dms.direct(&dms.mara);
    dms.answer(Response::text(["Red and then", " more"]).gate("never"));
    let asked = hers.say(&dms.mara, "Our colour?");
    let live = hers.wait_for_post_with_button("Stop");
    dms.mara.press_button(&live, "Stop");
    assert!(answer_to(&hers, asked).content.contains("topped"), "{:?}", answer_to(&hers, asked));
}
