//! Children, exports and notes follow to the copy without secrets; each command counts the same secrets.

use std::fs;

use chorus_proto::Client;
use chorus_proto::methods::context::{Clear, ClearParams, Restore, RestoreParams};
use chorus_proto::methods::doctor::{SecretPlace, SecretPlaceKind, Secrets, SecretsParams};
use chorus_proto::methods::session::{Scrub, ScrubParams, SecretCount};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};

use crate::home;

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const AWS: &str = "AKIAQYLPMN5HFIQR7XYA";

fn clear(client: &mut Client) {
    client.call::<Clear>(&ClearParams { conversation: None, agent: Some("a".into()), save: false }).expect("cleared");
}

fn scrub(client: &mut Client, session: &str, dry_run: bool) -> chorus_proto::methods::session::ScrubResult {
    let params = ScrubParams { agent: Some("a".into()), session: session.into(), dry_run, ..ScrubParams::default() };
    client.call::<Scrub>(&params).expect("session.scrub")
}

fn places(client: &mut Client) -> Vec<SecretPlace> {
    client.call::<Secrets>(&SecretsParams::default()).expect("doctor.secrets").places
}

/// Returns the sessions of which exports are recorded.
fn exported(home: &Home) -> Vec<Vec<u8>> {
    let database = rusqlite::Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    let mut statement = database.prepare("SELECT session_id FROM tool_exports").expect("a query");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("the ids")
}

#[test]
fn children_exports_and_notes_follow_to_the_copy_and_all_counts_agree() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", &format!("the token is {TOKEN}"));
    let note = format!("the key is {AWS}");
    chorusctl(&home, ["--agent", "a", "notes", "add", "--decision", &note]).expect_success();
    let original = client.save("a", &format!("With {TOKEN}")).header.id;
    clear(&mut client);
    let restore = RestoreParams { agent: Some("a".into()), session: original.to_string(), ..Default::default() };
    client.call::<Restore>(&restore).expect("restored");
    client.append("a", "a question after it");
    let child = client.save("a", "child").header;
    assert_eq!(child.parent_id, Some(original));
    clear(&mut client);
    chorusctl(&home, ["--agent", "a", "export", &original.to_string(), "--as", "claude-code"]).expect_success();
    assert_eq!(exported(&home), [original.as_bytes().to_vec()]);

    let sum = |secrets: &[SecretCount]| secrets.iter().map(|secret| secret.count).sum::<u64>();
    let place = places(&mut client).into_iter().find(|place| place.id == Some(original)).expect("the place");
    let dry = scrub(&mut client, &original.to_string(), true);
    let kinds: Vec<&str> = place.secrets.iter().map(|secret| &*secret.kind).collect();
    assert_eq!((place.kind, kinds), (SecretPlaceKind::Session, vec!["aws-access-key", "github-token"]));
    // In the title, in its summary, in the message and in the note.
    assert_eq!((sum(&dry.secrets), &dry.secrets), (4, &place.secrets));
    let done = scrub(&mut client, &original.to_string(), false);
    assert_eq!((done.secrets, done.messages), (dry.secrets, dry.messages));
    let copy = done.scrubbed.expect("a copy").header.id;
    let history = client.history("a");
    let after = history.iter().find(|session| session.header.id == child.id).expect("the child");
    assert_eq!(after.header.parent_id, Some(copy));
    assert_eq!(exported(&home), [copy.as_bytes().to_vec()]);
    let restore = RestoreParams { agent: Some("a".into()), session: copy.to_string(), ..Default::default() };
    client.call::<Restore>(&restore).expect("restored");
    let notes = chorusctl(&home, ["--agent", "a", "notes", "--json"]).expect_success();
    assert!(notes.contains("the key is [redacted:aws-access-key:") && !notes.contains(AWS), "{notes}");
}

#[test]
fn a_secret_across_two_blocks_is_found_and_counted_once() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let docs = home.agent_dir("a").join("docs");
    let block = 1 << 20;
    // One long line, whose blocks end wherever they do; the second token is cut by the end of the first one.
    for (name, before) in
        [("DOC_cut.md", block - 20), ("DOC_end.md", block - TOKEN.len() - 2), ("DOC_next.md", block + 5)]
    {
        let text = format!("{TOKEN} {} {TOKEN} {}\n", "x".repeat(before - TOKEN.len() - 2), "y".repeat(block / 2));
        fs::write(docs.join(name), text).expect("a note");
    }
    // A key whose lines are on both sides.
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----\n",
        "MIIEowIBAAKCAQEAwJ4lO7k2c1pTqZ8v\n".repeat(20)
    );
    let text = format!("{}{key}the end\n", "a line of text\n".repeat((block - 300) / 15));
    fs::write(docs.join("DOC_key.md"), text).expect("a note");
    let found = places(&mut client);
    let of = |name: &str| {
        let place =
            found.iter().find(|place| place.name.ends_with(name)).unwrap_or_else(|| panic!("{name}: {found:?}"));
        place.secrets.iter().map(|secret| (secret.kind.clone(), secret.count)).collect::<Vec<_>>()
    };
    for name in ["DOC_cut.md", "DOC_end.md", "DOC_next.md"] {
        assert_eq!(of(name), [("github-token".to_owned(), 2)], "{name}");
    }
    assert_eq!(of("DOC_key.md"), [("private-key".to_owned(), 1)]);
}

#[test]
fn many_secrets_of_a_place_are_limited_and_the_rest_is_counted() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let lines: String = (0..25).map(|number| format!("ghp_16C7e42F292c6912E7710c838347Ae17{number:04}\n")).collect();
    fs::write(home.agent_dir("a").join("docs/DOC_many.md"), lines).expect("a note");
    let found = places(&mut client);
    assert_eq!((found.len(), found[0].secrets.len(), found[0].more_secrets), (1, 20, Some(5)), "{found:?}");
    let said = chorusctl(&home, ["doctor", "--secrets"]);
    assert!(said.stdout.replace('\n', " ").contains("and 5 more"), "{said:?}");
}
