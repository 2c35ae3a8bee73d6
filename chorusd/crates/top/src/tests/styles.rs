//! Styles and colors, and texts that must not reach the terminal as they are.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ratatui_core::style::{Color, Modifier};
use serde_json::json;

use super::fixture::{NARROW, TestScreen, WIDE, approval, golden, now, read, refused, status};
use crate::connection::Incoming;
use crate::fleet::Target;
use crate::requests::{Answer, Request};
use crate::state::State;

/// The start of a sequence that clears the screen.
const ESCAPE: &str = "\u{1b}[2J\u{9b}31m\r\u{7}";

#[test]
fn the_selected_row_is_reversed_and_colors_are_shown_if_wanted() {
    for has_color in [false, true] {
        let mut shown = TestScreen::new(NARROW);
        shown.state.has_color = has_color;
        let color = |shown: &mut TestScreen, text: &str| shown.styles_of(text)[0].fg;
        let expected = |color| Some(if has_color { color } else { Color::Reset });
        assert_eq!(color(&mut shown, "1 approval (a)"), expected(Color::Red));
        assert_eq!(color(&mut shown, "Discord connected"), expected(Color::Green));
        assert_eq!(color(&mut shown, "→ edit"), expected(Color::Cyan));
        for (key, selected, other) in [(KeyCode::Home, "api  ", "  review"), (KeyCode::Down, "  review", "api  ")] {
            shown.key(key);
            let styles = shown.styles_of(selected);
            assert!(styles.iter().all(|style| style.add_modifier.contains(Modifier::REVERSED)), "{styles:?}");
            let styles = shown.styles_of(other);
            assert!(styles.iter().all(|style| !style.add_modifier.contains(Modifier::REVERSED)), "{styles:?}");
        }
    }
}

#[test]
fn nothing_from_outside_reaches_the_terminal_as_it_is() {
    let mut hostile = status(0);
    hostile["agents"][0]["conversations"][0]["name"] = ESCAPE.into();
    hostile["agents"][0]["model"] = ESCAPE.into();
    hostile["agents"][1]["attached"][0]["client"] = ESCAPE.into();
    hostile["agents"][2]["problem"] = ESCAPE.into();
    hostile["agents"][3]["name"] = format!("z{ESCAPE}").into();
    hostile["discord"]["why"] = ESCAPE.into();
    hostile["daemon"]["version"] = ESCAPE.into();
    let mut shown = TestScreen::new(WIDE);
    shown.answer(Request::Status, Answer::Status(read(hostile)));
    let mut tasks = golden::<chorus_proto::methods::tasks::List>(include_str!(
        "../../../../../proto/golden/v1/tasks.list.result.json"
    ));
    tasks.tasks.iter_mut().for_each(|task| task.command = ESCAPE.into());
    shown.answer(Request::Tasks, Answer::Tasks(tasks.tasks));
    shown.answer(Request::Approvals, Answer::Approvals(vec![approval("k7mq2x", &format!("tool:bash:{ESCAPE}"))]));
    shown.event(json!({
        "seq": 9, "time": "2026-03-05T08:00:00Z", "type": "tool.started", "agent": "api",
        "data": {"id": "x", "name": ESCAPE}
    }));
    let failure = refused(chorus_proto::ErrorKind::Internal, ESCAPE);
    let check = |shown: &mut TestScreen| {
        let text = shown.text();
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(text.contains("␛[2J") && !text.contains(is_control), "{text:?}");
    };
    check(&mut shown);
    shown.incoming(Incoming::Answer(Request::Status, Err(failure.clone())));
    check(&mut shown);
    shown.key(KeyCode::Char('a'));
    check(&mut shown);
    shown.key(KeyCode::Esc);
    // A conversation with a notice, a tool, a message that was not sent.
    shown.key(KeyCode::Enter);
    shown
        .piece(json!({"attached": {"turn_id": null, "others": [{"client": ESCAPE, "since": "2026-03-05T07:30:00Z"}]}}));
    check(&mut shown);
    shown.piece(json!({"message": {"id": "m9", "role": "user", "text": ESCAPE, "author": ESCAPE}}));
    shown.piece(json!({"tool": {"id": "c", "name": ESCAPE, "gist": ESCAPE}}));
    shown.piece(json!({"note": ESCAPE}));
    shown.type_text("text");
    let Some(request) = shown.key(KeyCode::Enter).pop() else { panic!("no request") };
    shown.type_text("draft");
    shown.incoming(Incoming::Answer(request, Err(failure.clone())));
    check(&mut shown);
    shown.key(KeyCode::Esc);
    // A list that failed, and a search with hits.
    shown.key(KeyCode::Char('t'));
    shown.incoming(Incoming::Answer(Request::Tree(Target::main("api")), Err(failure)));
    check(&mut shown);
    shown.key(KeyCode::Esc);
    shown.key(KeyCode::Char('/'));
    let request = shown.key(KeyCode::Char('z')).remove(0);
    let mut hits = golden::<chorus_proto::methods::search::Search>(include_str!(
        "../../../../../proto/golden/v1/search.result.json"
    ));
    for hit in &mut hits.hits {
        (hit.snippet, hit.agent_name) = (ESCAPE.into(), ESCAPE.into());
    }
    shown.answer(request, Answer::Hits(Box::new(hits)));
    check(&mut shown);
}

#[test]
fn nodes_and_agents_that_cannot_be_reached_are_shown() {
    let mut clustered = status(0);
    for agent in clustered["agents"].as_array_mut().expect("agents") {
        agent["node"] = "node-b".into();
    }
    clustered["agents"][2]["unreachable"] = true.into();
    let mut shown = TestScreen::new(WIDE);
    shown.answer(Request::Status, Answer::Status(read(clustered)));
    let text = shown.text();
    assert!(text.contains("NODE") && text.contains("node-b"), "{text}");
    let web = text.lines().find(|line| line.starts_with("web ")).unwrap_or_default();
    assert!(web.contains("unreachable"), "{web}");
    let mut cluster = golden::<chorus_proto::methods::cluster::Status>(include_str!(
        "../../../../../proto/golden/v1/cluster.status.result.json"
    ));
    cluster.nodes.truncate(1);
    cluster.nodes[0].name = "node-c".into();
    cluster.nodes[0].state = chorus_proto::methods::cluster::NodeState::Silent;
    shown.answer(Request::Cluster, Answer::Cluster(cluster));
    assert!(shown.text().contains("cluster: no heartbeat from node-c"), "{}", shown.text());
}

#[test]
fn panels_fit_a_large_terminal() {
    let mut shown = TestScreen::new(WIDE);
    shown.key(KeyCode::Char('a'));
    assert_snapshot!("approvals_200x60", shown.text());
    shown.key(KeyCode::Esc);
    shown.key(KeyCode::Enter);
    shown.piece(json!({"attached": {"turn_id": null, "others": []}}));
    let messages = golden::<chorus_proto::methods::context::Show>(include_str!(
        "../../../../../proto/golden/v1/context.show.result.json"
    ));
    shown.answer(
        Request::Messages(Target::main("api"), crate::requests::Reach::START),
        Answer::Messages(Box::new(messages)),
    );
    assert_snapshot!("conversation_200x60", shown.text());
}

#[test]
fn the_list_of_ten_thousand_agents_stays_in_order() {
    let state = State::new(now(), jiff::tz::TimeZone::UTC, false, "pts/9".into(), None);
    let mut shown = TestScreen::of(state, WIDE);
    shown.incoming(Incoming::Connected);
    shown.answer(Request::Status, Answer::Status(read(status(10_000))));
    let whole = status(10_000);
    let mut expected = shown.state.fleet.totals();
    for number in [9_000, 5, 9_999, 5, 0] {
        let mut one = status(0);
        let mut agent = whole["agents"][4 + number].clone();
        agent["state"] = if number % 2 == 0 { "active" } else { "idle" }.into();
        agent["context"] = if number % 2 == 0 { whole["agents"][1]["context"].clone() } else { json!(null) };
        expected.active += usize::from(number % 2 == 0);
        one["agents"] = json!([agent]);
        shown.answer(Request::Agent("x".into()), Answer::Status(read(one)));
        let name = format!("worker-{number:05}");
        let row = shown.state.fleet.find(&Target::main(&name)).map(|row| row.record().agent.name.clone());
        assert_eq!(row.as_deref(), Some(&*name));
        assert_eq!(shown.state.fleet.totals(), expected);
    }
    let names: Vec<String> = (0..shown.state.fleet.len())
        .filter_map(|at| Some(shown.state.fleet.row(at)?.key().agent().to_owned()))
        .collect();
    let first: Vec<&str> = names.iter().map(|name| &**name).take(6).collect();
    assert_eq!(first, ["api", "api", "docs-日本語", "worker-00000", "worker-09000", "web"]);
    let idle: Vec<_> = names.iter().filter(|name| name.starts_with("worker")).skip(2).collect();
    assert!(idle.is_sorted() && idle.len() == 9_998);
    // The same as all at once.
    for at in 0..shown.state.fleet.len() {
        let key = shown.state.fleet.row(at).map(|row| row.key()).expect("a row");
        assert_eq!(shown.state.fleet.position(&key), Some(at));
    }
}
