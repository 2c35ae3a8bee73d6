//! Answers to approvals: only what was on the screen is answered, and only once.

use chorus_proto::ErrorKind;
use chorus_proto::methods::approvals::Approval;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use insta::assert_snapshot;
use jiff::SignedDuration;

use super::fixture::{NARROW, TestScreen, approval, no_connection, now, refused};
use crate::connection::Incoming;
use crate::requests::{Answer, Decision, Request};
use crate::state::Input;

const FIRST: &str = "k7mq2x";
const SECOND: &str = "9wz4ub";

fn first() -> Approval {
    approval(FIRST, "tool:bash:rm -rf build")
}

fn second() -> Approval {
    let action = format!("tool:bash:echo {}\u{202e}\nrm -rf other", "long ".repeat(60));
    approval(SECOND, &action)
}

/// The approvals with two of them, not drawn yet.
fn open_two(size: (u16, u16)) -> TestScreen {
    let mut shown = TestScreen::new(size);
    set(&mut shown, vec![first(), second()]);
    shown.key(KeyCode::Char('a'));
    shown
}

fn set(shown: &mut TestScreen, approvals: Vec<Approval>) {
    shown.answer(Request::Approvals, Answer::Approvals(approvals));
}

fn decided(id: &str, decision: Decision) -> Request {
    Request::Decide { id: id.into(), hash: first().hash, decision, reason: None }
}

#[test]
fn the_whole_action_is_shown_with_the_possible_answers() {
    let mut shown = open_two(NARROW);
    assert_snapshot!("approvals_80x24", shown.text());
    shown.key(KeyCode::Down);
    let text = shown.text();
    assert!(text.contains("<U+202E>␤") && text.contains("│ rm -rf other"), "{text}");
}

#[test]
fn an_answered_one_stays_selected_and_a_second_key_answers_no_other() {
    let mut shown = open_two(NARROW);
    shown.text();
    assert_eq!(shown.key(KeyCode::Char('y')), [decided(FIRST, Decision::Once)]);
    let text = shown.text();
    assert!(text.contains("approving …") && text.contains("│ rm -rf build"), "{text}");
    assert_eq!(shown.key(KeyCode::Char('y')), []);
    shown.answer(decided(FIRST, Decision::Once), Answer::Done(format!("approved {FIRST}")));
    set(&mut shown, vec![second()]);
    let text = shown.text();
    assert!(text.contains("approved\n") && text.contains("│ rm -rf build"), "{text}");
    assert_eq!(shown.key(KeyCode::Char('y')), []);
    assert!(shown.text().ends_with("already answered; select another one with ↑ ↓"));
    shown.key(KeyCode::Down);
    let text = shown.text();
    assert!(text.contains("│ rm -rf other") && !text.contains(FIRST), "{text}");
    assert_eq!(shown.key(KeyCode::Char('n')), []);
    assert_eq!(shown.key(KeyCode::Enter), [decided(SECOND, Decision::Deny)]);
    set(&mut shown, Vec::new());
    assert!(shown.text().contains("no pending approvals"));
}

#[test]
fn one_that_moves_under_the_selection_is_answered_after_a_second_or_a_key() {
    for has_key in [true, false] {
        let mut shown = open_two(NARROW);
        shown.text();
        // Decided elsewhere.
        set(&mut shown, vec![second()]);
        assert!(shown.text().contains("│ rm -rf other"));
        assert_eq!(shown.key(KeyCode::Char('y')), []);
        assert!(shown.text().ends_with("not answered: this is another action; read it first"), "{}", shown.text());
        let at = now() + SignedDuration::from_secs(if has_key { 0 } else { 1 });
        if has_key {
            shown.key(KeyCode::Down);
        } else {
            shown.state.handle(Input::Tick, at);
        }
        shown.text();
        let effects = shown.state.handle(Input::Key(KeyCode::Char('y').into()), at);
        assert!(effects.contains(&crate::state::Effect::Request(decided(SECOND, Decision::Once))), "{effects:?}");
    }
    // The selected one stays if one above it goes.
    let mut shown = open_two(NARROW);
    shown.key(KeyCode::Down);
    shown.text();
    set(&mut shown, vec![second()]);
    assert_eq!(shown.key(KeyCode::Char('y')), [decided(SECOND, Decision::Once)]);
}

#[test]
fn an_action_that_is_not_on_the_screen_is_not_answered() {
    let mut shown = open_two(NARROW);
    assert_eq!(shown.key(KeyCode::Char('y')), [], "not drawn yet");
    assert!(shown.text().ends_with("not answered: its action was not on the screen"), "{}", shown.text());
    assert_eq!(shown.key(KeyCode::Char('y')), [decided(FIRST, Decision::Once)]);
    // From the conversation.
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Enter);
    shown.text();
    shown.key(KeyCode::Tab);
    assert_eq!(shown.key(KeyCode::Char('y')), []);
    // A small terminal shows a line of the action.
    let mut shown = open_two((40, 10));
    assert!(shown.text().contains("│ rm -rf build"), "{}", shown.text());
    assert_eq!(shown.key(KeyCode::Char('y')).len(), 1);
    let mut action = second();
    action.patterns = vec!["echo a long pattern *".repeat(4)];
    let mut shown = TestScreen::new((40, 10));
    set(&mut shown, vec![action]);
    shown.key(KeyCode::Char('a'));
    assert!(shown.text().contains("enlarge the terminal to answer"), "{}", shown.text());
    assert_eq!(shown.key(KeyCode::Char('y')), []);
}

#[test]
fn letters_with_alt_or_control_answer_nothing() {
    let mut shown = open_two(NARROW);
    shown.text();
    for modifiers in [KeyModifiers::ALT, KeyModifiers::CONTROL, KeyModifiers::ALT | KeyModifiers::CONTROL] {
        for letter in ['y', 'n', 'a', 'p', 'q'] {
            let effects = shown.handle(Input::Key(KeyEvent::new(KeyCode::Char(letter), modifiers)));
            assert_eq!(effects, [], "{modifiers} {letter}");
            assert!(shown.text().contains("Pending approvals"), "{modifiers} {letter}");
        }
    }
    let mut shown = TestScreen::new(NARROW);
    assert_eq!(shown.control('q'), []);
    // A question.
    let (mut shown, request) = confirm_restore();
    for modifiers in [KeyModifiers::ALT, KeyModifiers::CONTROL] {
        assert_eq!(shown.handle(Input::Key(KeyEvent::new(KeyCode::Char('y'), modifiers))), []);
        assert!(shown.text().contains("[y]es, [N]o"));
    }
    let shift = KeyEvent::new(KeyCode::Char('Y'), KeyModifiers::SHIFT);
    assert_eq!(shown.handle(Input::Key(shift)), [crate::state::Effect::Request(request)]);
}

fn confirm_restore() -> (TestScreen, Request) {
    let (mut shown, request) = super::panels::ask_to_restore();
    assert!(shown.text().contains("[y]es, [N]o"));
    shown.text();
    (shown, request)
}

#[test]
fn a_failed_answer_is_reported_and_can_be_given_again() {
    let mut shown = open_two(NARROW);
    shown.text();
    shown.key(KeyCode::Char('y'));
    shown.incoming(Incoming::Answer(decided(FIRST, Decision::Once), Err(no_connection())));
    assert!(shown.text().ends_with("the answer to k7mq2x may be lost: lost the connection to the daemon"));
    assert_eq!(shown.key(KeyCode::Char('y')), [decided(FIRST, Decision::Once)]);
    let failure = refused(ErrorKind::Conflict, "k7mq2x is already denied");
    shown.incoming(Incoming::Answer(decided(FIRST, Decision::Once), Err(failure)));
    assert!(shown.text().contains("not pending any more\n"), "{}", shown.text());
    shown.incoming(Incoming::Disconnected(None));
    shown.key(KeyCode::Down);
    shown.text();
    assert_eq!(shown.key(KeyCode::Char('y')), []);
    assert!(shown.text().ends_with("not done: no connection to chorusd"));
}

#[test]
fn a_denial_may_have_a_reason() {
    let mut shown = open_two(NARROW);
    shown.text();
    shown.key(KeyCode::Char('n'));
    let text = shown.text();
    assert!(text.contains("\ndeny, because (optional):\n") && text.ends_with("Enter deny  Esc do not"), "{text}");
    // Letters are no answers there, and Esc leaves it pending.
    assert_eq!(shown.key(KeyCode::Char('y')), []);
    assert_eq!(shown.key(KeyCode::Esc), []);
    assert!(shown.text().contains("[y] once"));
    shown.key(KeyCode::Char('n'));
    shown.type_text("use make ");
    shown.handle(Input::Paste("clean\n".into()));
    let Request::Decide { id, hash, decision, .. } = decided(FIRST, Decision::Deny) else { panic!("another request") };
    let reason = Some("use make clean".into());
    assert_eq!(shown.key(KeyCode::Enter), [Request::Decide { id, hash, decision, reason }]);
    // Of the one for which it was typed.
    let mut shown = open_two(NARROW);
    shown.text();
    shown.key(KeyCode::Char('n'));
    set(&mut shown, vec![second()]);
    assert_eq!(shown.key(KeyCode::Enter), []);
}

#[test]
fn the_approval_of_the_selected_row_is_selected_first() {
    let mut shown = TestScreen::new(NARROW);
    let review = Approval { conversation: Some("review".into()), ..second() };
    set(&mut shown, vec![first(), review]);
    shown.key(KeyCode::Down);
    let text = shown.text();
    let row = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("api ").contains("asks you (a)") && row("review").contains("asks you (a)"), "{text}");
    shown.key(KeyCode::Char('a'));
    assert!(shown.text().contains("│ rm -rf other"), "{}", shown.text());
}
