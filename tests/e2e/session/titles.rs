//! A title that was given stays with the conversation until another one is given.

use chorus_proto::methods::import::ImportFormat;
use chorus_proto::{Client, Trigger};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::import::import_transcript;
use serde_json::json;

use crate::home;

/// Imports a conversation with this title.
fn import_titled(client: &mut Client, title: &str) {
    let file = json!({"schema": 2, "id": "9f1c27d4-8f5e-4d0a-a3c6-2b9be1d7e604", "session_id": "no valid name",
        "saved_at": "2025-03-04T05:06:07Z", "agent_name": "old", "description": title,
        "messages": [{"id": "m1", "role": "user", "content": "hello", "timestamp": "2025-03-04T05:00:00Z"}]});
    import_transcript(client, "a", ImportFormat::Chorus, &file.to_string(), 50).expect("imported");
}

/// The title and the slug of the newest session.
fn newest(client: &mut Client) -> (String, String) {
    let header = client.history("a").remove(0).header;
    let slug = header.session_id.split_once('_').map(|(_, slug)| slug.to_owned());
    (header.description.unwrap_or_default(), slug.expect("a slug"))
}

#[test]
fn saves_of_a_restored_conversation_have_its_title() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    import_titled(&mut client, "Rate limits");
    client.restore("a", "latest");
    client.append("a", "goes on");
    chorusctl(&home, ["save", "--no-wait"]).expect_success();
    assert_eq!(newest(&mut client), ("Rate limits".to_owned(), "rate-limits".to_owned()));
    // Automatic saves, and one more link of the chain.
    client.append("a", "and on");
    chorusctl(&home, ["context", "clear", "--save", "--yes"]).expect_success();
    assert_eq!(newest(&mut client), ("Rate limits".to_owned(), "rate-limits-2".to_owned()));
    client.restore("a", "latest");
    client.append("a", "further");
    chorusctl(&home, ["context", "compact"]).expect_success();
    assert_eq!(
        (newest(&mut client).0, client.history("a")[0].header.trigger),
        ("Rate limits".into(), Trigger::Compact)
    );
    client.append("a", "after the compaction");
    chorusctl(&home, ["save", "--no-wait"]).expect_success();
    assert_eq!(newest(&mut client).0, "Rate limits");
    // Until somebody gives another one.
    client.save("a", "Quotas");
    client.append("a", "the end");
    assert!(daemon.terminate().success());
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.history("a")[0].header.trigger, Trigger::Shutdown);
    assert_eq!(newest(&mut client).0, "Quotas");
}

/// No part of such a title can be in a name.
#[test]
fn a_title_without_latin_letters_stays_too() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    import_titled(&mut client, "速率限制");
    client.restore("a", "latest");
    client.append("a", "goes on");
    chorusctl(&home, ["save", "--no-wait"]).expect_success();
    assert_eq!(newest(&mut client).0, "速率限制");
}

/// Such a title describes the messages up to a save, and the next save describes more.
#[test]
fn a_title_that_chorus_made_is_made_again() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    chorusctl(&home, ["save", "--no-wait"]).expect_success();
    let (_, slug) = newest(&mut client);
    client.append("a", "Please fix the rate limits of the gateway.");
    chorusctl(&home, ["save", "--no-wait"]).expect_success();
    assert_eq!(newest(&mut client).1, format!("{slug}-2"), "named by the first message");
}
