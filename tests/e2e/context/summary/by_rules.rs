//! The built-in summary of a save: from the conversation's own words, the same every time.

use chorus_proto::{NewMessage, Role, Session, SummarySource};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;

use crate::home;

const TALK: [(Role, &str); 6] = [
    (Role::User, "The nightly import drops rows. Can you find out why the country column is empty?"),
    (
        Role::Assistant,
        "I looked at the loader. It skips every row whose country is falsy, which includes the empty string.",
    ),
    (Role::User, "We must keep those rows. Finance needs the totals to match the ledger."),
    (
        Role::Assistant,
        "I changed the loader to keep rows without a country and to mark them as unknown. All tests pass now.",
    ),
    (Role::User, "Good. We still need a back-fill for March."),
    (Role::Assistant, "The back-fill for March is open. I will write it as a script that can run twice without harm."),
];

fn save(daemon: &Daemon, agent: &str) -> Session {
    let mut client = daemon.client();
    client.init(agent);
    client.append_all(agent, TALK.iter().map(|(role, text)| NewMessage::text(*role, *text)).collect());
    client.save(agent, "");
    // Where it is filled in after the answer, it is there before long.
    chorus_tests::wait_until("a summary", chorus_tests::DEADLINE, || {
        client.history(agent).pop().filter(|session| session.header.summary.is_some())
    })
}

#[test]
fn it_is_short_from_the_talk_itself_and_always_the_same() {
    let home = home();
    let daemon = Daemon::start(&home);
    let one = save(&daemon, "one");
    let two = save(&daemon, "two");
    assert_eq!(one.header.summary_source, SummarySource::Extractive);
    assert_eq!(one.header.summary, two.header.summary);
    let summary = one.header.summary.expect("a summary");
    let sentences = summary.split_inclusive(['.', '?', '!']).filter(|part| part.trim().len() > 1).count();
    assert!((2..=4).contains(&sentences), "{sentences} sentences: {summary}");
    let words = TALK.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ");
    for word in summary.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())) {
        assert!(words.contains(word), "{word:?} is not in the talk: {summary}");
    }
}

#[test]
fn it_does_not_rename_the_file_or_change_the_messages() {
    let home = home();
    let daemon = Daemon::start(&home);
    let session = save(&daemon, "one");
    let (later, messages) = daemon.client().get_session("one", &session.header.id.to_string());
    assert_eq!(later.header.session_id, session.header.session_id);
    assert_eq!(messages.len(), TALK.len());
    assert!(daemon.client().restore("one", "latest").warnings.is_empty(), "the hash covers the messages only");
}
