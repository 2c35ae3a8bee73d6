//! Thirty compactions in place.

use std::collections::{BTreeSet, HashMap};

use chorus_proto::methods::context::{Rewind, RewindParams};
use chorus_proto::methods::continuation::{Compact, CompactParams};
use chorus_proto::methods::send::{Send, SendParams};
use chorus_proto::methods::session_branching::{Diff, DiffParams, Side};
use chorus_proto::{Client, EventType, ItemSource, Message, Receipt, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::model_server::Response;
use chorus_tests::{DEADLINE, wait_until};

use super::conversation::{self, FACTS, MESSAGES};
use super::{Long, asked, assert_planted, assert_statements_stand, at_least, exported, is_turn, pins, working_set};

const ROUNDS: usize = 30;

/// Tokens that messages and working set may have; the default.
const LIMIT: u64 = 15_000;

/// The whole conversation, in thirty parts, each with a turn that finds its window too long.
fn gone_through(long: &Long) -> Vec<Receipt> {
    long.server.anthropic().set_fallback(Response::text(["Noted."]));
    let mut client = long.client();
    let (mut receipts, mut seen) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        let part = round * MESSAGES / ROUNDS..(round + 1) * MESSAGES / ROUNDS;
        client.append_all("a", conversation::messages(part));
        let params =
            SendParams { agent: Some("a".into()), text: format!("Go on, round {round}."), ..Default::default() };
        let answer = client.call::<Send>(&params).unwrap_or_else(|e| panic!("round {round}: {e}"));
        assert_eq!(answer.reply, "Noted.", "round {round}");
        // Only the newest events are kept, and each message is one.
        let mut told = Vec::new();
        wait_until("the notes of what left", DEADLINE, || {
            told.extend(client.events(seen));
            seen = told.last().map_or(seen, |event| event.seq);
            told.iter().any(|event| event.kind == EventType::ContextNoted).then_some(())
        });
        let noted = told.into_iter().filter(|event| event.kind == EventType::ContextNoted);
        receipts.extend(noted.map(|event| serde_json::from_value::<Receipt>(event.data).expect("a receipt")));
        assert_eq!(receipts.len(), round + 1, "once in each round");
    }
    for request in long.server.requests().iter().filter(|request| request.body["tool_choice"].is_null()) {
        assert!(at_least(&request.body) <= LIMIT, "{} tokens", at_least(&request.body));
        let system = request.body["system"].to_string();
        let shown = |pin: &String| system.contains(serde_json::to_string(pin).expect("JSON").trim_matches('"'));
        assert!(pins().iter().all(shown), "a pin is not shown: {system}");
    }
    assert_eq!(client.pinned_facts("a"), pins());
    receipts
}

/// What `one` says behind what `other` has, too, and how many messages that is.
fn behind(client: &mut Client, one: &Session, other: &Session) -> (u64, Vec<Message>) {
    let (mut offset, mut common, mut messages) = (Some(0), 0, Vec::new());
    while offset.is_some() {
        let (a, b) = (one.short_id.clone(), other.short_id.clone());
        let params = DiffParams { agent: Some("a".into()), a, b, offset, ..Default::default() };
        let page = client.call::<Diff>(&params).expect("session.diff");
        assert!(page.lines.iter().all(|line| line.side == Side::A));
        messages.extend(page.lines.into_iter().map(|line| line.message));
        (offset, common) = (page.next, page.common);
    }
    (common, messages)
}

/// Every message by show, behind a rewind across all compactions and its undo, in what is saved, compared and exported.
fn check_originals(long: &Long) {
    let mut client = long.client();
    let check = |shown: &[Message]| {
        let planted: Vec<_> = shown.iter().filter(|message| !is_turn(message)).collect();
        assert_planted(&planted, 0..MESSAGES);
    };
    let before = client.messages("a");
    check(&before);
    let set = working_set(&mut client);
    let rewind = |n, undo| RewindParams { conversation: None, agent: Some("a".into()), n, undo };
    let turns = (MESSAGES / 4 + ROUNDS) as u64;
    client.call::<Rewind>(&rewind(Some(turns - 10), false)).expect("context.rewind");
    assert_eq!(client.messages("a").len(), 40);
    assert!(working_set(&mut client).facts.is_empty(), "what was derived of messages that are gone");
    assert_eq!(client.pinned_facts("a"), pins());
    let beginning = client.save("a", "the beginning");
    client.call::<Rewind>(&rewind(None, true)).expect("its undo");
    assert_eq!(
        (client.agent_status("a").context.expect("a context").messages, working_set(&mut client)),
        (before.len() as u64, set)
    );
    let saved = client.save("a", "all of it");
    check(&exported(&saved));
    let (common, rest) = behind(&mut client, &saved, &beginning);
    assert_eq!(common, 40);
    check(&[&before[..40], &rest].concat());
    let out = long.home.path.join("out.jsonl");
    chorusctl(&long.home, ["session", "export", "latest", "--as", "jsonl", "--output", out.to_str().expect("UTF-8")])
        .expect_success();
    let lines = std::fs::read_to_string(out).expect("the export").lines().count();
    assert!(lines >= before.len(), "{lines} lines");
}

#[test]
fn with_a_model_that_writes_down_what_leaves() {
    let long = Long::new(Some("anthropic/claude-test"));
    long.write_down();
    let receipts = gone_through(&long);
    for (round, receipt) in receipts.iter().enumerate() {
        assert_eq!((receipt.source, receipt.fallback.as_ref()), (Some(ItemSource::Model), None), "round {round}");
        assert_eq!(receipt.pins, pins(), "round {round}");
        assert!(receipt.tokens_after <= LIMIT && receipt.tokens_before > LIMIT, "round {round}: {receipt:?}");
    }
    let mut client = long.client();
    let (set, record) = (working_set(&mut client), client.messages("a"));
    assert!(set.facts.len() > FACTS / 2, "{} facts", set.facts.len());
    let by_id: HashMap<_, _> = record.iter().map(|message| (Some(message.id.clone()), message)).collect();
    for fact in &set.facts {
        let from = by_id[&fact.message_id];
        assert!(from.content.contains(&*fact.text), "{fact:?} is of {}", from.content);
    }
    // Each list has the newest of what was found.
    let ends = [
        (&set.decisions, "We decided on plan 4950"),
        (&set.open_tasks, "The test of step 4950 is still to do."),
        (&set.files_touched, "src/part_"),
        (&set.topics, "talk of "),
    ];
    for (list, newest) in ends {
        assert!(list.len() > 5 && list.last().is_some_and(|item| item.text.contains(newest)), "{newest}: {list:?}");
    }
    let done: Vec<_> = receipts.iter().flat_map(|receipt| &receipt.done).collect();
    assert!(done.len() > 30 && done.iter().all(|task| task.ends_with("00 is still to do.")), "{done:?}");
    // What was contradicted is listed with both sides, and neither was taken out for it.
    assert!(set.conflicts.len() > 20, "{} contradictions", set.conflicts.len());
    for conflict in &set.conflicts {
        let sides = conflict.text.strip_prefix("earlier: ").and_then(|sides| sides.split_once("; later: "));
        let (earlier, later) = sides.expect("two sides");
        assert!(earlier[..8] == later[..8] && earlier != later, "{conflict:?}");
    }
    let offered: BTreeSet<_> = receipts.iter().flat_map(|receipt| &receipt.offered).collect();
    assert!(offered.len() >= FACTS && !offered.iter().any(|fact| fact.contains("nobody")), "{}", offered.len());
    // Results of tools were in what was asked about.
    let forms = long.server.requests().into_iter().filter(|request| !request.body["tool_choice"].is_null());
    assert!(
        forms.map(|request| asked(&request.body)).any(|text| text.contains("result of view]\n> Fact 003 is 1021."))
    );
    check_originals(&long);
}

#[test]
fn with_rules_alone() {
    let long = Long::new(Some("anthropic/claude-test"));
    let receipts = gone_through(&long);
    for (round, receipt) in receipts.iter().enumerate() {
        assert_eq!(receipt.source, Some(ItemSource::Rule), "round {round}");
        assert!(receipt.fallback.is_some() && receipt.pins == pins() && receipt.tokens_after <= LIMIT, "{receipt:?}");
    }
    let set = working_set(&mut long.client());
    assert!(set.summary.is_some(), "{set:?}");
    println!("30 compactions in place by rules: {}", assert_statements_stand(&mut long.client()));
    // The last one is taken back, and no other.
    let params = CompactParams { conversation: None, agent: Some("a".into()), undo: true };
    let undone = long.client().call::<Compact>(&params).expect("an undo").receipt;
    assert_eq!(Some(&undone), receipts.last());
    assert_ne!(working_set(&mut long.client()), set);
    check_originals(&long);
}
