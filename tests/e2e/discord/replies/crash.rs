//! kill -9 while an answer is on its way.

use std::time::Duration;

use chorus_proto::Role;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::discord::Fault;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};
use serde_json::json;

use super::fixture::ReplyFixture;

/// Three messages.
fn long(number: usize) -> String {
    ["a", "b", "c"].map(|letter| format!("{number}{letter} ").repeat(500)).concat()
}

/// What was said, in the parts that it was posted in.
fn whole(parts: &[chorus_tests::discord::VisibleMessage]) -> String {
    parts.iter().map(|part| part.content.clone() + " ").collect()
}

/// After each request that an answer takes, in turn.
#[test]
fn at_each_stage_of_posting_nothing_is_lost_and_nothing_doubled() {
    let mut fixture = ReplyFixture::new();
    fixture.settled();
    // All answers stay in the window.
    chorusctl(&fixture.home, ["agent", "config", "scribe", "compact_at_tokens", "100000"]).expect_success();
    let (mut again, mut once) = (0, 0);
    for stage in 0..8 {
        let said = long(stage);
        let (head, rest) = said.split_at(500);
        fixture.model.anthropic().queue(Response::text([head]).gate(&format!("go {stage}")).then_text(rest));
        let writes =
            || fixture.discord.requests_to("* /channels/*/messages/**").iter().filter(|r| r.method != "GET").count();
        let before = writes();
        let asked = fixture.ask("go on");
        fixture.model.wait_for_gate(&format!("go {stage}"));
        if stage > 0 {
            wait_until("the live message", DEADLINE, || (writes() > before).then_some(()));
            fixture.model.open_gate(&format!("go {stage}"));
        }
        wait_until("a stage", DEADLINE, || (writes() >= before + stage.min(4)).then_some(()));
        fixture.kill();
        fixture.model.open_gate(&format!("go {stage}"));
        // A turn that was cut off is asked again.
        fixture.model.anthropic().set_fallback(Response::text([said.clone()]));
        let requests = fixture.model.requests().len();
        fixture.start();
        let posts = fixture.answer(asked);
        assert_eq!(whole(&posts), said, "{posts:#?}");
        match fixture.model.requests().len() - requests {
            0 => once += 1,
            1 => again += 1,
            more => panic!("{more} requests for one message"),
        }
    }
    assert!(again > 0 && once > 0, "{again} were asked again, {once} were not");
    assert_eq!(fixture.outbox(), 0);
}

/// A post that is on its way, and the daemon ends: whether it arrived is not known.
fn unsure(fault: Fault, arrives: bool, late: bool) {
    let mut fixture = ReplyFixture::new();
    fixture.settled();
    let posts = format!("POST /channels/{}/messages", fixture.room.id);
    let before = fixture.discord.requests_to(&posts).len();
    fixture.discord.inject_fault(&posts, 1, fault);
    fixture.discord.inject_fault(&posts, 1000, Fault::Status(503));
    fixture.model.anthropic().queue_text(["Once."]);
    let asked = fixture.ask("go on");
    _ = fixture.discord.wait_for_requests(&posts, before + 2);
    assert_eq!(fixture.since(asked).len(), usize::from(arrives));
    fixture.kill();
    if late {
        fixture.age();
        // Discord does not know it by its nonce any more.
        fixture.discord.set_nonce_window(Duration::ZERO);
    }
    fixture.discord.clear_faults();
    fixture.start();
    assert_eq!(fixture.one(asked).content, "Once.");
}

#[test]
fn what_has_arrived_is_not_posted_again() {
    unsure(Fault::LoseResponse, true, false);
}

#[test]
fn what_has_arrived_is_not_posted_again_however_late() {
    unsure(Fault::LoseResponse, true, true);
}

#[test]
fn what_has_not_arrived_is_posted_however_late() {
    unsure(Fault::Status(500), false, true);
}

#[test]
fn a_message_that_grew_is_the_answer_after_a_crash() {
    let mut fixture = ReplyFixture::new();
    fixture.model.anthropic().queue(Response::text(["So far"]).gate("go").then_text(" so good."));
    let asked = fixture.ask("tell me");
    let live = fixture.room.wait_for_post("So far");
    fixture.kill();
    fixture.model.anthropic().queue_text(["Once more."]);
    fixture.start();
    let answer = fixture.one(asked);
    assert_eq!((answer.id, &*answer.content), (live.id, "Once more."), "the turn is asked again");
    // What was answered, but not posted, is posted then.
    fixture.model.anthropic().queue(Response::text(["So far"]).gate("on").then_text(" so good."));
    let asked = fixture.ask("again");
    let live =
        fixture.room.wait_for("a live message", |all| all.iter().find(|post| post.reply_to == Some(asked)).cloned());
    fixture.discord.inject_fault("PATCH /channels/*/messages/*", 1000, Fault::Status(503));
    fixture.model.open_gate("on");
    fixture.conversation_ends("So far so good.");
    fixture.kill();
    fixture.discord.clear_faults();
    fixture.start();
    let answer = fixture.one(asked);
    assert_eq!((answer.id, &*answer.content), (live.id, "So far so good."));
}

#[test]
fn a_turn_that_begins_again_and_is_cut_off_in_a_tool_is_closed() {
    let mut fixture = ReplyFixture::new();
    fixture.model.anthropic().queue(Response::text(["So far"]).gate("never"));
    let asked = fixture.ask("look");
    fixture.room.wait_for_post("So far");
    fixture.kill();
    let call = json!({"command": "echo done"});
    fixture.model.anthropic().queue(Response::text(["I look."]).then_call("c1", "bash", &call));
    fixture.start();
    fixture.room.wait_for_post("waiting for approval");
    fixture.kill();
    fixture.start();
    let posts = fixture.answer(asked);
    assert!(posts.iter().any(|post| post.content.contains("Chorus restarted while answering")), "{posts:#?}");
    let last = fixture.client().messages("scribe").pop().expect("a message");
    assert_eq!((last.role, last.tool_call_id.as_deref(), last.is_error), (Role::ToolResult, Some("c1"), true));
}
