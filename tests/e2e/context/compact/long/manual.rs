//! Five links of a chain, each resumed.

use chorus_proto::methods::continuation::{Compact, CompactParams, Resume, ResumeParams};
use chorus_proto::{ItemSource, Message, Role, Trigger};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::model_server::Response;

use super::conversation::{self, MESSAGES};
use super::{Long, assert_planted, assert_statements_stand, exported, pins, working_set};

const LINKS: usize = 5;

/// A fifth of the conversation, then a new link, which is resumed once more from what was saved.
fn gone_through(long: &Long, source: ItemSource) {
    let mut client = long.client();
    let (mut parents, mut last): (Vec<_>, Option<String>) = (Vec::new(), None);
    for link in 0..LINKS {
        let part = link * MESSAGES / LINKS..(link + 1) * MESSAGES / LINKS;
        client.append_all("a", conversation::messages(part));
        let done = client
            .call::<Compact>(&CompactParams { conversation: None, agent: Some("a".into()), undo: false })
            .expect("context.compact");
        assert_eq!((done.receipt.source, &done.receipt.pins), (Some(source), &pins()), "link {link}");
        assert!(done.receipt.tokens_after < 3500 && done.receipt.tokens_before > 40_000, "{:?}", done.receipt);
        let session = done.session.expect("a session").header;
        assert_eq!((session.trigger, session.parent_id), (Trigger::Compact, parents.last().copied()));
        let params = ResumeParams {
            as_conversation: None,
            conversation: None,
            agent: Some("a".into()),
            session: session.session_id.clone(),
        };
        let resumed = client.call::<Resume>(&params).expect("context.resume");
        assert!(resumed.warnings.is_empty() && resumed.saved_first.is_none(), "{resumed:?}");
        assert_eq!((client.pinned_facts("a"), client.messages("a").len()), (pins(), 1), "link {link}");
        // The parent in full, and a line about the one before it.
        let background = working_set(&mut client).background.expect("a background");
        assert!(background.starts_with(&format!("Derived from session {} ", session.session_id)), "{background}");
        assert!(background.matches("Derived from").count() == 1 && background.chars().count() <= 2400, "{background}");
        let before = format!("\nBefore that: session {} ", last.as_deref().unwrap_or_default());
        assert_eq!(background.contains(&before), link > 0, "{background}");
        last = Some(session.session_id.clone());
        parents.push(session.id);
    }
    // Every message is in the one link or the other, in order.
    let mut all: Vec<Message> = Vec::new();
    for id in &parents {
        let (session, _) = client.get_session("a", &id.to_string());
        all.extend(exported(&session));
    }
    let is_planted =
        |message: &&Message| !(message.role == Role::Assistant && message.content.ends_with("ready to continue."));
    assert_planted(&all.iter().filter(is_planted).collect::<Vec<_>>(), 0..MESSAGES);
    client.restore("a", &parents[2].to_string());
    assert_eq!(client.messages("a").len(), MESSAGES / LINKS + 1);
    assert_eq!(client.pinned_facts("a"), pins());
}

#[test]
fn thirty_links_without_a_model_keep_what_was_decided_and_is_to_do() {
    const LINKS: usize = 30;
    let long = Long::new(None);
    let mut client = long.client();
    for link in 0..LINKS {
        client.append_all("a", conversation::messages(link * MESSAGES / LINKS..(link + 1) * MESSAGES / LINKS));
        client
            .call::<Compact>(&CompactParams { conversation: None, agent: Some("a".into()), undo: false })
            .expect("context.compact");
    }
    println!("30 compactions by hand without a model: {}", assert_statements_stand(&mut client));
    assert_eq!(client.pinned_facts("a"), pins());
}

#[test]
fn without_any_model() {
    gone_through(&Long::new(None), ItemSource::Rule);
}

#[test]
fn with_a_model_that_writes_down_what_was_said() {
    let long = Long::new(Some("anthropic/claude-test"));
    long.write_down();
    long.server
        .anthropic()
        .set_fallback(Response::text(["The plan\n\nSteps were worked off. I am ready to continue."]));
    gone_through(&long, ItemSource::Model);
}
