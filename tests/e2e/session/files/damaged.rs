//! Session files that somebody or something damaged: listed with the reason, left as they are, never a hindrance.

use std::fs;
use std::path::Path;

use chorus_proto::methods::context::{Restore, RestoreParams};
use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{CallError, Client, ErrorKind, NewMessage, Role};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};
use serde_json::{Value, json};

use crate::home;

/// A daemon whose agent `a` has the session `good`, then `bad`, and an empty context.
fn two_sessions(home: &Home) -> (Daemon, Client, String) {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "a good message");
    client.save("a", "good");
    client.append_all("a", vec![NewMessage::text(Role::Assistant, "and a bad one")]);
    let path = client.save("a", "bad").file_path;
    (daemon, client, path)
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut session: Value = serde_json::from_str(&fs::read_to_string(path).expect("the file")).expect("JSON");
    change(&mut session);
    fs::write(path, serde_json::to_string_pretty(&session).expect("serialises")).expect("written");
}

fn restore(client: &mut Client) -> Result<Vec<String>, CallError> {
    let params =
        RestoreParams { agent: Some("a".into()), session: "latest".into(), discard: true, ..Default::default() };
    client.call::<Restore>(&params).map(|result| result.warnings)
}

/// A way to damage a file so that it is no session any more.
type Damage = (&'static str, fn(&Path));

const UNREADABLE: [Damage; 8] = [
    ("empty", |path| fs::write(path, "").expect("written")),
    ("half", |path| {
        let bytes = fs::read(path).expect("the file");
        fs::write(path, &bytes[..bytes.len() / 2]).expect("written");
    }),
    ("not JSON", |path| fs::write(path, "a good message\n").expect("written")),
    ("a list", |path| fs::write(path, "[]").expect("written")),
    ("messages that are no list", |path| edit(path, |session| session["messages"] = json!("none"))),
    ("an unknown role", |path| edit(path, |session| session["messages"][0]["role"] = json!("robot"))),
    ("a newer schema", |path| edit(path, |session| session["schema"] = json!(99))),
    ("not UTF-8", |path| {
        let mut bytes = fs::read(path).expect("the file");
        let end = bytes.len() - 10;
        bytes[end] = 0xff;
        fs::write(path, bytes).expect("written");
    }),
];

/// What a client sees of the damaged session, and of the good one beside it.
fn assert_contained(client: &mut Client, what: &str) {
    assert_eq!(expect_error_kind(restore(client)), ErrorKind::CorruptSession, "{what}: restore");
    let get = GetParams { agent: Some("a".into()), session: "latest".into(), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Get>(&get)), ErrorKind::CorruptSession, "{what}: session.get");
    assert_eq!(client.message_texts("a").len(), 2, "{what}: the live context is as it was");
    assert_eq!(client.get_session("a", "latest~1").1.len(), 1, "{what}: the good session beside it");
}

#[test]
fn an_unreadable_file_is_reported_and_left_as_it_is() {
    for (what, damage) in UNREADABLE {
        let home = home();
        let (daemon, mut client, path) = two_sessions(&home);
        damage(Path::new(&path));
        let bytes = fs::read(&path).expect("the file");
        assert_contained(&mut client, what);
        daemon.terminate();

        let daemon = Daemon::start(&home);
        let mut client = daemon.client();
        assert_contained(&mut client, what);
        // Stock is taken beside the work, soon after the start.
        let corrupt = wait_until("the file to be listed as corrupt", DEADLINE, || {
            let found: Vec<_> = client.history("a").into_iter().filter(|session| session.corrupt.is_some()).collect();
            (!found.is_empty()).then_some(found)
        });
        assert_eq!(corrupt.len(), 1, "{what}: {corrupt:?}");
        assert!(!corrupt[0].available && corrupt[0].file_path == path, "{what}: {corrupt:?}");
        assert_eq!(fs::read(&path).expect("the file"), bytes, "{what}: the file was touched");
    }
}

#[test]
fn a_file_that_is_gone_is_said_to_be_gone() {
    let home = home();
    let (daemon, mut client, path) = two_sessions(&home);
    fs::remove_file(&path).expect("removed");
    for _ in 0..2 {
        let kind = expect_error_kind(restore(&mut client));
        assert_eq!(kind, ErrorKind::SessionNotFound);
        let sessions = client.history("a");
        let gone = sessions.iter().find(|session| session.file_path == path).expect("it is still listed");
        assert!(!gone.available, "{gone:?}");
        assert!(sessions.iter().any(|session| session.available));
    }
    daemon.terminate();
    let daemon = Daemon::start(&home);
    let sessions = daemon.client().history("a");
    assert!(sessions.iter().any(|session| session.file_path == path && !session.available), "{sessions:?}");
}

#[test]
fn a_file_edited_by_hand_is_restored_with_a_warning() {
    let home = home();
    let (_daemon, mut client, path) = two_sessions(&home);
    assert!(restore(&mut client).expect("restored").is_empty(), "nothing to warn of yet");
    edit(Path::new(&path), |session| session["messages"][0]["content"] = json!("another message"));
    let warnings = restore(&mut client).expect("restored");
    assert!(!warnings.is_empty(), "the hash no longer fits");
    assert_eq!(client.message_texts("a"), ["another message", "and a bad one"]);
}

#[test]
fn a_description_or_tag_edited_by_hand_is_no_reason_to_warn() {
    let home = home();
    let (_daemon, mut client, path) = two_sessions(&home);
    edit(Path::new(&path), |session| {
        session["description"] = json!("a better one");
        session["tags"] = json!(["by-hand"]);
        session["a_field_of_mine"] = json!(1);
    });
    // Other white space than Chorus's own: the hash is of the messages, not of the bytes between them.
    let warnings = restore(&mut client).expect("restored");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(client.message_texts("a").len(), 2);
}

#[test]
fn a_wrong_message_count_is_noticed() {
    let home = home();
    let (_daemon, mut client, path) = two_sessions(&home);
    edit(Path::new(&path), |session| session["message_count"] = json!(7));
    match restore(&mut client) {
        Ok(warnings) => {
            assert!(!warnings.is_empty(), "neither refused nor warned of");
            assert_eq!(client.message_texts("a").len(), 2);
        }
        refused => assert_eq!(expect_error_kind(refused), ErrorKind::CorruptSession),
    }
}

#[test]
fn a_file_replaced_by_another_session_is_noticed() {
    let home = home();
    let (_daemon, mut client, path) = two_sessions(&home);
    let good = client.history("a").pop().expect("the first session").file_path;
    fs::copy(good, &path).expect("replaced");
    match restore(&mut client) {
        Ok(warnings) => assert!(!warnings.is_empty(), "neither refused nor warned of"),
        refused => assert_eq!(expect_error_kind(refused), ErrorKind::CorruptSession),
    }
}

#[test]
fn a_file_of_schema_1_is_read() {
    let home = home();
    let (daemon, _client, path) = two_sessions(&home);
    daemon.terminate();
    edit(Path::new(&path), |session| {
        let session = session.as_object_mut().expect("an object");
        let id = session.remove("id").expect("an id");
        let saved_at = session.remove("saved_at").expect("a time");
        session.insert("schema".into(), json!(1));
        session.insert("session_id".into(), id);
        session.insert("timestamp".into(), saved_at);
    });
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    restore(&mut client).expect("restored");
    assert_eq!(client.message_texts("a"), ["a good message", "and a bad one"]);
}
