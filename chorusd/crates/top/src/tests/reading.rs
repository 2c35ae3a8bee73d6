//! Reading a conversation: above its last messages, around one that was found, while it grows and the terminal changes. And the line.

use chorus_proto::methods::context::ShowResult;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::fixture::{NARROW, TestScreen, WIDE, golden, read, status};
use crate::connection::Incoming;
use crate::fleet::Target;
use crate::requests::{Answer, Reach, Request};
use crate::state::{Effect, Input};

/// The messages from `first` on of a conversation with so many.
fn page(first: u64, total: u64) -> Answer {
    let mut shown: ShowResult = golden::<chorus_proto::methods::context::Show>(include_str!(
        "../../../../../proto/golden/v1/context.show.result.json"
    ));
    let message = |number: u64| -> Value {
        json!({
            "id": format!("m{number}"), "role": "user", "timestamp": "2026-03-05T07:00:00Z",
            "content": format!("message {number} {}", "of a text that is long enough to be wrapped ".repeat(3))
        })
    };
    shown.messages = (first..=total).map(|number| read(message(number))).collect();
    if let Some(context) = &mut shown.context {
        context.messages = total;
    }
    Answer::Messages(Box::new(shown))
}

fn open_web(size: (u16, u16)) -> (TestScreen, Target) {
    let mut shown = TestScreen::new(size);
    (0..3).for_each(|_| drop(shown.key(KeyCode::Down)));
    shown.key(KeyCode::Enter);
    shown.piece(json!({"attached": {"turn_id": null, "others": []}}));
    (shown, Target::main("web"))
}

fn messages(target: &Target, reach: Reach) -> Request {
    Request::Messages(target.clone(), reach)
}

/// Returns the numbers of the messages whose first line is on the screen.
fn visible(shown: &mut TestScreen) -> Vec<u64> {
    let text = shown.text();
    let numbers = text.lines().filter_map(|line| line.strip_prefix("  message ").or(line.strip_prefix("▌ message ")));
    numbers.filter_map(|rest| rest.split(' ').next()?.parse().ok()).collect()
}

#[test]
fn messages_further_above_are_loaded_at_the_top() {
    let (mut shown, web) = open_web(NARROW);
    shown.answer(messages(&web, Reach::START), page(301, 500));
    assert_eq!(visible(&mut shown).last(), Some(&500));
    for _ in 0..100 {
        if let Some(request) = shown.key(KeyCode::PageUp).pop() {
            assert_eq!(request, messages(&web, Reach::Last(400)));
            break;
        }
        shown.text();
    }
    let text = shown.text();
    assert!(text.contains("\n… 300 messages before; loading …\n\nyou  07:00\n  message 301 "), "{text}");
    assert_eq!(shown.key(KeyCode::PageUp), [], "once");
    shown.text();
    shown.answer(messages(&web, Reach::Last(400)), page(101, 500));
    assert!(visible(&mut shown).contains(&301), "it stays in view: {}", shown.text());
    // What is requested again has as many.
    let event = json!({
        "seq": 20, "time": "2026-03-05T08:00:00Z", "type": "context.rewound", "agent": "web", "data": {}
    });
    assert!(shown.event(event).contains(&Effect::Request(messages(&web, Reach::Last(400)))));
    shown.answer(messages(&web, Reach::Last(400)), page(1, 390));
    for _ in 0..200 {
        shown.key(KeyCode::PageUp);
        shown.text();
    }
    assert_eq!(visible(&mut shown).first(), Some(&1));
    assert!(!shown.text().contains(" before"));
}

#[test]
fn the_last_line_stays_when_the_terminal_changes_and_when_more_is_said() {
    let (mut shown, web) = open_web(NARROW);
    shown.answer(messages(&web, Reach::START), page(301, 500));
    shown.text();
    (0..5).for_each(|_| drop(shown.key(KeyCode::PageUp)));
    let last = visible(&mut shown).last().copied();
    assert!(last.is_some_and(|last| last < 490));
    shown.resize(WIDE);
    shown.handle(Input::Resized);
    assert_eq!(visible(&mut shown).last().copied(), last);
    shown.resize((50, 20));
    assert!(visible(&mut shown).last().copied().is_some_and(|at| last.is_some_and(|last| last - at <= 1)));
    shown.resize(NARROW);
    let before = visible(&mut shown);
    shown.piece(json!({"message": {"id": "n1", "role": "user", "text": "more\nmore\nmore"}}));
    assert_eq!(visible(&mut shown), before);
    // Also when the record that follows has fewer at its start.
    shown.answer(messages(&web, Reach::START), page(311, 510));
    assert_eq!(visible(&mut shown), before);
}

#[test]
fn a_message_that_was_found_is_marked_and_in_view() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::Char('/'));
    let request = shown.key(KeyCode::Char('d')).remove(0);
    let mut result = serde_json::to_value(golden::<chorus_proto::methods::search::Search>(include_str!(
        "../../../../../proto/golden/v1/search.result.json"
    )))
    .expect("JSON");
    let hits = result["hits"].as_array_mut().expect("hits");
    hits.truncate(1);
    (hits[0]["session"], hits[0]["agent_name"], hits[0]["message"]) = (Value::Null, "web".into(), 340.into());
    hits[0].as_object_mut().expect("a hit").remove("conversation");
    shown.answer(request, Answer::Hits(Box::new(read(result))));
    (0..9).for_each(|_| drop(shown.key(KeyCode::Down)));
    shown.key(KeyCode::Enter);
    let web = Target::main("web");
    let effects = shown.piece(json!({"attached": {"turn_id": null, "others": []}}));
    assert_eq!(effects, [Effect::Request(messages(&web, Reach::Message(340)))]);
    shown.answer(messages(&web, Reach::Message(340)), page(321, 520));
    let text = shown.text();
    assert!(text.contains("\n▌ message 340 ") && text.contains("\n  message 341 "), "{text}");
    shown.key(KeyCode::Down);
    assert!(shown.text().contains("\n▌ message 340 "), "it can be left");
}

#[test]
fn without_utf8_only_ascii_is_drawn() {
    let mut shown = TestScreen::new(NARROW);
    shown.state.is_utf8 = false;
    let list = shown.text();
    assert!(list.contains("api           asks you (a)    23 ####. 62 %") && list.contains("docs-? ? ? "), "{list}");
    shown.key(KeyCode::Enter);
    let open = shown.text();
    assert!((list + &open).is_ascii(), "{open}");
}

#[test]
fn drafts_stay_with_their_conversations() {
    let (mut shown, _) = open_web(NARROW);
    shown.type_text("a draft");
    shown.key(KeyCode::Esc);
    shown.key(KeyCode::Home);
    shown.key(KeyCode::Enter);
    assert!(shown.text().contains("\n>\n"));
    shown.key(KeyCode::Esc);
    for leave in [KeyCode::Char('q'), KeyCode::Char('q')] {
        assert_eq!(shown.handle(Input::Key(leave.into())), []);
        assert!(shown.text().ends_with("a text for web is not sent; press the key again to quit without it"));
        shown.key(KeyCode::Up);
    }
    assert_eq!(shown.handle(Input::Key(KeyCode::Char('q').into())), []);
    assert_eq!(shown.handle(Input::Key(KeyCode::Char('q').into())), [Effect::Leave]);
    (0..3).for_each(|_| drop(shown.key(KeyCode::Down)));
    shown.key(KeyCode::Enter);
    assert!(shown.text().contains("\n> a draft\n"), "{}", shown.text());
}

#[test]
fn ctrl_c_cancels_the_turn_first() {
    let (mut shown, web) = open_web(NARROW);
    let turn = uuid::uuid!("0197a8c2-1d00-7a31-9c55-3e1f6f0b2a08");
    shown.piece(json!({"started": {"turn_id": turn}}));
    assert_eq!(shown.control('c'), [Effect::Request(Request::Cancel(web.clone(), Some(turn)))]);
    assert!(shown.text().ends_with("cancelling the turn; Ctrl-C again quits"));
    assert_eq!(shown.control('c'), [Effect::Leave]);
    assert_eq!(shown.control('x'), [Effect::Request(Request::Cancel(web, Some(turn)))]);
}

#[test]
fn a_text_that_is_too_long_is_not_pasted_in_part() {
    let (mut shown, _) = open_web(NARROW);
    shown.handle(Input::Paste("one\r\ntwo".into()));
    assert!(shown.text().contains("\n> one␤two\n"));
    shown.handle(Input::Paste("x".repeat(256 << 10)));
    assert!(
        shown.text().contains("not pasted: the text would be longer than 256 KiB\n> one␤two\n"),
        "{}",
        shown.text()
    );
    shown.handle(Input::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT)));
    shown.control('h');
    shown.type_text("!");
    assert!(shown.text().contains("\n> one␤two!\n") && !shown.text().contains("not pasted"), "{}", shown.text());
    shown.key(KeyCode::Esc);
    shown.key(KeyCode::Char('/'));
    shown.handle(Input::Paste("two\nlines".into()));
    assert!(shown.text().contains("/ two lines"));
    shown.handle(Input::Paste("x".repeat(256 << 10)));
    assert!(shown.text().ends_with("not pasted: the text would be longer than 256 KiB"));
}

#[test]
fn an_agent_that_is_gone_is_not_opened_in_place_of_another() {
    let mut shown = TestScreen::new(NARROW);
    (0..3).for_each(|_| drop(shown.key(KeyCode::Down)));
    shown.event(json!({
        "seq": 10, "time": "2026-03-05T08:00:00Z", "type": "agent.destroyed", "agent": "web", "data": {}
    }));
    assert!(shown.text().ends_with("web no longer exists"));
    assert_eq!(shown.handle(Input::Key(KeyCode::Enter.into())), []);
    assert!(shown.text().ends_with(" is selected now; Enter opens it"), "{}", shown.text());
    assert!(!shown.handle(Input::Key(KeyCode::Enter.into())).is_empty());
}

#[test]
fn an_agent_with_a_new_name_is_followed() {
    let (mut shown, web) = open_web(NARROW);
    shown.type_text("hello");
    shown.key(KeyCode::Enter);
    let mut renamed = status(0);
    renamed["agents"][2]["name"] = "site".into();
    let site = Target::main("site");
    let effects = shown.answer(Request::Status, Answer::Status(read(renamed)));
    assert!(effects.contains(&Effect::Attach(site.clone(), 1)), "{effects:?}");
    let text = shown.text();
    assert!(text.starts_with("site · ") && text.ends_with("web is called site now"), "{text}");
    assert!(text.contains("you  sending …\n  hello\n"), "{text}");
    // The answer to what was sent under the old name.
    let request = Request::Send { target: web, text: "hello".into(), key: "-1".into() };
    shown.answer(request, Answer::Sent);
    assert!(!shown.text().contains("hello"), "{}", shown.text());
    shown.key(KeyCode::Esc);
    assert_eq!(shown.key(KeyCode::Char('t')), [Request::Tree(site)]);
}

#[test]
fn a_saved_conversation_that_cannot_be_read_says_why() {
    let mut shown = TestScreen::new(NARROW);
    shown.key(KeyCode::End);
    let request = shown.key(KeyCode::Enter).remove(0);
    let failure = super::fixture::refused(chorus_proto::ErrorKind::CorruptSession, "the file is damaged");
    shown.incoming(Incoming::Answer(request.clone(), Err(failure)));
    let text = shown.text();
    assert!(text.contains("\nthe file is damaged\n") && !text.contains("loading"), "{text}");
    assert!(shown.incoming(Incoming::Connected).contains(&Effect::Request(request)));
}

#[test]
fn an_agent_that_does_not_exist_is_named() {
    let zone = jiff::tz::TimeZone::UTC;
    let state = crate::state::State::new(super::fixture::now(), zone, false, "pts/9".into(), Some("nosuch"));
    let mut shown = TestScreen::of(state, NARROW);
    shown.incoming(Incoming::Connected);
    shown.answer(Request::Status, Answer::Status(read(status(0))));
    assert!(shown.text().ends_with("no agent \"nosuch\""), "{}", shown.text());
    assert!(!shown.handle(Input::Key(KeyCode::Enter.into())).is_empty());
}

#[test]
fn the_number_of_tasks_is_that_of_the_list() {
    let mut shown = TestScreen::new(NARROW);
    assert!(shown.text().contains(" · 1 running task · "), "{}", shown.text());
    shown.answer(Request::Tasks, Answer::Tasks(Vec::new()));
    assert!(shown.text().contains(" · 0 running tasks · "), "the status is older: {}", shown.text());
}

#[test]
fn a_long_reply_shows_its_start_and_its_end() {
    let (mut shown, _) = open_web(NARROW);
    shown.piece(json!({"started": {"turn_id": "0197a8c2-1d00-7a31-9c55-3e1f6f0b2a08"}}));
    shown.piece(json!({"text": format!("The start.\n{}\nThe end.", "é".repeat(40 << 10))}));
    assert!(shown.text().contains("  The end."));
    let mut found = false;
    for _ in 0..200 {
        shown.key(KeyCode::PageUp);
        found |= shown.text().contains("… 16 KiB are not shown here …");
    }
    assert!(found && shown.text().contains("  The start."), "{}", shown.text());
}
