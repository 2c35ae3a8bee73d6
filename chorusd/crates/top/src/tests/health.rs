//! What the screen says when parts of the picture are old, failed, or not known.

use chorus_proto::ErrorKind;
use crossterm::event::KeyCode;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::fixture::{NARROW, TestScreen, WIDE, golden, no_connection, now, read, refused, status};
use crate::connection::Incoming;
use crate::requests::{Answer, Failure, Request};
use crate::state::{Effect, Input};

fn tick(shown: &mut TestScreen, seconds: i64) -> Vec<Effect> {
    shown.state.handle(Input::Tick, now() + SignedDuration::from_secs(seconds))
}

fn row(shown: &mut TestScreen, name: &str) -> String {
    let text = shown.text();
    text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned()
}

fn tool(kind: &str, id: &str, name: &str) -> Value {
    let turn = "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a07";
    json!({
        "seq": 11, "time": "2026-03-05T08:00:00Z", "type": kind, "agent": "api",
        "data": {"turn_id": turn, "id": id, "name": name, "is_error": false}
    })
}

#[test]
fn running_tools_are_named_only_if_they_were_seen_to_start() {
    let mut shown = TestScreen::new(WIDE);
    // Two at once: the end of one leaves the other.
    shown.event(tool("tool.started", "d", "bash"));
    assert!(row(&mut shown, "api").contains("→ bash, edit, 1 queued"));
    shown.event(tool("tool.finished", "c", "str_replace"));
    assert!(row(&mut shown, "api").contains("→ bash, 1 queued"));
    shown.event(tool("tool.finished", "d", "bash"));
    assert!(row(&mut shown, "api").contains("model call 3, 1 queued"));
    // Events were missed.
    shown.incoming(Incoming::Lagged);
    assert!(row(&mut shown, "api").contains(" running, 1 queued"), "{}", shown.text());
    shown.event(json!({
        "seq": 12, "time": "2026-03-05T08:00:00Z", "type": "turn.started", "agent": "api", "data": {}
    }));
    assert!(row(&mut shown, "api").contains("model call 3"));
    let effects = shown.incoming(Incoming::Connected);
    assert!(effects.contains(&Effect::Request(Request::Status)), "{effects:?}");
    assert!(row(&mut shown, "api").contains(" running, 1 queued"));
}

#[test]
fn a_daemon_that_does_not_answer_is_named() {
    let mut shown = TestScreen::new(NARROW);
    shown.incoming(Incoming::Answer(Request::Cluster, Err(refused(ErrorKind::Unsupported, "no cluster"))));
    let effects = tick(&mut shown, 4);
    assert!(effects.contains(&Effect::Request(Request::Daemon)), "{effects:?}");
    tick(&mut shown, 7);
    assert!(!shown.text().contains("does not answer"));
    tick(&mut shown, 8);
    assert!(shown.text().contains("\nchorusd does not answer since 08:00:04\n"), "{}", shown.text());
    // Its requests were given up.
    shown.state.handle(
        Input::Incoming(Incoming::Answer(Request::Daemon, Err(Failure::no_answer()))),
        now() + SignedDuration::from_secs(30),
    );
    assert!(shown.text().contains("chorusd does not answer since 08:00:04"), "{}", shown.text());
    shown.state.handle(
        Input::Incoming(Incoming::Answer(Request::Tasks, Ok(Answer::Tasks(Vec::new())))),
        now() + SignedDuration::from_secs(31),
    );
    assert!(!shown.text().contains("does not answer"), "{}", shown.text());
}

#[test]
fn the_times_of_the_last_picture_stop() {
    let mut shown = TestScreen::new(NARROW);
    shown.answer(Request::Approvals, Answer::Approvals(Vec::new()));
    shown.incoming(Incoming::Disconnected(None));
    let before = row(&mut shown, "api");
    assert!(before.contains("runs 1 min"), "{before}");
    tick(&mut shown, 3600);
    assert_eq!(row(&mut shown, "api"), before);
    assert!(shown.text().contains("no connection to chorusd for 1 h; reconnecting\n"), "{}", shown.text());
}

#[test]
fn a_refusal_is_not_called_an_absence() {
    let mut shown = TestScreen::new(NARROW);
    shown.incoming(Incoming::Disconnected(Some(refused(ErrorKind::Unsupported, "unknown method \"events\""))));
    let text = shown.text();
    assert!(text.contains("no connection to chorusd for 0 s; reconnecting: unknown method \"events\"\n"), "{text}");
    // The reason may change.
    shown.incoming(Incoming::Disconnected(None));
    assert!(shown.text().contains("; reconnecting\n"), "{}", shown.text());
}

#[test]
fn health_that_failed_is_not_shown_as_it_was() {
    let mut shown = TestScreen::new(WIDE);
    let cluster = golden::<chorus_proto::methods::cluster::Status>(include_str!(
        "../../../../../proto/golden/v1/cluster.status.result.json"
    ));
    shown.answer(Request::Cluster, Answer::Cluster(cluster));
    assert!(shown.text().contains("cluster"), "{}", shown.text());
    let fail = |shown: &mut TestScreen, request, kind| {
        shown.incoming(Incoming::Answer(request, Err(refused(kind, "no"))));
    };
    fail(&mut shown, Request::Cluster, ErrorKind::StorageUnavailable);
    fail(&mut shown, Request::Capture, ErrorKind::Internal);
    assert!(shown.text().contains("capture: not known · cluster: not known"), "{}", shown.text());
    let cluster = |effects: &[Effect]| effects.contains(&Effect::Request(Request::Cluster));
    assert!(cluster(&tick(&mut shown, 10)), "it is requested again");
    fail(&mut shown, Request::Cluster, ErrorKind::Unsupported);
    fail(&mut shown, Request::Capture, ErrorKind::Unsupported);
    assert!(!shown.text().contains("not known"));
    assert!(!cluster(&tick(&mut shown, 20)));
}

#[test]
fn a_new_day_requests_the_costs_of_all_agents() {
    let mut shown = TestScreen::new(NARROW);
    let status = Effect::Request(Request::Status);
    assert!(tick(&mut shown, 16 * 3600 - 10).contains(&status), "the interval");
    let answer = Incoming::Answer(Request::Status, Ok(Answer::Status(read(super::fixture::status(0)))));
    shown.state.handle(Input::Incoming(answer), now() + SignedDuration::from_secs(16 * 3600 - 9));
    assert!(!tick(&mut shown, 16 * 3600 - 1).contains(&status));
    assert!(tick(&mut shown, 16 * 3600).contains(&status), "midnight");
}

#[test]
fn approvals_are_requested_if_their_number_differs() {
    let mut shown = TestScreen::new(NARROW);
    let mut daemon = status(0);
    daemon["totals"] = json!({"active": 2, "idle": 2, "approvals": 2});
    let parsed: Result<Box<chorus_proto::methods::daemon::StatusResult>, _> = serde_json::from_value(daemon);
    shown.answer(Request::Daemon, Answer::Status(parsed.expect("a status")));
    let effects = tick(&mut shown, 1);
    assert!(effects.contains(&Effect::Request(Request::Approvals)), "{effects:?}");
}

#[test]
fn an_agent_that_is_gone_leaves_the_list() {
    let mut shown = TestScreen::new(NARROW);
    shown.incoming(Incoming::Answer(Request::Agent("web".into()), Err(refused(ErrorKind::AgentNotFound, "no agent"))));
    assert_eq!(row(&mut shown, "web"), "");
    shown.incoming(Incoming::Answer(Request::Agent("api".into()), Err(no_connection())));
    assert!(row(&mut shown, "api").contains("api"));
    shown.key(KeyCode::Home);
}
