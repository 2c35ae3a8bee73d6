//! One message grows with what is said, and is the answer in the end.

use std::time::Duration;

use chorus_proto::methods::audit::{Audit, AuditParams};
use chorus_tests::discord::Fault;
use chorus_tests::discord::permissions::MANAGE_MESSAGES;
use chorus_tests::model_server::{Response, Step};
use serde_json::json;

use super::fixture::ReplyFixture;

const EDITS: &str = "PATCH /channels/*/messages/*";

#[test]
fn an_answer_grows_in_one_message_and_is_the_reply_in_the_end() {
    let fixture = ReplyFixture::new();
    fixture
        .model
        .anthropic()
        .queue(Response::text(["Hello "]).gate("go").then_text("world.").gate("on").then_text(" Bye."));
    let asked = fixture.ask("say hello");
    let live = fixture.room.wait_for_post_with_button("Stop");
    assert!(live.reply_to == Some(asked) && live.content.starts_with("Hello\n-# step 1 · writing · ~"), "{live:?}");
    fixture.model.open_gate("go");
    fixture.room.wait_for_post("Hello world.");
    fixture.model.open_gate("on");
    let answer = fixture.one(asked);
    assert_eq!((answer.id, &*answer.content), (live.id, "Hello world. Bye."));
    assert!(answer.buttons.is_empty());
    assert_eq!(fixture.outbox(), 0, "what is done with is not kept");
}

#[test]
fn a_quick_answer_is_one_post_and_no_edit() {
    let fixture = ReplyFixture::new();
    fixture.model.anthropic().queue_text(["Four."]);
    let asked = fixture.ask("two and two?");
    let answer = fixture.one(asked);
    assert_eq!((&*answer.content, answer.edit_count(), answer.reply_to), ("Four.", 0, Some(asked)));
}

#[test]
fn the_line_says_which_tool_runs_and_what_waits_for_whom() {
    let fixture = ReplyFixture::new();
    let call = json!({"command": "echo done"});
    fixture.model.anthropic().queue(Response::text(["I look."]).then_call("c1", "bash", &call));
    fixture.model.anthropic().queue(Response::empty().gate("go").then_text("Done."));
    let asked = fixture.ask("look");
    let live = fixture.room.wait_for_post("waiting for approval");
    assert!(live.content.starts_with("I look.\n-# step 1 · ") && live.button("Stop").is_some(), "{live:?}");
    let question = fixture.room.wait_for_post_with_button("No");
    fixture.mara.press_button(&question, "No").wait_for_acknowledgement();
    fixture.room.wait_for_post("bash failed");
    fixture.model.open_gate("go");
    fixture.settled();
    let posts = fixture.since(asked);
    let answer = posts.iter().find(|post| post.reply_to == Some(asked)).expect("an answer");
    assert_eq!((answer.id, &*answer.content), (live.id, "Done."));
}

#[test]
fn who_may_stop_what_others_asked_for_is_written_down() {
    let fixture = ReplyFixture::new();
    fixture.model.anthropic().queue(Response::text(["So far"]).stall());
    let asked = fixture.ask("tell me all");
    let live = fixture.room.wait_for_post("So far");
    fixture.otto.grant_permissions(MANAGE_MESSAGES);
    fixture.otto.press_button(&live, "Stop").wait_for_acknowledgement();
    assert!(fixture.one(asked).content.ends_with("Stopped by otto."));
    let rows = fixture.client().call::<Audit>(&AuditParams::default()).expect("audit").rows;
    let row = rows.iter().find(|row| row.action.starts_with("discord:stop:")).expect("a row");
    assert_eq!(row.user, format!("discord:{}", fixture.otto.id));
}

#[test]
fn the_button_stops_the_turn_for_who_asked_and_for_nobody_else() {
    let fixture = ReplyFixture::new();
    fixture.model.anthropic().queue(Response::text(["So far"]).stall());
    let asked = fixture.ask("tell me all");
    let live = fixture.room.wait_for_post("So far");
    fixture.otto.press_button(&live, "Stop").response_with("You cannot stop another person's turn");
    let stop = fixture.since(asked)[0].button("Stop").cloned().expect("a button");
    assert_eq!(stop.label, "Stop (mara)", "whose turn it is");
    fixture.mara.press_button(&live, "Stop").wait_for_acknowledgement();
    let answer = fixture.one(asked);
    assert_eq!((answer.id, &*answer.content), (live.id, "So far\n\n-# Stopped by mara."));
    // A button that is gone from a message that was looked at before.
    let stale = fixture.mara.press_stale_button(&fixture.room, live.id, &live.buttons[0].custom_id);
    stale.response_with("already ended");
    fixture.model.anthropic().queue_text(["Still here."]);
    assert_eq!(fixture.one(fixture.ask("and now?")).content, "Still here.");
}

#[test]
fn an_error_says_what_happened_and_what_to_do() {
    let fixture = ReplyFixture::new();
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no such `model`"}});
    fixture.model.anthropic().queue(Response::error(404, &body.to_string()));
    let answer = fixture.one(fixture.ask("hello"));
    assert!(answer.content.starts_with("**Error:** ") && answer.content.contains("\n-# "), "{answer:?}");
    // Half of an answer is kept, and stands before.
    let half = Response::text(["Half of"]).gate("go").step(Step::Error("invalid_request_error".into(), "bad".into()));
    fixture.model.anthropic().queue(half);
    let asked = fixture.ask("again");
    fixture.room.wait_for_post("Half of");
    fixture.model.open_gate("go");
    let answer = fixture.one(asked);
    assert!(answer.content.starts_with("Half of\n\n**Error:** "), "{answer:?}");
}

#[test]
fn edits_are_few_and_fewer_where_discord_wants_that() {
    let fixture = ReplyFixture::new();
    let mut many = Response::empty();
    for number in 0..120 {
        many = many.then_text(&format!("{number} ")).step(Step::Pause(Duration::from_millis(30)));
    }
    fixture.model.anthropic().queue(many.clone());
    assert!(fixture.one(fixture.ask("count")).content.ends_with("119"));
    let edits = fixture.discord.requests_to(EDITS).len();
    assert!((2..=5).contains(&edits), "{edits} edits in some four seconds");
    // Told to wait for long it is not shown while it grows, and is there at once when it has ended.
    fixture.discord.inject_fault(EDITS, 1, Fault::RateLimit { after: Duration::from_millis(2500), global: false });
    fixture.model.anthropic().queue(many);
    let asked = fixture.ask("again");
    assert!(fixture.one(asked).content.ends_with("119"));
    let more = fixture.discord.requests_to(EDITS).len() - edits;
    assert!((2..=3).contains(&more), "{more} edits");
}

#[test]
fn whoever_waits_for_others_sees_that_and_can_take_it_back() {
    let fixture = ReplyFixture::new();
    fixture.model.anthropic().queue(Response::text(["First"]).gate("go"));
    let mut client = fixture.client();
    let turn = std::thread::spawn(move || {
        use chorus_proto::methods::send::{Send, SendParams};
        let params = SendParams { agent: Some("scribe".into()), text: "from a shell".into(), ..Default::default() };
        client.call::<Send>(&params).expect("a turn").reply
    });
    fixture.model.wait_for_gate("go");
    let asked = fixture.ask("me, too");
    let live = fixture.room.wait_for_post("waiting for 1 earlier message");
    fixture.mara.press_button(&live, "Stop").wait_for_acknowledgement();
    let answer = fixture.one(asked);
    assert_eq!((answer.id, &*answer.content), (live.id, "-# Stopped by mara."));
    fixture.model.open_gate("go");
    assert_eq!(turn.join().expect("no panic"), "First");
    assert_eq!(fixture.model.requests().len(), 1);
}
