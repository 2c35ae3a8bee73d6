//! Keys that answer approvals, typed faster than the screen is drawn.

use chorus_tests::client_ext::ClientExt as _;

use super::{leave, start, type_until, wait_for_row, wait_until_no_row};
use crate::approvals::{ask, ask_for_two_agents, decisions, list, results, start_fixture};

#[test]
fn esc_and_a_letter_in_one_read_answer_nothing() {
    let fixture = start_fixture();
    let (_, turn) = ask(&fixture, 1);
    let mut running = start(&fixture.home, &[], "1 approval (a)");
    type_until(&mut running, "a", "│ list_models");
    type_until(&mut running, "\u{1b}y", "AGENT ");
    type_until(&mut running, "a", "│ list_models");
    // Ctrl-Y.
    running.type_text("\u{19}");
    type_until(&mut running, "\u{1b}", "AGENT ");
    assert_eq!(decisions(&fixture), ["ask"]);
    assert_eq!(list(&mut fixture.client()).len(), 1);
    type_until(&mut running, "a", "│ list_models");
    type_until(&mut running, "y", "no pending approvals");
    turn.join().expect("the turn").expect("its reply");
    // Leaves by Esc and `q` in one read.
    leave_by(running, "\u{1b}q");
}

fn leave_by(mut running: chorus_tests::InteractiveCommand, text: &str) {
    running.type_text(text);
    let (status, output, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{output:?}");
}

#[test]
fn an_answer_is_given_before_the_screen_is_left() {
    let fixture = start_fixture();
    let (_, turn) = ask(&fixture, 1);
    let mut running = start(&fixture.home, &[], "1 approval (a)");
    type_until(&mut running, "a", "│ list_models");
    leave_by(running, "y\u{3}");
    turn.join().expect("the turn").expect("its reply");
    assert_eq!(decisions(&fixture), ["ask", "approved"]);
}

#[test]
fn an_action_that_was_not_drawn_is_not_answered() {
    let fixture = start_fixture();
    let (_, turn) = ask(&fixture, 1);
    let mut running = start(&fixture.home, &[], "1 approval (a)");
    type_until(&mut running, "\r", "(Tab answers)");
    type_until(&mut running, "\ty", "not answered: its action was not on the screen");
    assert_eq!(decisions(&fixture), ["ask"]);
    type_until(&mut running, "y", "no pending approvals");
    turn.join().expect("the turn").expect("its reply");
    type_until(&mut running, "\u{1b}", "  Done.");
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
}

#[test]
fn a_denial_gives_the_agent_a_reason() {
    let fixture = start_fixture();
    let (_, turn) = ask(&fixture, 1);
    let mut running = start(&fixture.home, &[], "1 approval (a)");
    type_until(&mut running, "a", "│ list_models");
    type_until(&mut running, "n", "deny, because (optional):");
    type_until(&mut running, "not today\r", "no pending approvals");
    turn.join().expect("the turn").expect("its reply");
    let results = results(&mut fixture.client(), "a");
    assert!(results.len() == 1 && results[0].1.contains("not today"), "{results:?}");
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
}

#[test]
fn a_second_key_does_not_answer_the_next_approval() {
    let fixture = start_fixture();
    let (one, other) = ask_for_two_agents(&fixture, 1);
    let mut running = start(&fixture.home, &[], "2 approvals (a)");
    type_until(&mut running, "a", "│ list_models");
    let first = list(&mut fixture.client())[0].id.clone();
    running.type_text("yy");
    wait_for_row(&running, "1 approval (a)");
    running.type_text("y\u{1b}[B");
    wait_until_no_row(&running, &first);
    let left = list(&mut fixture.client());
    assert_eq!((left.len(), left[0].id == first), (1, false));
    type_until(&mut running, "y", "no pending approvals");
    one.join().expect("the turn").expect("its reply");
    other.join().expect("the turn").expect("its reply");
    assert_eq!(fixture.client().messages("b").len(), 4);
    type_until(&mut running, "\u{1b}", "AGENT ");
    leave(running);
}
