//! Frames as a terminal shows them, and what keys do.

mod approvals;
mod fixture;
mod health;
mod panels;
mod reading;
mod sends;
mod styles;

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use jiff::SignedDuration;
use ratatui_core::style::Modifier;
use serde_json::json;

use crate::connection::Incoming;
use crate::fleet::Target;
use crate::requests::{Answer, Reach, Request};
use crate::state::{Effect, Input};
use fixture::{NARROW, TestScreen, WIDE, golden, no_connection, now, read, sent, status};

#[test]
fn the_list_fits_a_small_and_a_large_terminal() {
    assert_snapshot!("list_80x24", TestScreen::new(NARROW).text());
    assert_snapshot!("list_200x60", TestScreen::new(WIDE).text());
    let narrow = TestScreen::new((40, 10)).text();
    assert!(narrow.lines().all(|line| chorus_terminal_text::text::width(line) <= 40), "{narrow}");
}

#[test]
fn a_terminal_that_is_too_small_is_named() {
    let text = TestScreen::new((39, 9)).text();
    assert!(text.starts_with("terminal too small\n39x9; needs 40x10"), "{text}");
}

#[test]
fn a_home_without_agents_says_what_to_do() {
    let mut shown = TestScreen::empty(NARROW);
    assert!(shown.text().starts_with("connecting to chorusd …"));
    shown.incoming(Incoming::Connected);
    let mut empty = status(0);
    empty["agents"] = json!([]);
    shown.answer(Request::Status, Answer::Status(read(empty)));
    assert!(shown.text().contains("no agents yet\nstart a conversation: chorusctl chat"), "{}", shown.text());
}

#[test]
fn escape_sequences_of_a_title_are_not_drawn() {
    let text = TestScreen::new(WIDE).text();
    assert!(text.contains("2 h: Rate limiter ␛[31mfor 你好") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn while_the_daemon_is_away_the_last_picture_stays() {
    let mut shown = TestScreen::new(NARROW);
    shown.incoming(Incoming::Disconnected(None));
    shown.state.handle(Input::Tick, now() + SignedDuration::from_secs(65));
    let text = shown.text();
    assert!(text.contains("no connection to chorusd for 1 min; reconnecting"), "{text}");
    assert!(text.contains("\napi           asks you (a)") && text.contains("\ndocs-日本語   active "), "{text}");
    let dim = |shown: &mut TestScreen, text| shown.styles_of(text)[0].add_modifier.contains(Modifier::DIM);
    assert!(dim(&mut shown, "docs-") && dim(&mut shown, "review") && !dim(&mut shown, "no connection"));
    let lost = |shown: &mut TestScreen| shown.incoming(Incoming::Answer(Request::Approvals, Err(no_connection())));
    assert_eq!(lost(&mut shown), []);
    assert!(!shown.text().contains("lost the connection"));
    // Everything is requested again.
    let effects = shown.incoming(Incoming::Connected);
    assert!(effects.contains(&Effect::Request(Request::Status)), "{effects:?}");
    assert!(!shown.text().contains("no connection") && !dim(&mut shown, "review"));
}

#[test]
fn the_selected_row_stays_selected_when_rows_move() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::End);
    shown.key(KeyCode::Char('h'));
    assert!(shown.text().contains("History of claude-code"));
    shown.key(KeyCode::Esc);
    for _ in 0..3 {
        shown.key(KeyCode::Up);
    }
    let rank = |text: &str| text.lines().position(|line| line.starts_with("web"));
    let before = rank(&shown.text());
    // Another one comes before it.
    let mut one = status(0);
    let mut new = one["agents"][2].clone();
    (new["id"], new["name"]) = ("5b0c9a52-3c1e-4c0e-9d53-000000000077".into(), "aaa".into());
    one["agents"] = json!([new]);
    shown.answer(Request::Agent("aaa".into()), Answer::Status(read(one)));
    assert_eq!(rank(&shown.text()), before.map(|at| at + 1));
    assert!(shown.styles_of("web ")[0].add_modifier.contains(Modifier::REVERSED));
    assert!(!shown.styles_of("aaa ")[0].add_modifier.contains(Modifier::REVERSED));
    let mut one = status(0);
    let mut web = one["agents"][2].clone();
    assert_eq!(web["name"], "web");
    web["state"] = "active".into();
    web["context"] = one["agents"][1]["context"].clone();
    one["agents"] = json!([web]);
    shown.key(KeyCode::Char('h'));
    assert!(shown.text().contains("History of web"));
    shown.key(KeyCode::Esc);
    shown.answer(Request::Agent("web".into()), Answer::Status(read(one)));
    assert_eq!(rank(&shown.text()), before, "it is active now, the other one is not");
    shown.event(
        json!({"seq": 10, "time": "2026-03-05T08:00:00Z", "type": "agent.destroyed", "agent": "api", "data": {}}),
    );
    shown.key(KeyCode::Char('h'));
    assert!(shown.text().contains("History of web"), "{}", shown.text());
}

#[test]
fn events_are_requested_together_and_few_at_a_time() {
    let mut shown = TestScreen::new(NARROW);
    let event = |agent: String| json!({"seq": 9, "time": "2026-03-05T08:00:00Z", "type": "message.appended", "agent": agent, "data": {}});
    for number in 0..40 {
        let effects = shown.event(event(format!("worker-{}", number % 20)));
        assert_eq!(effects, [], "a round was sent just now");
    }
    let agents = |shown: &mut TestScreen, seconds| {
        let effects = shown.state.handle(Input::Tick, now() + SignedDuration::from_secs(seconds));
        effects.iter().filter(|effect| matches!(effect, Effect::Request(Request::Agent(_)))).count()
    };
    assert_eq!([1, 2, 3].map(|seconds| agents(&mut shown, seconds)), [16, 4, 0], "each once");
}

#[test]
fn a_conversation_is_written_in_and_shows_the_turn() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Down);
    let target = Target { agent: "api".into(), conversation: Some("review".into()) };
    let effects = shown.handle(Input::Key(KeyCode::Enter.into()));
    assert_eq!(effects, [Effect::Attach(target.clone(), 1)]);
    let effects = shown.piece(json!({"attached": {"turn_id": null, "others": []}}));
    assert_eq!(effects, [Effect::Request(Request::Messages(target.clone(), Reach::START))]);
    let messages = golden::<chorus_proto::methods::context::Show>(include_str!(
        "../../../../proto/golden/v1/context.show.result.json"
    ));
    shown.answer(Request::Messages(target.clone(), Reach::START), Answer::Messages(Box::new(messages)));
    shown.type_text("and the back-fill?");
    assert_eq!(shown.key(KeyCode::Enter), [sent(&target, "and the back-fill?", 1)]);
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
    shown.incoming(Incoming::SendStage(target.clone(), "-1".into(), crate::requests::SendStage::Started));
    assert_snapshot!("conversation_80x24", shown.text());
    let effects = shown.piece(json!({"ended": {"turn_id": "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a08"}}));
    assert_eq!(effects, [Effect::Request(Request::Messages(target, Reach::START))]);
    assert_eq!(shown.handle(Input::Key(KeyCode::Esc.into())), [Effect::Detach]);
    assert!(shown.text().contains("AGENT"));
}

#[test]
fn keys_leave_suspend_and_redraw() {
    let mut shown = TestScreen::new(NARROW);
    assert_eq!(shown.control('z'), [Effect::Suspend]);
    assert_eq!(shown.control('l'), [Effect::Clear]);
    assert_eq!(shown.handle(Input::Key(KeyCode::Char('q').into())), [Effect::Leave]);
    shown.key(KeyCode::Enter);
    shown.type_text("q");
    assert!(shown.text().contains("> q"), "a letter of a message");
    // Not before a warning, because of the text.
    assert_eq!(shown.control('c'), []);
    assert!(shown.text().ends_with("the text is not sent; Ctrl-C again quits without it"), "{}", shown.text());
    shown.type_text("!");
    assert_eq!(shown.control('c'), [], "another key came between");
    assert_eq!(shown.control('c'), [Effect::Leave]);
}
