//! Frames as a terminal shows them, and what keys do.

mod fixture;
mod panels;

use chorus_proto::ErrorKind;
use crossterm::event::KeyCode;
use insta::assert_snapshot;
use jiff::SignedDuration;
use serde_json::json;

use crate::connection::Incoming;
use crate::fleet::Target;
use crate::requests::{Answer, Failure, Request};
use crate::state::{Effect, Input};
use fixture::{NARROW, Shown, WIDE, golden, now, read, status};

#[test]
fn the_list_fits_a_small_and_a_large_terminal() {
    assert_snapshot!("list_80x24", Shown::new(NARROW).text());
    assert_snapshot!("list_200x60", Shown::new(WIDE).text());
    let narrow = Shown::new((40, 10)).text();
    assert!(narrow.lines().all(|line| chorus_terminal_text::text::width(line) <= 40), "{narrow}");
}

#[test]
fn a_terminal_that_is_too_small_is_named() {
    let text = Shown::new((39, 9)).text();
    assert!(text.starts_with("terminal too small\n39x9; needs 40x10"), "{text}");
}

#[test]
fn a_home_without_agents_says_what_to_do() {
    let mut shown = Shown::empty(NARROW);
    assert!(shown.text().starts_with("connecting to chorusd …"));
    shown.incoming(Incoming::Connected);
    let mut empty = status(0);
    empty["agents"] = json!([]);
    shown.answer(Request::Status, Answer::Status(read(empty)));
    assert!(shown.text().contains("no agents yet\nstart a conversation: chorusctl chat"), "{}", shown.text());
}

#[test]
fn escape_sequences_of_a_title_are_not_drawn() {
    let text = Shown::new(WIDE).text();
    assert!(text.contains("2 h: Rate limiter ␛[31mfor 你好") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn while_the_daemon_is_away_the_last_picture_stays() {
    let mut shown = Shown::new(NARROW);
    shown.incoming(Incoming::Disconnected);
    shown.state.handle(Input::Tick, now() + SignedDuration::from_secs(65));
    let text = shown.text();
    assert!(text.contains("chorusd has stopped; trying again for 1 min"), "{text}");
    assert!(text.contains("api") && text.contains("docs-日"), "{text}");
    let lost = |shown: &mut Shown| shown.incoming(Incoming::Answer(Request::Approvals, Err(no_connection())));
    assert_eq!(lost(&mut shown), []);
    assert!(!shown.text().contains("lost the connection"));
    // Everything is requested again.
    let effects = shown.incoming(Incoming::Connected);
    assert!(effects.contains(&Effect::Request(Request::Status)), "{effects:?}");
    assert!(!shown.text().contains("stopped"));
}

fn no_connection() -> Failure {
    Failure { message: "lost the connection to the daemon".into(), hint: None, kind: None }
}

#[test]
fn the_selected_row_stays_selected_when_rows_move() {
    let mut shown = Shown::new(NARROW);
    shown.key(KeyCode::End);
    shown.key(KeyCode::Char('h'));
    assert!(shown.text().contains("History of claude-code"));
    shown.key(KeyCode::Esc);
    for _ in 0..3 {
        shown.key(KeyCode::Up);
    }
    let mut one = status(0);
    let mut web = one["agents"][2].clone();
    assert_eq!(web["name"], "web");
    web["state"] = "active".into();
    web["context"] = one["agents"][1]["context"].clone();
    one["agents"] = json!([web]);
    shown.key(KeyCode::Char('h'));
    assert!(shown.text().contains("History of web"));
    shown.key(KeyCode::Esc);
    let rank = |text: &str| text.lines().position(|line| line.starts_with("web"));
    let before = rank(&shown.text());
    shown.answer(Request::Agent("web".into()), Answer::Status(read(one)));
    assert_eq!(before, rank(&shown.text()), "it is active now, and its name is the last of these");
    shown.event(
        json!({"seq": 10, "time": "2026-03-05T08:00:00Z", "type": "agent.destroyed", "agent": "api", "data": {}}),
    );
    shown.key(KeyCode::Char('h'));
    assert!(shown.text().contains("History of web"), "{}", shown.text());
}

#[test]
fn events_are_requested_together_and_few_at_a_time() {
    let mut shown = Shown::new(NARROW);
    let event = |agent: String| json!({"seq": 9, "time": "2026-03-05T08:00:00Z", "type": "message.appended", "agent": agent, "data": {}});
    for number in 0..40 {
        let effects = shown.event(event(format!("worker-{}", number % 20)));
        assert_eq!(effects, [], "a round was sent just now");
    }
    let agents = |shown: &mut Shown, seconds| {
        let effects = shown.state.handle(Input::Tick, now() + SignedDuration::from_secs(seconds));
        effects.iter().filter(|effect| matches!(effect, Effect::Request(Request::Agent(_)))).count()
    };
    assert_eq!([1, 2, 3].map(|seconds| agents(&mut shown, seconds)), [16, 4, 0], "each once");
}

#[test]
fn a_conversation_is_written_in_and_shows_the_turn() {
    let mut shown = Shown::new(NARROW);
    shown.key(KeyCode::Down);
    let target = Target { agent: "api".into(), conversation: Some("review".into()) };
    let effects = shown.handle(Input::Key(KeyCode::Enter.into()));
    assert_eq!(effects, [Effect::Attach(target.clone(), 1)]);
    let effects = shown.piece(json!({"attached": {"turn_id": null, "others": []}}));
    assert_eq!(effects, [Effect::Request(Request::Messages(target.clone()))]);
    let messages = golden::<chorus_proto::methods::context::Show>(include_str!(
        "../../../../proto/golden/v1/context.show.result.json"
    ));
    shown.answer(Request::Messages(target.clone()), Answer::Messages(Box::new(messages)));
    shown.type_text("and the back-fill?");
    assert_eq!(shown.key(KeyCode::Enter), [Request::Send(target.clone(), "and the back-fill?".into())]);
    for piece in [
        json!({"message": {"id": "m9", "role": "user", "text": "and the back-fill?"}}),
        json!({"started": {"turn_id": "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a08"}}),
        json!({"text": "I look\u{1b}[2J "}),
        json!({"text": "at the script."}),
        json!({"tool": {"id": "c", "name": "bash", "gist": "python backfill.py --dry-run"}}),
        json!({"result": {"id": "c", "name": "bash", "is_error": false, "output": {"text": "1\n2\n3\n4\n5\n6\n7", "lines": 9}}}),
        json!({"text": "It would add 214 rows."}),
    ] {
        shown.piece(piece);
    }
    assert_snapshot!("conversation_80x24", shown.text());
    let effects = shown.piece(json!({"ended": {"turn_id": "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a08"}}));
    assert_eq!(effects, [Effect::Request(Request::Messages(target))]);
    assert_eq!(shown.handle(Input::Key(KeyCode::Esc.into())), [Effect::Detach]);
    assert!(shown.text().contains("AGENT"));
}

#[test]
fn a_message_that_was_not_sent_comes_back_to_the_line() {
    let mut shown = Shown::new(NARROW);
    shown.key(KeyCode::Enter);
    shown.type_text("hello");
    shown.key(KeyCode::Enter);
    let target = Target::main("api");
    let failure = Failure {
        message: "api has no model".into(),
        hint: Some("chorusctl models add NAME URL".into()),
        kind: Some(ErrorKind::InvalidParams),
    };
    shown.incoming(Incoming::Answer(Request::Send(target, "hello".into()), Err(failure)));
    shown.state.approvals.clear();
    let text = shown.text();
    assert!(text.contains("api has no model (chorusctl models add NAME URL)\n> hello"), "{text}");
    shown.incoming(Incoming::Disconnected);
    assert_eq!(shown.key(KeyCode::Enter), []);
    assert!(shown.text().contains("not sent: chorusd does not run; the text stays here\n> hello"), "{}", shown.text());
}

#[test]
fn keys_leave_suspend_and_redraw() {
    let mut shown = Shown::new(NARROW);
    assert_eq!(shown.control('z'), [Effect::Suspend]);
    assert_eq!(shown.control('l'), [Effect::Clear]);
    assert_eq!(shown.handle(Input::Key(KeyCode::Char('q').into())), [Effect::Leave]);
    shown.key(KeyCode::Enter);
    shown.type_text("q");
    assert!(shown.text().contains("> q"), "a letter of a message");
    assert_eq!(shown.control('c'), [Effect::Leave]);
}
