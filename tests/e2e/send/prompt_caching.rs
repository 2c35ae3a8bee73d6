//! Prompt caching: a call begins with the very bytes of the one before it, up to where that one was marked, and is marked there
//! again.

use chorus_tests::model_server::{RecordedRequest, Response};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{send, start_fixture};

const MARK: &str = "\"cache_control\":{\"type\":\"ephemeral\"}";

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    system: Vec<&'a RawValue>,
    #[serde(borrow)]
    messages: Vec<Turn<'a>>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    role: &'a str,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

/// The blocks of a request in the order in which the provider reads them, without marks, and which of them were marked.
fn blocks(request: &RecordedRequest) -> (Vec<String>, Vec<usize>) {
    let body: Body<'_> = serde_json::from_str(&request.text).expect("a request");
    let head = body.tools.iter().chain(&body.system).map(|block| block.get().to_owned());
    let said = body.messages.iter().flat_map(|turn| turn.content.iter().map(|block| format!("{} {block}", turn.role)));
    let all: Vec<String> = head.chain(said).collect();
    let marked = all.iter().enumerate().filter(|(_, block)| block.contains(MARK)).map(|(at, _)| at).collect();
    let bare = |block: &String| block.replace(&format!(",{MARK}"), "").replace(MARK, "");
    (all.iter().map(bare).collect(), marked)
}

#[test]
fn each_call_begins_with_the_one_before_it_and_is_marked_where_that_one_ended() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    std::fs::write(fixture.home.agent_dir("a").join("docs/plan.md"), "Ship on Friday.\n").expect("a note");
    let calls = |text: &str, ids: [&str; 2]| {
        let call = |answer: Response, id: &str| answer.then_call(id, "list_models", &json!({}));
        ids.into_iter().fold(Response::empty().thinking("Hm.", "sig").then_text(text), call)
    };
    fixture.answer(calls("I look.", ["c1", "c2"]));
    fixture.answer(calls("Again.", ["c3", "c4"]));
    fixture.reply("Two.");
    send(&mut client, "Which models are there?").expect("a turn");
    fixture.reply("Yes.");
    send(&mut client, "Are you sure?").expect("a turn");
    fixture.answer(calls("Once more.", ["c5", "c6"]));
    fixture.reply("Still two.");
    send(&mut client, "Really?").expect("a turn");

    let requests = fixture.models().requests();
    assert_eq!(requests.len(), 6);
    let first = blocks(&requests[0]);
    assert_eq!(first.1.len(), 3, "tools, system, and the question: {first:?}");
    for pair in requests.windows(2) {
        let ((before, ended), (after, marked)) = (blocks(&pair[0]), blocks(&pair[1]));
        assert_eq!(marked.len(), 4, "as many as there may be: {marked:?}");
        let end = *ended.last().expect("a mark");
        assert_eq!(end + 1, before.len(), "all of it is kept for the next call");
        assert_eq!(before[..=end], after[..=end]);
        assert!(marked.contains(&end), "what was kept is asked for: {end} of {marked:?}");
        assert_eq!(marked.last(), Some(&(after.len() - 1)));
    }
}

#[test]
fn what_is_asked_once_is_not_kept() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    fixture.reply("Yes.");
    send(&mut client, "Please move the invoice amounts to integer cents, in every table of billing.").expect("a turn");
    fixture.reply("Cents\n\nThe amounts are in cents.");
    let params = chorus_proto::methods::context::SaveParams { agent: Some("a".into()), ..Default::default() };
    client.call::<chorus_proto::methods::context::Save>(&params).expect("saved");
    let summary = fixture.models().wait_for_requests(2).pop().expect("a request");
    assert!(summary.text.contains("transcript") && !summary.text.contains(MARK), "{}", summary.text);
}
