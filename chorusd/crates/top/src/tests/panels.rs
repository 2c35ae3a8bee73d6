//! The history, the tree, the search, the approvals.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use uuid::uuid;

use super::fixture::{NARROW, TestScreen, golden, no_connection, refused};
use crate::connection::Incoming;
use crate::fleet::Target;
use crate::requests::{Answer, Failure, Reach, Request};

#[test]
fn a_restore_is_asked_about() {
    let mut shown = TestScreen::new(NARROW);
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

/// Returns the screen with the question before a restore into `api`, and the request that it asks about.
pub(super) fn ask_to_restore() -> (TestScreen, Request) {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Char('h'));
    let history = golden::<chorus_proto::methods::context::History>(include_str!(
        "../../../../../proto/golden/v1/context.history.result.json"
    ));
    shown.answer(Request::History("api".into()), Answer::Sessions(history.sessions, history.total));
    shown.key(KeyCode::Char('r'));
    let session = uuid!("9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604");
    (shown, Request::Restore { target: Target::main("api"), session })
}

fn restored() -> Answer {
    let restored = golden::<chorus_proto::methods::context::Restore>(include_str!(
        "../../../../../proto/golden/v1/context.restore.result.json"
    ));
    Answer::Restored(Box::new(restored))
}

#[test]
fn a_late_restore_leaves_the_panel_that_is_shown() {
    let (mut shown, request) = ask_to_restore();
    shown.key(KeyCode::Char('y'));
    assert!(shown.text().ends_with("restoring …"));
    shown.answer(request, restored());
    let text = shown.text();
    assert!(text.starts_with("api · ") && text.contains("restored "), "{text}");
    let (mut shown, request) = ask_to_restore();
    shown.key(KeyCode::Char('y'));
    shown.key(KeyCode::Esc);
    shown.key(KeyCode::End);
    shown.key(KeyCode::Enter);
    let before = shown.text();
    shown.answer(request, restored());
    let text = shown.text();
    assert_eq!(before.lines().next(), text.lines().next());
    assert!(text.contains(" into api: "), "{text}");
}

#[test]
fn a_restore_without_a_connection_is_refused_and_a_lost_one_reported() {
    let (mut shown, request) = ask_to_restore();
    shown.incoming(Incoming::Disconnected(None));
    assert_eq!(shown.key(KeyCode::Char('y')), []);
    assert!(shown.text().ends_with("not done: no connection to chorusd"), "{}", shown.text());
    let (mut shown, again) = ask_to_restore();
    assert_eq!(shown.key(KeyCode::Char('y')), [request]);
    shown.incoming(Incoming::Disconnected(None));
    shown.incoming(Incoming::Answer(again, Err(no_connection())));
    assert!(shown.text().contains("api may not have its restored conversation: lost the connection"));
}

#[test]
fn lists_that_fail_say_why_and_are_requested_again() {
    for (key, request, title) in [
        ('h', Request::History("api".into()), "History of api"),
        ('t', Request::Tree(Target::main("api")), "Tree of api"),
    ] {
        let mut shown = TestScreen::new(NARROW);
        assert_eq!(shown.key(KeyCode::Char(key)), std::slice::from_ref(&request));
        let failure = refused(chorus_proto::ErrorKind::StorageFailed, "cannot read the catalog");
        shown.incoming(Incoming::Answer(request.clone(), Err(failure)));
        let text = shown.text();
        assert!(text.contains(&format!("{title}  not loaded\ncannot read the catalog")), "{text}");
        shown.incoming(Incoming::Disconnected(None));
        let effects = shown.incoming(Incoming::Connected);
        assert!(effects.contains(&crate::state::Effect::Request(request)), "{effects:?}");
        assert!(shown.text().contains("loading …"));
    }
}

#[test]
fn a_search_is_continued_after_the_daemon_was_away() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Char('/'));
    let first = shown.key(KeyCode::Char('w')).remove(0);
    let hits = golden::<chorus_proto::methods::search::Search>(include_str!(
        "../../../../../proto/golden/v1/search.result.json"
    ));
    shown.answer(first, Answer::Hits(Box::new(hits)));
    let second = shown.key(KeyCode::Char('e')).remove(0);
    // The old hits are not those of the new query.
    assert!(shown.text().contains("searching …"), "{}", shown.text());
    shown.key(KeyCode::Down);
    assert_eq!(shown.key(KeyCode::Enter), []);
    shown.incoming(Incoming::Disconnected(None));
    shown.incoming(Incoming::Answer(second.clone(), Err(no_connection())));
    assert!(shown.text().contains("/ we\nno connection to chorusd"), "{}", shown.text());
    shown.key(KeyCode::Char('b'));
    // Another panel may lie above it.
    let effects = shown.incoming(Incoming::Connected);
    let next = crate::state::Effect::Request(Request::Search { query: "web".into(), number: 4 });
    assert!(effects.contains(&next), "{effects:?}");
    // A late answer to an older one is not shown.
    shown.incoming(Incoming::Answer(second, Err(no_connection())));
    assert!(shown.text().contains("searching …"), "{}", shown.text());
}

#[test]
fn what_programs_wrote_is_found_with_its_titles() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Char('/'));
    let request = shown.key(KeyCode::Char('w')).remove(0);
    let mut hits = golden::<chorus_proto::methods::search::Search>(include_str!(
        "../../../../../proto/golden/v1/search.result.json"
    ));
    hits.hits.truncate(2);
    for (hit, title) in hits.hits.iter_mut().zip(["Nightly import", ""]) {
        (hit.imported, hit.message, hit.conversation) = (true, Some(1), None);
        (hit.agent_name, hit.title) = ("claude-code".into(), Some(title.into()));
    }
    shown.answer(request, Answer::Hits(Box::new(hits)));
    let text = shown.text();
    assert!(text.contains("\nNightly import "), "{text}");
    assert_eq!(text.matches("\nclaude-code ").count(), 1, "{text}");
}

#[test]
fn a_search_in_an_index_that_is_not_complete_is_repeated() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Char('/'));
    let request = shown.key(KeyCode::Char('w')).remove(0);
    let hits = |is_complete| {
        let mut hits = golden::<chorus_proto::methods::search::Search>(include_str!(
            "../../../../../proto/golden/v1/search.result.json"
        ));
        (hits.index.complete, hits.index.indexed) = (is_complete, if is_complete { hits.index.total } else { 600 });
        Answer::Hits(Box::new(hits))
    };
    shown.answer(request, hits(false));
    assert!(shown.text().contains("(search index "), "{}", shown.text());
    let again = Request::Search { query: "w".into(), number: 2 };
    let tick = |shown: &mut TestScreen| shown.handle(crate::state::Input::Tick);
    assert!(tick(&mut shown).contains(&crate::state::Effect::Request(again.clone())));
    assert_eq!(tick(&mut shown), [], "one at a time");
    shown.answer(again, hits(true));
    assert!(!shown.text().contains("search index"));
    assert_eq!(tick(&mut shown), []);
}

#[test]
fn a_saved_conversation_is_read() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::End);
    let id = "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604";
    let request = Request::Session { agent: "claude-code".into(), session: id.into(), reach: Reach::START };
    assert_eq!(shown.key(KeyCode::Enter), std::slice::from_ref(&request));
    let session = golden::<chorus_proto::methods::session::Get>(include_str!(
        "../../../../../proto/golden/v1/session.get.result.json"
    ));
    shown.answer(request, Answer::Session(Box::new(session)));
    assert_snapshot!("saved_80x24", shown.text());
    // The agent that holds it has no conversation of its own.
    shown.key(KeyCode::Char('r'));
    assert!(shown.text().contains("no agent selected to restore into; start with: chorusctl top --agent NAME"));
    shown.state.own_agent_for_tests("web");
    shown.key(KeyCode::Char('r'));
    let text = shown.text();
    assert!(text.contains("as the live conversation of web?\n[y]es, [N]o"), "{text}");
}

#[test]
fn the_tree_shows_branches_and_the_live_conversation() {
    let mut shown = TestScreen::new(NARROW);
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
    let mut shown = TestScreen::new(NARROW);
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
    let next = Request::Search { query: "we".into(), number: 2 };
    assert_eq!(effects, [crate::state::Effect::Request(next.clone())]);
    shown.answer(next, hits());
    assert_snapshot!("search_80x24", shown.text());
    shown.key(KeyCode::Down);
    let session = "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604".into();
    let reach = Reach::Message(16);
    assert_eq!(shown.key(KeyCode::Enter), [Request::Session { agent: "data-team".into(), session, reach }]);
}

#[test]
fn a_search_that_fails_says_why() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Char('/'));
    let Some(request) = shown.key(KeyCode::Char('-')).pop() else { panic!("no request") };
    let failure = Failure { message: "nothing to search for".into(), hint: None, kind: None };
    shown.incoming(Incoming::Answer(request, Err(failure)));
    assert!(shown.text().contains("/ -\nnothing to search for"), "{}", shown.text());
    assert_eq!(shown.key(KeyCode::Char('a')).len(), 1, "the next query is requested");
}

#[test]
fn the_help_names_every_key() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Char('?'));
    assert_snapshot!("help_80x24", shown.text());
    shown.key(KeyCode::PageDown);
    let text = shown.text();
    assert!(text.contains("Ctrl-L, Ctrl-Z") && !text.contains("more lines"), "{text}");
    shown.key(KeyCode::Esc);
    assert!(shown.text().contains("AGENT"));
}
