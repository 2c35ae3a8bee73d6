//! Messages that are sent while connections fail: none is lost, none is sent twice.

use chorus_proto::ErrorKind;
use crossterm::event::KeyCode;
use jiff::SignedDuration;
use serde_json::json;

use super::fixture::{NARROW, TestScreen, no_connection, now, refused, sent};
use crate::connection::Incoming;
use crate::fleet::Target;
use crate::requests::{Answer, Reach, Request, SendStage};
use crate::state::{Effect, Input};

/// The screen with the conversation of `web` open, which has no approval.
fn open_web() -> (TestScreen, Target) {
    let mut shown = TestScreen::new(NARROW);
    (0..3).for_each(|_| drop(shown.key(KeyCode::Down)));
    shown.key(KeyCode::Enter);
    shown.piece(json!({"attached": {"turn_id": null, "others": []}}));
    (shown, Target::main("web"))
}

fn send(shown: &mut TestScreen, text: &str) -> Vec<Request> {
    shown.type_text(text);
    shown.key(KeyCode::Enter)
}

fn fail(shown: &mut TestScreen, request: Request, failure: crate::requests::Failure) -> Vec<Effect> {
    shown.incoming(Incoming::Answer(request, Err(failure)))
}

#[test]
fn a_message_in_mid_send_is_sent_again_with_its_key_in_either_order_of_failures() {
    for is_disconnected_first in [true, false] {
        let (mut shown, web) = open_web();
        let request = sent(&web, "hello", 1);
        assert_eq!(send(&mut shown, "hello"), std::slice::from_ref(&request));
        assert!(shown.text().contains("\nsending …"), "{}", shown.text());
        if is_disconnected_first {
            shown.incoming(Incoming::Disconnected(None));
        }
        assert_eq!(fail(&mut shown, request.clone(), no_connection()), []);
        if !is_disconnected_first {
            shown.incoming(Incoming::Disconnected(None));
        }
        let text = shown.text();
        assert!(text.contains("you  not confirmed; sent again\n  hello\n"), "{text}");
        let effects = shown.incoming(Incoming::Connected);
        assert!(effects.contains(&Effect::Request(request.clone())), "{effects:?}");
        assert!(shown.text().contains("you  sending …\n  hello\n"), "{}", shown.text());
        shown.incoming(Incoming::SendStage(web.clone(), "-1".into(), SendStage::Started));
        assert!(!shown.text().contains("sending …") && !shown.text().contains("hello"), "{}", shown.text());
        // The failure of its turn is not one of the message.
        fail(&mut shown, request, no_connection());
        assert!(shown.text().ends_with("Ctrl-C cancel/quit") && !shown.text().contains("hello"));
    }
}

#[test]
fn a_message_whose_own_connection_broke_is_sent_again_after_a_second() {
    let (mut shown, web) = open_web();
    let request = send(&mut shown, "hello").remove(0);
    fail(&mut shown, request, no_connection());
    let tick =
        |shown: &mut TestScreen, seconds| shown.state.handle(Input::Tick, now() + SignedDuration::from_secs(seconds));
    let again = Effect::Request(sent(&web, "hello", 1));
    assert!(tick(&mut shown, 1).contains(&again));
    assert!(!tick(&mut shown, 3).contains(&again), "it is on its way");
    shown.answer(sent(&web, "hello", 1), Answer::Sent);
    assert!(!shown.text().contains("hello"));
}

#[test]
fn a_message_that_was_recorded_before_the_daemon_ended_is_not_offered_again() {
    let (mut shown, web) = open_web();
    let request = send(&mut shown, "hello").remove(0);
    fail(&mut shown, request.clone(), no_connection());
    shown.incoming(Incoming::Disconnected(None));
    shown.incoming(Incoming::Connected);
    let failure = refused(ErrorKind::Interrupted, "turn 7 with this idempotency key ended without a reply");
    let effects = fail(&mut shown, request, failure);
    assert!(effects.contains(&Effect::Request(Request::Messages(web, Reach::START))), "{effects:?}");
    let text = shown.text();
    assert!(text.contains("ended without a reply\n>\n") && !text.contains("hello"), "{text}");
}

#[test]
fn only_the_text_that_failed_returns_to_the_line() {
    let (mut shown, web) = open_web();
    send(&mut shown, "first");
    send(&mut shown, "second");
    let text = shown.text();
    assert!(text.contains("you  sending …\n  first\nyou  sending …\n  second\n"), "{text}");
    // Failures of other requests take no text.
    fail(&mut shown, Request::Messages(web.clone(), Reach::START), refused(ErrorKind::Internal, "cannot read"));
    let number = shown.state.open().map_or(0, |open| open.number);
    shown.incoming(Incoming::Detached(number, Some(refused(ErrorKind::Busy, "too many"))));
    assert!(shown.text().contains("too many\n>\n"), "{}", shown.text());
    fail(&mut shown, sent(&web, "first", 1), refused(ErrorKind::InvalidParams, "no model"));
    let text = shown.text();
    assert!(text.contains("you  sending …\n  second\n") && text.contains("no model\n> first\n"), "{text}");
    // Sent again, it has the same key; another text has not.
    assert_eq!(shown.key(KeyCode::Enter), [sent(&web, "first", 1)]);
    fail(&mut shown, sent(&web, "first", 1), refused(ErrorKind::InvalidParams, "no model"));
    shown.type_text("!");
    assert!(!shown.text().contains("no model"), "changed since: {}", shown.text());
    assert_eq!(shown.key(KeyCode::Enter), [sent(&web, "first!", 3)]);
}

#[test]
fn a_failed_message_stays_if_something_is_typed_and_can_be_edited() {
    let (mut shown, web) = open_web();
    send(&mut shown, "first");
    shown.type_text("draft");
    fail(&mut shown, sent(&web, "first", 1), refused(ErrorKind::InvalidParams, "no model"));
    let text = shown.text();
    assert!(text.contains("you  not sent; ↑ edits it: no model\n  first\n") && text.contains("\n> draft\n"), "{text}");
    shown.key(KeyCode::Up);
    let text = shown.text();
    assert!(text.contains("you  not sent; ↑ edits it\n  draft\n") && text.contains("\n> first\n"), "{text}");
    assert_eq!(shown.key(KeyCode::Enter), [sent(&web, "first", 1)]);
    shown.key(KeyCode::Up);
    assert!(shown.text().contains("\n> draft\n") && !shown.text().contains("not sent;"), "{}", shown.text());
    assert_eq!(shown.key(KeyCode::Enter), [sent(&web, "draft", 2)]);
}

#[test]
fn a_message_of_a_closed_conversation_that_fails_is_reported_and_kept() {
    let (mut shown, web) = open_web();
    send(&mut shown, "hello");
    shown.key(KeyCode::Esc);
    fail(&mut shown, sent(&web, "hello", 1), refused(ErrorKind::InvalidParams, "no model"));
    assert!(shown.text().ends_with("not sent to web: no model"), "{}", shown.text());
    shown.key(KeyCode::Enter);
    assert!(shown.text().contains("you  not sent; ↑ edits it: no model\n  hello\n"), "{}", shown.text());
    let (what, hint) = shown.state.unfinished().expect("a message");
    assert_eq!((&*what, &*hint), ("a message to web was not sent", "its text: hello"));
}

#[test]
fn a_queued_message_is_shown_until_its_turn_starts() {
    let (mut shown, web) = open_web();
    send(&mut shown, "later");
    shown.incoming(Incoming::SendStage(web.clone(), "-1".into(), SendStage::Queued(2)));
    assert!(shown.text().contains("you  queued after 2 turns\n  later\n"), "{}", shown.text());
    assert!(shown.state.is_settled());
    shown.incoming(Incoming::SendStage(web, "-1".into(), SendStage::Started));
    assert!(!shown.text().contains("queued after"));
}

#[test]
fn the_screen_is_not_settled_before_the_daemon_has_answered() {
    let (mut shown, web) = open_web();
    assert!(shown.state.is_settled() && shown.state.unfinished().is_none());
    send(&mut shown, "hello");
    assert!(!shown.state.is_settled());
    let (what, hint) = shown.state.unfinished().expect("a message");
    assert_eq!((&*what, &*hint), ("a message to web may not have been sent", "its text: hello"));
    shown.incoming(Incoming::SendStage(web.clone(), "-1".into(), SendStage::Started));
    assert!(shown.state.is_settled() && shown.state.unfinished().is_none());
    shown.control('x');
    assert!(!shown.state.is_settled() && shown.state.unfinished().is_some());
    shown.answer(Request::Cancel(web, None), Answer::Done("no turn is running".into()));
    assert!(shown.state.is_settled() && shown.state.unfinished().is_none());
}

#[test]
fn without_a_connection_nothing_is_sent_and_the_text_stays() {
    let (mut shown, _) = open_web();
    shown.incoming(Incoming::Disconnected(None));
    assert_eq!(send(&mut shown, "hello"), []);
    let text = shown.text();
    assert!(text.contains("not sent: no connection to chorusd; your text is kept\n> hello"), "{text}");
    assert_eq!(shown.control('x'), []);
    assert!(shown.text().ends_with("not done: no connection to chorusd"), "{}", shown.text());
}

#[test]
fn notices_go_when_they_are_not_true_any_more() {
    let (mut shown, _) = open_web();
    let number = shown.state.open().map_or(0, |open| open.number);
    shown.incoming(Incoming::Detached(number, Some(refused(ErrorKind::Busy, "too many"))));
    assert!(shown.text().contains("too many"));
    shown.piece(json!({"attached": {"turn_id": null, "others": []}}));
    assert!(!shown.text().contains("too many"));
    let turn = "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a08";
    shown.piece(json!({"started": {"turn_id": turn}}));
    shown.piece(json!({"ended": {"turn_id": turn, "reason": "cancelled"}}));
    assert!(shown.text().contains("the turn ended without a reply: cancelled"));
    shown.piece(json!({"started": {"turn_id": turn}}));
    assert!(!shown.text().contains("ended without"));
    // Late pieces of an older attachment.
    let text = serde_json::from_value(json!({"text": "of another"})).expect("a piece");
    shown.incoming(Incoming::Turn(number + 1, Box::new(text)));
    assert!(!shown.text().contains("of another"));
}

#[test]
fn an_agent_that_is_gone_is_named_and_all_are_requested() {
    let (mut shown, _) = open_web();
    let number = shown.state.open().map_or(0, |open| open.number);
    let failure = refused(ErrorKind::AgentNotFound, "no agent \"web\"");
    shown.incoming(Incoming::Detached(number, Some(failure)));
    assert!(shown.text().contains("the agent no longer exists"), "{}", shown.text());
    let effects = shown.state.handle(Input::Tick, now() + SignedDuration::from_secs(1));
    assert!(effects.contains(&Effect::Request(Request::Status)), "{effects:?}");
}
