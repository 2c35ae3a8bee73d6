//! The question at a terminal, of `send` and of `chat`.

use chorus_tests::Fixture;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, InteractiveCommand, wait_until};
use serde_json::json;

use super::{ACTION, approve, calls_of, decisions, list, queue_calls, results, start_fixture, start_fixture_of};

const QUESTION: &str = "Allow? ";
const CHOICES: &str = "[y] once  [a] this exact action  [s] all of this turn  [n] no, because …  [?] why\r\n";

fn send(fixture: &Fixture) -> InteractiveCommand {
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(["--agent", "a", "send", "Which are there?"]);
    InteractiveCommand::on_terminal(&command)
}

/// A turn at a terminal, at its question.
fn asked(fixture: &Fixture) -> InteractiveCommand {
    queue_calls(fixture, 1);
    let running = send(fixture);
    running.stdout.wait_for(QUESTION);
    running
}

fn end(mut running: InteractiveCommand) -> (i32, String) {
    let (status, out, _) = running.wait_for_exit();
    (status.code().unwrap_or(-1), out)
}

#[test]
fn the_whole_action_is_shown_and_y_does_it_once() {
    let fixture = start_fixture();
    let mut running = asked(&fixture);
    let shown = running.stdout.text();
    assert!(shown.contains("a wants to use a tool (expires in "), "{shown}");
    assert!(shown.contains("  │ list_models\r\n") && shown.contains(CHOICES), "{shown}");
    assert!(shown.contains("asked because its permissions ask before this kind of action"), "{shown}");
    assert!(!shown.contains("ask[0]") && !shown.contains(ACTION), "rules are shown on request: {shown}");
    let explained = running.type_and_wait("?\r", QUESTION);
    let why = "asks before this kind of action (rule ask[0] tool:list_models:.*)";
    let change = "use another profile: `chorusctl agent config a permissions PROFILE`";
    assert!(explained.contains("  why: the profile ") && explained.contains(why), "{explained}");
    assert!(
        explained.contains("see its rules: `chorusctl permissions show ") && explained.contains(change),
        "{explained}"
    );
    running.type_and_wait("maybe\r", "enter one of the letters in brackets");
    running.type_and_wait("y\r", "Done.");
    let (status, out) = end(running);
    assert_eq!(status, 0, "{out}");
    assert!(!out.contains("elsewhere"), "{out}");
    assert!(!results(&mut fixture.client(), "a")[0].0);
    assert_eq!(decisions(&fixture), ["ask", "approved"]);
}

#[test]
fn nothing_is_no_and_so_is_the_end_of_the_input() {
    for keys in ["\r", "n\r\r", "n\r\u{4}", "\u{4}"] {
        let fixture = start_fixture();
        let mut running = asked(&fixture);
        running.type_and_wait(keys, "Done.");
        assert_eq!(end(running).0, 0);
        assert_eq!(decisions(&fixture), ["ask", "refused"], "{keys:?}");
    }
}

#[test]
fn a_is_always_and_says_what_it_changed() {
    let fixture = start_fixture();
    let mut running = asked(&fixture);
    let shown = running.type_and_wait("a\r", "Done.");
    assert!(shown.contains("a may now do exactly this without asking"), "{shown}");
    assert!(shown.contains("chorusctl permissions rules a"), "{shown}");
    assert_eq!(end(running).0, 0);
    queue_calls(&fixture, 1);
    let (status, out) = end(send(&fixture));
    assert!(status == 0 && out.contains("Done.") && !out.contains("Allow?"), "{out}");
}

#[test]
fn the_reason_of_a_no_goes_to_the_model() {
    for keys in ["n\rit costs too much\r", "n it costs too much\r", "no, because it costs too much\r"] {
        let fixture = start_fixture();
        let mut running = asked(&fixture);
        running.type_and_wait(keys, "Done.");
        assert_eq!(end(running).0, 0);
        let (is_error, text) = results(&mut fixture.client(), "a").remove(0);
        assert!(is_error && text.ends_with("denied by the user, who says: it costs too much"), "{keys:?}: {text}");
        assert_eq!(decisions(&fixture), ["ask", "refused"]);
    }
}

#[test]
fn s_is_all_of_this_turn_and_no_longer() {
    let fixture = start_fixture();
    queue_calls(&fixture, 3);
    let mut running = send(&fixture);
    running.stdout.wait_for(QUESTION);
    let shown = running.type_and_wait("s\r", "Done.");
    assert!(shown.contains("a does not ask again in this turn") && !shown.contains(QUESTION), "{shown}");
    assert_eq!(end(running).0, 0);
    assert_eq!(decisions(&fixture), ["ask", "approved_turn", "ask", "approved_turn", "ask", "approved_turn"]);
    let mut running = asked(&fixture);
    running.type_and_wait("y\r", "Done.");
    assert_eq!(end(running).0, 0);
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_back() {
    let fixture = start_fixture();
    let running = asked(&fixture);
    let id = list(&mut fixture.client()).remove(0).id;
    chorusctl(&fixture.home, ["approvals", "approve", &id]).expect_success();
    let (status, out) = end(running);
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("approved elsewhere by owner\r\n") && out.contains("Done."), "{out}");
}

#[test]
fn ctrl_c_at_the_question_ends_the_turn() {
    let fixture = start_fixture();
    let mut running = asked(&fixture);
    running.type_text("\u{3}");
    let (status, out) = end(running);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("cancelled; the partial reply was kept"), "{out}");
    assert_eq!(decisions(&fixture), ["ask", "withdrawn"]);
}

#[test]
fn questions_come_one_after_the_other_and_what_is_said_meanwhile_waits() {
    let fixture = start_fixture();
    queue_calls(&fixture, 2);
    let mut running = send(&fixture);
    running.stdout.wait_for(QUESTION);
    let shown = running.type_and_wait("y\r", QUESTION);
    assert!(!shown.contains("Done."), "{shown}");
    running.type_and_wait("n\r\r", "Done.");
    assert_eq!(end(running).0, 0);
    assert_eq!(decisions(&fixture), ["ask", "approved", "ask", "refused"]);
}

#[test]
fn where_it_cannot_be_for_ever_that_is_not_offered() {
    let fixture = start_fixture();
    super::choices::fill_rules(&fixture);
    let mut running = asked(&fixture);
    let shown = running.stdout.text();
    assert!(shown.contains("[y] once  [s] all of this turn  [n] no"), "{shown}");
    running.type_and_wait("a\r", "cannot be approved permanently: the agent already has 1000 rules");
    running.type_and_wait("y\r", "Done.");
    assert_eq!(end(running).0, 0);
}

#[test]
fn without_a_terminal_it_says_that_it_waits_and_how_to_answer() {
    let fixture = start_fixture();
    queue_calls(&fixture, 1);
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(["--agent", "a", "send", "Which are there?"]);
    let mut running = InteractiveCommand::piped(command);
    running.close_input();
    running.stderr.wait_for("chorusctl approvals approve ");
    let id = list(&mut fixture.client()).remove(0).id;
    assert!(
        running
            .stderr
            .text()
            .contains(&format!("hint: chorusctl approvals approve {id}, or chorusctl approvals deny {id}"))
    );
    approve(&mut fixture.client(), &id).expect("heard");
    let (status, out, err) = running.wait_for_exit();
    assert_eq!((status.code(), &*out), (Some(0), "Done.\n"), "{err}");
    assert!(err.contains(&format!("{id}: approved by owner")), "{err}");
}

#[test]
fn pieces_for_scripts_have_the_question_and_its_answer() {
    let fixture = start_fixture();
    queue_calls(&fixture, 1);
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(["--agent", "a", "--format", "jsonl", "send", "Which are there?"]);
    let mut running = InteractiveCommand::piped(command);
    running.close_input();
    running.stdout.wait_for("\"ask\"");
    let asked = list(&mut fixture.client()).remove(0);
    approve(&mut fixture.client(), &asked.id).expect("heard");
    let (status, out, err) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{err}");
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told = lines.iter().find_map(|line| line.get("ask")).expect("the question");
    assert_eq!(told["approval"], serde_json::to_value(&asked).expect("JSON"));
    let decided = lines.iter().find_map(|line| line.get("decided")).expect("its answer");
    assert_eq!(*decided, json!({"id": asked.id, "status": "approved", "by": "owner"}));
}

#[test]
fn a_conversation_asks_and_goes_on() {
    let fixture = start_fixture();
    fixture.models().anthropic().queue(calls_of(1));
    fixture.models().anthropic().queue(Response::text(["Two of them."]));
    let mut command = fixture.home.command(fixture.home.bins.chorusctl);
    command.args(["--agent", "a", "chat"]);
    let mut running = InteractiveCommand::on_terminal(&command);
    let prompt = "a> \r\u{1b}[3C\u{1b}[?2026l";
    running.stdout.wait_for_end(prompt);
    running.type_and_wait("Which?\r", QUESTION);
    running.type_and_wait("y\r", "Two of them.");
    running.stdout.wait_for_end(prompt);
    running.type_text("\u{4}");
    let (status, out, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{out}");
    wait_until("the log", DEADLINE, || (decisions(&fixture) == ["ask", "approved"]).then_some(()));
}

/// Hints of a chat name its own commands; what is to run is shown as it is.
#[test]
fn a_chat_shows_a_command_that_needs_approval_as_it_is() {
    let fixture = start_fixture_of("standard");
    let command = "chorusctl export latest; chorusctl undo 5";
    fixture.models().anthropic().queue(Response::tool_call("c", "bash", &json!({"command": command})));
    fixture.models().anthropic().queue(Response::text(["As you like."]));
    let mut chat = fixture.home.command(fixture.home.bins.chorusctl);
    chat.args(["--agent", "a", "chat"]);
    let mut running = InteractiveCommand::on_terminal(&chat);
    let prompt = "a> \r\u{1b}[3C\u{1b}[?2026l";
    running.stdout.wait_for_end(prompt);
    let shown = running.type_and_wait("Run it.\r", QUESTION);
    assert!(shown.contains(&format!("│ {command}\r\n")) && !shown.contains("/export"), "{shown}");
    running.type_and_wait("n\r\r", "As you like.");
    running.stdout.wait_for_end(prompt);
    running.type_text("\u{4}");
    let (status, out, _) = running.wait_for_exit();
    assert_eq!(status.code(), Some(0), "{out}");
}
