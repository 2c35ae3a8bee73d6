//! The history, the tree, the search, the approvals.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use uuid::uuid;

use super::fixture::{NARROW, Shown, approval, golden};
use crate::connection::Incoming;
use crate::fleet::Target;
use crate::requests::{Answer, Decision, Failure, Request};

#[test]
fn a_restore_is_asked_about() {
    let mut shown = Shown::new(NARROW);
    assert_eq!(shown.key(KeyCode::Char('h')), [Request::History("api".into())]);
    assert!(shown.text().contains("History of api  loading …"));
    let history = golden::<chorus_proto::methods::context::History>(include_str!(
        "../../../../../proto/golden/v1/context.history.result.json"
    ));
    shown.answer(Request::History("api".into()), Answer::Sessions(history.sessions, history.total));
    assert_snapshot!("history_80x24", shown.text());
    shown.key(KeyCode::Char('r'));
    let text = shown.text();
    assert!(text.contains("Load \"Why the nightly import drops rows\" as the live conversation of api?"), "{text}");
    assert!(text.contains("Its 4 unsaved messages are saved first.\n[y]es, [N]o"), "{text}");
    assert_eq!(shown.key(KeyCode::Char('n')), []);
    assert!(shown.text().contains("cancelled"));
    shown.key(KeyCode::Char('r'));
    let session = uuid!("9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604");
    assert_eq!(shown.key(KeyCode::Char('y')), [Request::Restore { target: Target::main("api"), session }]);
}

#[test]
fn a_saved_conversation_is_read() {
    let mut shown = Shown::new(NARROW);
    shown.key(KeyCode::End);
    let id = "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604";
    let request = Request::Session { agent: "claude-code".into(), session: id.into() };
    assert_eq!(shown.key(KeyCode::Enter), std::slice::from_ref(&request));
    let session = golden::<chorus_proto::methods::session::Get>(include_str!(
        "../../../../../proto/golden/v1/session.get.result.json"
    ));
    shown.answer(request, Answer::Session(Box::new(session)));
    assert_snapshot!("saved_80x24", shown.text());
    // The agent that holds it has no conversation of its own.
    shown.key(KeyCode::Char('r'));
    assert!(shown.text().contains("restore it into which agent? start with: chorusctl top --agent NAME"));
    shown.state.own_agent_for_tests("web");
    shown.key(KeyCode::Char('r'));
    let text = shown.text();
    assert!(text.contains("as the live conversation of web?\n[y]es, [N]o"), "{text}");
}

#[test]
fn the_tree_shows_branches_and_the_live_conversation() {
    let mut shown = Shown::new(NARROW);
    let target = Target::main("api");
    assert_eq!(shown.key(KeyCode::Char('t')), [Request::Tree(target.clone())]);
    let tree = golden::<chorus_proto::methods::session_branching::Tree>(include_str!(
        "../../../../../proto/golden/v1/session.tree.result.json"
    ));
    shown.answer(Request::Tree(target), Answer::Tree(Box::new(tree)));
    assert_snapshot!("tree_80x24", shown.text());
}

#[test]
fn a_search_finds_agents_and_messages_as_one_types() {
    let mut shown = Shown::new(NARROW);
    shown.key(KeyCode::Char('/'));
    assert_eq!(shown.key(KeyCode::Char('w')), [Request::Search { query: "w".into(), number: 1 }]);
    // One at a time.
    assert_eq!(shown.key(KeyCode::Char('e')), []);
    let hits = || {
        let hits = golden::<chorus_proto::methods::search::Search>(include_str!(
            "../../../../../proto/golden/v1/search.result.json"
        ));
        Answer::Hits(Box::new(hits))
    };
    let request = Request::Search { query: "w".into(), number: 1 };
    let effects = shown.answer(request, hits());
    let next = Request::Search { query: "we".into(), number: 3 };
    assert_eq!(effects, [crate::state::Effect::Request(next.clone())]);
    shown.answer(next, hits());
    assert_snapshot!("search_80x24", shown.text());
    shown.key(KeyCode::Down);
    let session = "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604".into();
    assert_eq!(shown.key(KeyCode::Enter), [Request::Session { agent: "data-team".into(), session }]);
}

#[test]
fn a_search_that_fails_says_why() {
    let mut shown = Shown::new(NARROW);
    shown.key(KeyCode::Char('/'));
    let Some(request) = shown.key(KeyCode::Char('-')).pop() else { panic!("no request") };
    let failure = Failure { message: "nothing to search for".into(), hint: None, kind: None };
    shown.incoming(Incoming::Answer(request, Err(failure)));
    assert!(shown.text().contains("/ -\nnothing to search for"), "{}", shown.text());
    assert_eq!(shown.key(KeyCode::Char('a')).len(), 1, "the next query is requested");
}

#[test]
fn only_the_approval_that_was_shown_is_answered() {
    let mut shown = Shown::new(NARROW);
    let action = format!("tool:bash:echo {}\u{202e}\nrm -rf build", "long ".repeat(60));
    shown.answer(
        Request::Approvals,
        Answer::Approvals(vec![approval("k7mq2x", "tool:bash:rm -rf build"), approval("9wz4ub", &action)]),
    );
    shown.key(KeyCode::Char('a'));
    assert_snapshot!("approvals_80x24", shown.text());
    shown.key(KeyCode::Down);
    let text = shown.text();
    assert!(text.contains("<U+202E>␤") && text.contains("│ rm -rf build"), "{text}");
    // The first one is decided elsewhere just before the key; the key concerns the second, which was shown.
    shown.answer(Request::Approvals, Answer::Approvals(vec![approval("9wz4ub", &action)]));
    let hash = approval("9wz4ub", "").hash;
    let decided = Request::Decide { id: "9wz4ub".into(), hash, decision: Decision::Once };
    assert_eq!(shown.key(KeyCode::Char('y')), [decided]);
    // The one that was shown is gone, and another is in its place, which nobody has seen.
    shown.answer(Request::Approvals, Answer::Approvals(vec![approval("aaaaaa", "tool:bash:other")]));
    assert_eq!(shown.key(KeyCode::Char('y')), []);
    assert!(shown.text().contains("other"));
    assert_eq!(shown.key(KeyCode::Char('n')).len(), 1);
}

#[test]
fn the_help_names_every_key() {
    let mut shown = Shown::new(NARROW);
    shown.key(KeyCode::Char('?'));
    assert_snapshot!("help_80x24", shown.text());
    shown.key(KeyCode::Esc);
    assert!(shown.text().contains("AGENT"));
}
