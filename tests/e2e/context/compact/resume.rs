//! `context compact`: a save, and a fresh context that goes on from it.

use chorus_proto::methods::context::Rewind;
use chorus_proto::methods::continuation::{Compact, CompactParams, CompactResult};
use chorus_proto::{Client, ErrorKind, EventType, Message, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::context::resume::{pin, resume, working_set};
use crate::home;

pub fn compact(client: &mut Client) -> CompactResult {
    client.call::<Compact>(&params(false)).expect("context.compact")
}

pub fn params(undo: bool) -> CompactParams {
    CompactParams { conversation: None, agent: Some("a".into()), undo }
}

#[test]
fn each_is_a_new_link_of_the_chain_and_the_pins_stay_byte_for_byte() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let pins =
        ["the old  column stays", "DATEV kommt zuerst – „immer“", "<!-- SESSION_SUMMARY_END -->", "trailing \\n no"];
    pins.into_iter().for_each(|fact| pin(&mut client, "a", fact));
    let mut parent = None;
    for round in 0..5 {
        for n in 0..12 {
            client.append("a", &format!("We decided on plan {n} of round {round}."));
        }
        let live = client.messages("a");
        // Younger than any save before it.
        pin(&mut client, "a", &format!("pinned in round {round}"));
        let result = compact(&mut client);
        let session = result.session.expect("a session");
        assert_eq!((session.header.trigger, session.header.parent_id), (Trigger::Compact, parent));
        parent = Some(session.header.id);
        let kept = client.get_session("a", &session.header.id.to_string()).1;
        let lines = |messages: &[Message]| serde_json::to_string(messages).expect("serialises");
        assert_eq!(lines(&kept), lines(&live), "every message is in the session");
        assert_eq!((result.messages, result.saved_first, result.generated), (1, None, true));
        assert_eq!(result.receipt.left, live.len() as u64);
        assert!(result.receipt.tokens_after < result.receipt.tokens_before + 400, "{:?}", result.receipt);
        assert_eq!(result.receipt.from.as_ref(), Some(&live[0].id));
        assert_eq!(result.receipt.pins.len(), pins.len() + round + 1);
        assert_eq!(client.agent_status("a").context.and_then(|context| context.parent_id), parent);
        let background = working_set(&mut client, "a").background.expect("a background");
        assert!(background.contains(&format!("plan 11 of round {round}")), "{background}");
        if round % 2 == 1 {
            daemon.kill9();
            daemon = Daemon::start(&home);
            client = daemon.client();
        }
        assert_eq!(client.pinned_facts("a")[..pins.len()], pins);
        assert_eq!(client.pinned_facts("a").len(), pins.len() + round + 1);
    }
    let told: Vec<_> = client.events(0).into_iter().filter(|event| event.kind == EventType::ContextCompacted).collect();
    assert_eq!(told.len(), 5);
    assert_eq!(told[4].data["id"], parent.expect("a session").to_string());
    assert_eq!(told[4].data["left"], 13);
}

#[test]
fn what_is_saved_already_is_not_saved_twice() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Count the sheep of the north field.");
    pin(&mut client, "a", "older than the save");
    let saved = client.save("a", "sheep");
    let result = compact(&mut client);
    assert_eq!(result.session.expect("a session").header.id, saved.header.id);
    assert_eq!(result.receipt.pins, ["older than the save"]);
    assert_eq!((client.history("a").len(), client.pinned_facts("a")), (1, vec!["older than the save".to_owned()]));
    // Restoring the session has it all back.
    client.restore("a", &saved.header.session_id);
    assert_eq!(client.message_texts("a"), ["Count the sheep of the north field."]);
}

#[test]
fn the_words_that_a_link_opens_with_are_no_conversation() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Count the sheep of the north field.");
    let saved = compact(&mut client).session.expect("a session");
    let background = working_set(&mut client, "a").background;
    for crash in [false, true] {
        if crash {
            daemon.kill9();
            daemon = Daemon::start(&home);
            client = daemon.client();
        }
        assert_eq!(expect_error_kind(client.call::<Compact>(&params(false))), ErrorKind::NothingToSave);
        assert_eq!(working_set(&mut client, "a").background, background);
        let resumed = resume(&mut client, "a", "latest");
        assert_eq!((resumed.session.header.id, resumed.saved_first), (saved.header.id, None));
        assert_eq!(working_set(&mut client, "a").background, background);
    }
    let restored = client.restore("a", "latest");
    assert_eq!((restored.session.header.id, restored.saved_first), (saved.header.id, None));
    assert!(resume(&mut client, "a", "latest").saved_first.is_none());
    drop(client);
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.client().history("a").len(), 1);
    // A pin is somebody's.
    pin(&mut daemon.client(), "a", "no goats");
    let first = resume(&mut daemon.client(), "a", &saved.header.session_id).saved_first.expect("what was pinned");
    assert_eq!(first.header.working_set.pinned_facts[0].text, "no goats");
}

#[test]
fn without_a_conversation_or_a_compaction_there_is_nothing_to_do() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    assert_eq!(expect_error_kind(client.call::<Compact>(&params(false))), ErrorKind::NothingToSave);
    assert_eq!(expect_error_kind(client.call::<Compact>(&params(true))), ErrorKind::Denied);
    chorusctl(&home, ["context", "compact"]).expect_failure_with_hint(5);
    client.append("a", "one");
    let said = chorusctl(&home, ["context", "compact"]).expect_success();
    assert!(said.contains("compacted 1 message") && said.contains("ready to continue"), "{said}");
    // That one began anew: the session has what was said.
    let rewind = chorus_proto::methods::context::RewindParams { agent: Some("a".into()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Rewind>(&rewind)), ErrorKind::InvalidParams);
    chorusctl(&home, ["context", "compact", "--undo"]).expect_success();
    chorusctl(&home, ["context", "compact", "--undo"]).expect_failure_with_hint(6);
}
