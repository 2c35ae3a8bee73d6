//! Older messages leave the window: by themselves above a limit, by hand into a new link of the chain.

use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::context::{Clear, ClearParams, Pin, PinParams, Rewind, RewindParams, Show, ShowParams};
use chorus_proto::methods::continuation::{Compact, CompactParams, CompactResult};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::{CallError, Client, ErrorKind, EventType, NewMessage, Role, WorkingSet};
use chorus_tests::Fixture;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::model_server::{RecordedRequest, Response};
use chorus_tests::rng::Rng;
use chorus_tests::strace::is_permitted;

use crate::send::crash::{struck, writes};
use crate::send::{assert_legal, record, send, start_fixture};
use crate::system_calls::{all, sample};

/// More than the window may have.
const NOTES: u32 = 140;

const PINS: [&str; 2] = ["the old  column stays", "DATEV kommt zuerst – „immer“"];

/// A conversation that is longer than its agent's window may be.
fn long() -> Fixture {
    let fixture = start_fixture();
    let mut client = fixture.client();
    set(&mut client, "compact_at_tokens", "2000");
    for fact in PINS {
        client
            .call::<Pin>(&PinParams { conversation: None, agent: Some("a".into()), fact: fact.into() })
            .expect("context.pin");
    }
    notes(&mut client, 0..NOTES);
    fixture
}

fn set(client: &mut Client, key: &str, value: &str) {
    let params = ConfigParams { name: "a".into(), key: Some(key.into()), value: Some(value.into()) };
    client.call::<Config>(&params).expect("agent.config");
}

/// About 30 tokens each.
fn notes(client: &mut Client, numbers: std::ops::Range<u32>) {
    let note = |n| NewMessage::text(Role::User, format!("We decided on plan {n:03}. {}", "x".repeat(96)));
    client.append_all("a", numbers.map(note).collect());
}

fn compact(client: &mut Client, undo: bool) -> Result<CompactResult, CallError> {
    client.call::<Compact>(&CompactParams { conversation: None, agent: Some("a".into()), undo })
}

fn working_set(client: &mut Client) -> WorkingSet {
    let params = ShowParams { agent: Some("a".into()), limit: Some(0), ..Default::default() };
    client.call::<Show>(&params).expect("context.show").working_set
}

/// What the model was shown last: the system prompt with the working set, and the messages.
fn last(fixture: &Fixture) -> (String, String, usize) {
    let of_turn = |request: &RecordedRequest| request.body["tool_choice"].is_null();
    let RecordedRequest { body, .. } = fixture.models().requests().into_iter().rfind(of_turn).expect("a request");
    let messages = body["messages"].as_array().map_or(0, Vec::len);
    // Messages of one side in a row are blocks of one there.
    let blocks = body["messages"].to_string().matches("We decided on plan").count();
    (body["system"].to_string(), body["messages"].to_string(), blocks.max(messages))
}

fn compactions(fixture: &Fixture, count: usize) -> usize {
    fixture.wait_for_events(EventType::ContextCompacted, count).len()
}

#[test]
fn above_its_limit_a_window_is_compacted_and_nothing_is_lost_by_a_crash_or_an_undo() {
    let fixture = long();
    fixture.reply("Noted.");
    assert_eq!(send(&mut fixture.client(), "Go.").expect("a turn").reply, "Noted.");
    // The model was asked beside it to write down what left, and would not: what rules found stays.
    fixture.wait_for_events(EventType::ContextNoted, 1);
    assert_eq!(fixture.models().requests().len(), 2);
    let (system, messages, shown) = last(&fixture);
    assert!(!messages.contains("plan 000") && messages.contains("plan 139"), "{messages}");
    assert!(system.contains("We decided on plan 000.") && system.contains("Summary so far"), "{system}");
    PINS.iter().for_each(|fact| assert!(system.contains(fact), "{system}"));
    let receipt = fixture.wait_for_events(EventType::ContextCompacted, 1)[0].data.clone();
    assert!(
        receipt["tokens_after"].as_u64() < Some(2000) && receipt["tokens_before"].as_u64() > Some(4000),
        "{receipt}"
    );
    assert_eq!(receipt["pins"], serde_json::json!(PINS));
    let mut client = fixture.client();
    assert_eq!(record(&mut client).len(), 142);
    let set = working_set(&mut client);
    assert_eq!(set.decisions.len(), 100);
    assert!(set.token_budget.used <= set.token_budget.limit && set.token_budget.limit < 600, "{:?}", set.token_budget);

    // A crash changes nothing of it, and neither does what follows.
    let fixture = fixture.crash();
    fixture.reply("Still.");
    send(&mut fixture.client(), "And now?").expect("a turn");
    let (_, messages, _) = last(&fixture);
    assert!(!messages.contains("plan 000") && compactions(&fixture, 1) == 1, "{messages}");
    assert_eq!(working_set(&mut fixture.client()), set);

    // Taken back, it shows as much as it may, and is not compacted again at once.
    let undone = compact(&mut fixture.client(), true).expect("an undo");
    assert_eq!((Some(undone.receipt.left), undone.messages), (receipt["left"].as_u64(), 144));
    assert_eq!(expect_error_kind(compact(&mut fixture.client(), true)), ErrorKind::Denied);
    let fixture = fixture.crash();
    let set = working_set(&mut fixture.client());
    assert!(set.decisions.is_empty() && set.summary.is_none() && set.pinned_facts.len() == 2, "{set:?}");
    fixture.reply("More.");
    send(&mut fixture.client(), "Once more.").expect("a turn");
    let (_, messages, more) = last(&fixture);
    assert!(more > shown, "{more} after {shown}: {messages}");
    assert_eq!(compactions(&fixture, 1), 1);
    notes(&mut fixture.client(), NOTES..NOTES + 20);
    fixture.reply("Enough.");
    send(&mut fixture.client(), "Again.").expect("a turn");
    assert_eq!(compactions(&fixture, 2), 2);
}

#[test]
fn pins_survive_many_compactions_byte_for_byte() {
    let mut fixture = long();
    for round in 1..=6 {
        fixture.reply("Noted.");
        send(&mut fixture.client(), "Go.").expect("a turn");
        assert_eq!(compactions(&fixture, round), round);
        assert_eq!(fixture.client().pinned_facts("a"), PINS);
        let set = working_set(&mut fixture.client());
        assert!(set.token_budget.used <= set.token_budget.limit, "{:?}", set.token_budget);
        if round % 2 == 0 {
            fixture = fixture.crash();
        }
        let from = NOTES * u32::try_from(round).expect("few");
        notes(&mut fixture.client(), from..from + NOTES);
    }
    let shown = fixture.client().messages("a");
    assert_eq!(shown.len(), 140 * 7 + 12);
    let saved = fixture.client().save("a", "all of it");
    assert_eq!(saved.header.message_count, 140 * 7 + 12);
    assert_eq!(saved.header.working_set.pinned_facts.len(), 2);
}

#[test]
fn a_compaction_stays_when_the_session_it_was_restored_from_goes() {
    let fixture = long();
    // Each save asks for a summary, too.
    fixture.models().anthropic().set_fallback(Response::text(["Noted."]));
    let mut client = fixture.client();
    let saved = client.save("a", "all of it");
    client.append("a", "And one more.");
    client.restore("a", &saved.header.session_id);
    send(&mut client, "Go.").expect("a turn");
    let before = working_set(&mut client);
    let params = DeleteParams { agent: Some("a".into()), session: saved.header.session_id, ..Default::default() };
    client.call::<Delete>(&params).expect("session.delete");
    client.append("a", "What came next.");
    let fixture = fixture.crash();
    let mut client = fixture.client();
    assert_eq!((record(&mut client).len(), working_set(&mut client)), (143, before));
    let undone = compact(&mut client, true).expect("an undo");
    let receipt = fixture.wait_for_events(EventType::ContextCompacted, 1)[0].data.clone();
    assert_eq!(Some(undone.receipt.left), receipt["left"].as_u64());
    assert!(working_set(&mut client).decisions.is_empty());
    assert_eq!(client.pinned_facts("a"), PINS);
}

#[test]
fn a_rewind_across_a_compaction_shows_what_there_is_and_its_undo_what_there_was() {
    let fixture = long();
    fixture.reply("Noted.");
    send(&mut fixture.client(), "Go.").expect("a turn");
    let before = working_set(&mut fixture.client());
    let rewind = |n, undo| {
        let params = RewindParams { conversation: None, agent: Some("a".into()), n, undo };
        fixture.client().call::<Rewind>(&params).expect("context.rewind").messages
    };
    assert_eq!(rewind(Some(136), false), 5);
    assert!(working_set(&mut fixture.client()).decisions.is_empty());
    assert_eq!(rewind(None, true), 142);
    assert_eq!(working_set(&mut fixture.client()), before);
    rewind(Some(136), false);
    let fixture = fixture.crash();
    fixture.reply("Early.");
    send(&mut fixture.client(), "Go on.").expect("a turn");
    let (_, messages, _) = last(&fixture);
    assert!(
        messages.contains("plan 000") && messages.contains("plan 004") && !messages.contains("plan 005"),
        "{messages}"
    );
}

#[test]
fn by_hand_the_model_acknowledges_and_what_that_cost_stands_apart() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    client.append("a", "The nightly import drops rows without a country. We decided to keep them.");
    let summary = "The import\n\nRows without a country were dropped. They are kept now.";
    fixture.models().anthropic().set_fallback(Response::text([summary]));
    fixture.answer(Response::text(["We looked into the import. ", "Rows are kept. Ready."]).usage(120, 15));
    let result = compact(&mut client, false).expect("context.compact");
    assert_eq!(result.acknowledgement.as_deref(), Some("We looked into the import. Rows are kept. Ready."));
    assert!(!result.generated);
    let session = result.session.expect("a session");
    assert_eq!(session.header.summary.as_deref(), Some("Rows without a country were dropped. They are kept now."));
    let asked = fixture.models().requests().pop().expect("a request").text;
    assert!(asked.contains("> Summary: Rows without a country were dropped."), "{asked}");
    let fixture = fixture.crash();
    let mut client = fixture.client();
    let shown = client.messages("a");
    assert!(shown.len() == 1 && !shown[0].generated);
    fixture.reply("Yes.");
    send(&mut client, "Do we keep them?").expect("a turn");
    let (system, messages, _) = last(&fixture);
    assert!(system.contains("Derived from session") && messages.contains("We looked into the import."), "{system}");
    fixture.models().anthropic().set_fallback(Response::text(["Next\n\nThe rows are kept. Nothing is open."]));
    let saved = client.save("a", "");
    assert_eq!((saved.header.restoration_tokens.input, saved.header.restoration_tokens.output), (120, 15));
    assert_eq!(saved.header.query_count, 1);
    // What it cost stays known when that save goes.
    let params = DeleteParams { agent: Some("a".into()), session: saved.header.session_id, ..Default::default() };
    client.call::<Delete>(&params).expect("session.delete");
    client.append("a", "And one more.");
    let fixture = fixture.crash();
    fixture.models().anthropic().set_fallback(Response::text(["Next\n\nThe rows are kept. Nothing is open."]));
    let again = fixture.client().save("a", "").header;
    assert_eq!((again.restoration_tokens.input, again.message_count), (120, 4));
    // It goes along with a restore, and is shown with the context.
    let mut client = fixture.client();
    client.append("a", "Another thing.");
    client.restore("a", &again.session_id);
    let fixture = fixture.crash();
    // Whether its messages were read since the start, or not.
    let untouched = fixture.client().agent_status("a").context.expect("a context").restoration_tokens;
    assert_eq!((untouched.input, untouched.output), (120, 15));
    let params = ShowParams { agent: Some("a".into()), limit: Some(0), ..Default::default() };
    let context = fixture.client().call::<Show>(&params).expect("context.show").context.expect("a context");
    assert_eq!((context.restoration_tokens.input, context.restoration_tokens.output), (120, 15));
    fixture.client().append("a", "And one more.");
    fixture.models().anthropic().set_fallback(Response::text(["Next\n\nThe rows are kept. Nothing is open."]));
    assert_eq!(fixture.client().save("a", "").header.restoration_tokens.input, 120);
}

#[test]
fn a_model_that_fails_keeps_nobody_from_going_on() {
    let fixture = start_fixture();
    let mut client = fixture.client();
    client.append("a", "The nightly import drops rows without a country. We decided to keep them.");
    // Neither a summary nor an acknowledgement was laid out: each is refused.
    let result = compact(&mut client, false).expect("context.compact");
    assert!(result.generated && result.acknowledgement.expect("words").ends_with("I am ready to continue."));
    assert_eq!(client.messages("a").len(), 1);
}

/// So short that no model is asked for a summary of it, and a longer one.
const SHORT: &str = "Count the sheep of the north field.";
const LONGER: &str =
    "The nightly import drops rows without a country. We decided to keep the sheep of the north field.";

/// What becomes of a compaction where `meanwhile` is done while it waits for a model: for the summary of its session, or for the
/// acknowledgement.
fn compacting(fixture: &Fixture, text: &str, meanwhile: impl FnOnce(&mut Client)) -> Result<CompactResult, CallError> {
    fixture.client().append("a", text);
    fixture.answer(Response::empty().gate("model").then_text("Sheep\n\nThey are counted. Nothing else was said."));
    let mut client = fixture.client();
    let compacting = std::thread::spawn(move || compact(&mut client, false));
    fixture.models().wait_for_gate("model");
    meanwhile(&mut fixture.client());
    fixture.models().open_gate("model");
    compacting.join().expect("the client")
}

#[test]
fn a_context_whose_save_cannot_be_read_stays() {
    for text in [SHORT, LONGER] {
        let fixture = start_fixture();
        let result = compacting(&fixture, text, |client| {
            let file = client.history("a").remove(0).file_path;
            std::fs::remove_file(file).expect("the file goes");
        });
        assert_eq!(expect_error_kind(result), ErrorKind::SessionNotFound);
        assert_eq!(fixture.client().message_texts("a"), [text]);
        let fixture = start_fixture();
        let result = compacting(&fixture, text, |client| {
            let file = client.history("a").remove(0).file_path;
            let content = std::fs::read_to_string(&file).expect("the file");
            std::fs::write(&file, content.replace("sheep of the north", "goats of the south")).expect("another");
        });
        assert_eq!(expect_error_kind(result), ErrorKind::CorruptSession);
        assert_eq!(fixture.client().message_texts("a"), [text]);
    }
}

#[test]
fn a_context_that_took_the_place_of_the_one_to_be_compacted_stays() {
    let fixture = start_fixture();
    let result = compacting(&fixture, SHORT, |client| {
        client
            .call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false })
            .expect("context.clear");
        client.append("a", "Another conversation.");
    });
    assert_eq!(expect_error_kind(result), ErrorKind::Interrupted);
    let mut client = fixture.client();
    assert_eq!((client.message_texts("a"), client.history("a").len()), (vec!["Another conversation.".to_owned()], 1));
}

#[test]
fn while_a_turn_runs_the_context_stays() {
    let fixture = start_fixture();
    fixture.answer(Response::text(["Half"]).gate("never"));
    let turn = fixture.spawn_send("a", "Talk.");
    fixture.models().wait_for_gate("never");
    for undo in [false, true] {
        assert_eq!(expect_error_kind(compact(&mut fixture.client(), undo)), ErrorKind::Busy);
    }
    assert!(fixture.client().history("a").is_empty(), "nothing was saved for it");
    crate::send::cancel(&mut fixture.client());
    assert!(turn.join().expect("the client").is_err());
}

/// A message that has the window compacted first, whatever comes of it.
fn go(fixture: &Fixture) {
    fixture.reply("Noted.");
    let _ = send(&mut fixture.client(), "Go.");
}

#[test]
fn a_kill_at_any_write_of_the_journal_leaves_the_window_whole_or_compacted() {
    let fixture = long();
    if !is_permitted(&fixture.home) {
        return;
    }
    let mut strace = struck(&fixture, None, go);
    let (whole, compacted) = (record(&mut fixture.client()), working_set(&mut fixture.client()));
    assert_eq!((whole.len(), compacted.decisions.len()), (142, 100));
    let fixture = fixture.crash();
    strace.wait_for_exit();
    let writes = writes(&strace);
    drop(fixture);
    let numbers: Vec<usize> = (1..=writes).collect();
    for number in sample(&numbers, if all() { writes } else { 6 }, &mut Rng::new(6)) {
        let fixture = long();
        let strace = struck(&fixture, Some(number), go);
        let fixture = fixture.crash();
        drop(strace);
        let mut client = fixture.client();
        let found = record(&mut client);
        assert!(whole.starts_with(&found) && found.len() >= 140, "killed at write {number}: {found:?}");
        assert_legal(&client.messages("a"));
        assert_eq!(client.pinned_facts("a"), PINS, "killed at write {number}");
        let set = working_set(&mut client);
        // Ids of messages are others in every home.
        let texts = |set: &WorkingSet| set.decisions.iter().map(|item| item.text.clone()).collect::<Vec<_>>();
        assert!(texts(&set).is_empty() || texts(&set) == texts(&compacted), "killed at write {number}: {set:?}");
        fixture.models().anthropic().set_fallback(Response::text(["I am here."]));
        send(&mut client, "Are you?").unwrap_or_else(|e| panic!("killed at write {number}: {e}"));
        assert_eq!(compactions(&fixture, 1), 1, "killed at write {number}");
    }
}
