//! One message grows with what is said, and is the answer in the end.

use std::time::Duration;

use chorus_proto::methods::audit::{Audit, AuditParams};
use chorus_tests::discord::Fault;
use chorus_tests::discord::permissions::MANAGE_MESSAGES;
use chorus_tests::model_server::{Response, Step};
use serde_json::json;

use super::rig::Rig;

const EDITS: &str = "PATCH /channels/*/messages/*";

#[test]
fn an_answer_grows_in_one_message_and_is_the_reply_in_the_end() {
    let rig = Rig::new();
    rig.model
        .anthropic()
        .queue(Response::text(["Hello "]).gate("go").then_text("world.").gate("on").then_text(" Bye."));
    let asked = rig.ask("say hello");
    let live = rig.room.wait_for_post_with_button("Stop");
    assert!(live.reply_to == Some(asked) && live.content.starts_with("Hello\n-# step 1 · writes · ~"), "{live:?}");
    rig.model.open_gate("go");
    rig.room.wait_for_post("Hello world.");
    rig.model.open_gate("on");
    let answer = rig.one(asked);
    assert_eq!((answer.id, &*answer.content), (live.id, "Hello world. Bye."));
    assert!(answer.buttons.is_empty());
    assert_eq!(rig.outbox(), 0, "what is done with is not kept");
}

#[test]
fn a_quick_answer_is_one_post_and_no_edit() {
    let rig = Rig::new();
    rig.model.anthropic().queue_text(["Four."]);
    let asked = rig.ask("two and two?");
    let answer = rig.one(asked);
    assert_eq!((&*answer.content, answer.edit_count(), answer.reply_to), ("Four.", 0, Some(asked)));
}

#[test]
fn the_line_says_which_tool_runs_and_what_waits_for_whom() {
    let rig = Rig::new();
    let call = json!({"command": "echo done"});
    rig.model.anthropic().queue(Response::text(["I look."]).then_call("c1", "bash", &call));
    rig.model.anthropic().queue(Response::empty().gate("go").then_text("Done."));
    let asked = rig.ask("look");
    let live = rig.room.wait_for_post("waits for approval");
    assert!(live.content.starts_with("I look.\n-# step 1 · ") && live.button("Stop").is_some(), "{live:?}");
    let question = rig.room.wait_for_post_with_button("Deny");
    rig.mara.press_button(&question, "Deny").wait_for_acknowledgement();
    rig.room.wait_for_post("bash failed");
    rig.model.open_gate("go");
    rig.settled();
    let posts = rig.since(asked);
    let answer = posts.iter().find(|post| post.reply_to == Some(asked)).expect("an answer");
    assert_eq!((answer.id, &*answer.content), (live.id, "Done."));
}

#[test]
fn who_may_stop_what_others_asked_for_is_written_down() {
    let rig = Rig::new();
    rig.model.anthropic().queue(Response::text(["So far"]).stall());
    let asked = rig.ask("tell me all");
    let live = rig.room.wait_for_post("So far");
    rig.otto.grant_permissions(MANAGE_MESSAGES);
    rig.otto.press_button(&live, "Stop").wait_for_acknowledgement();
    assert!(rig.one(asked).content.ends_with("Stopped by otto."));
    let rows = rig.client().call::<Audit>(&AuditParams::default()).expect("audit").rows;
    let row = rows.iter().find(|row| row.action.starts_with("discord:stop:")).expect("a row");
    assert_eq!(row.user, format!("discord:{}", rig.otto.id));
}

#[test]
fn the_button_stops_the_turn_for_who_asked_and_for_nobody_else() {
    let rig = Rig::new();
    rig.model.anthropic().queue(Response::text(["So far"]).stall());
    let asked = rig.ask("tell me all");
    let live = rig.room.wait_for_post("So far");
    rig.otto.press_button(&live, "Stop").response_with("only who asked");
    assert!(rig.since(asked)[0].button("Stop").is_some());
    rig.mara.press_button(&live, "Stop").wait_for_acknowledgement();
    let answer = rig.one(asked);
    assert_eq!((answer.id, &*answer.content), (live.id, "So far\n\n-# Stopped by mara."));
    // A button that is gone from a message that was looked at before.
    let stale = rig.mara.press_stale_button(&rig.room, live.id, &live.buttons[0].custom_id);
    stale.response_with("over");
    rig.model.anthropic().queue_text(["Still here."]);
    assert_eq!(rig.one(rig.ask("and now?")).content, "Still here.");
}

#[test]
fn an_error_says_what_happened_and_what_to_do() {
    let rig = Rig::new();
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no such `model`"}});
    rig.model.anthropic().queue(Response::error(404, &body.to_string()));
    let answer = rig.one(rig.ask("hello"));
    assert!(answer.content.starts_with("**Error:** ") && answer.content.contains("\n-# "), "{answer:?}");
    // Half of an answer is kept, and stands before.
    let half = Response::text(["Half of"]).gate("go").step(Step::Error("invalid_request_error".into(), "bad".into()));
    rig.model.anthropic().queue(half);
    let asked = rig.ask("again");
    rig.room.wait_for_post("Half of");
    rig.model.open_gate("go");
    let answer = rig.one(asked);
    assert!(answer.content.starts_with("Half of\n\n**Error:** "), "{answer:?}");
}

#[test]
fn edits_are_few_and_fewer_where_discord_wants_that() {
    let rig = Rig::new();
    let mut many = Response::empty();
    for number in 0..120 {
        many = many.then_text(&format!("{number} ")).step(Step::Pause(Duration::from_millis(30)));
    }
    rig.model.anthropic().queue(many.clone());
    assert!(rig.one(rig.ask("count")).content.ends_with("119"));
    let edits = rig.discord.requests_to(EDITS).len();
    assert!((2..=5).contains(&edits), "{edits} edits in some four seconds");
    // Told to wait for long it is not shown while it grows, and is there at once when it has ended.
    rig.discord.inject_fault(EDITS, 1, Fault::RateLimit { after: Duration::from_millis(2500), global: false });
    rig.model.anthropic().queue(many);
    let asked = rig.ask("again");
    assert!(rig.one(asked).content.ends_with("119"));
    let more = rig.discord.requests_to(EDITS).len() - edits;
    assert!((2..=3).contains(&more), "{more} edits");
}

#[test]
fn whoever_waits_for_others_sees_that_and_can_take_it_back() {
    let rig = Rig::new();
    rig.model.anthropic().queue(Response::text(["First"]).gate("go"));
    let mut client = rig.client();
    let turn = std::thread::spawn(move || {
        use chorus_proto::methods::send::{Send, SendParams};
        let params = SendParams { agent: Some("scribe".into()), text: "from a shell".into(), ..Default::default() };
        client.call::<Send>(&params).expect("a turn").reply
    });
    rig.model.wait_for_gate("go");
    let asked = rig.ask("me, too");
    let live = rig.room.wait_for_post("waits for the turn before it");
    rig.mara.press_button(&live, "Stop").wait_for_acknowledgement();
    let answer = rig.one(asked);
    assert_eq!((answer.id, &*answer.content), (live.id, "-# Stopped by mara."));
    rig.model.open_gate("go");
    assert_eq!(turn.join().expect("no panic"), "First");
    assert_eq!(rig.model.requests().len(), 1);
}
