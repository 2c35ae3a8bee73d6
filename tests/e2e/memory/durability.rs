//! What is remembered stays: through crashes, beside others, and with its agent.

use std::thread;

use chorus_proto::methods::agent::{Config, ConfigParams, Destroy, DestroyParams};
use chorus_proto::methods::memory::MemorySource;
use chorus_proto::methods::trash::{Empty, EmptyParams, Restore, RestoreParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use serde_json::json;

use super::{Memory as _, shared};
use crate::home;
use crate::tools::self_edit::{catalog_rows, expect_tool, expect_tool_error, start_fixture};

#[test]
fn what_was_answered_is_there_after_a_kill() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.client().init("a");
    for number in 0..5 {
        daemon.client().remember("a", &format!("fact {number}"));
        daemon.kill9();
        daemon = Daemon::start(&home);
    }
    assert_eq!(daemon.client().known("a"), ["fact 4", "fact 3", "fact 2", "fact 1", "fact 0"]);
}

#[test]
fn of_many_that_say_the_same_at_once_one_is_added() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let adding = (0..8).map(|number| {
        let mut client = daemon.client();
        thread::spawn(move || {
            let own = client.remember("a", &format!("own {number}")).added;
            (own, client.remember("a", "the same").added)
        })
    });
    let added: Vec<_> = adding.collect::<Vec<_>>().into_iter().map(|thread| thread.join().expect("it ends")).collect();
    assert!(added.iter().all(|(own, _)| *own));
    assert_eq!(added.iter().filter(|(_, same)| *same).count(), 1);
    assert_eq!(daemon.client().remembered("a").total, 9);
}

#[test]
fn a_call_of_the_tool_is_known_by_its_message_and_the_session_that_holds_it() {
    let fixture = start_fixture("open");
    let said = expect_tool(&fixture, "remember", json!({"text": "Shearing is in May."}));
    assert!(said.starts_with("saved; you will see it"), "{said}");
    let again = expect_tool(&fixture, "remember", json!({"text": " Shearing is in May. "}));
    assert!(again.contains("already"), "{again}");
    let key = format!("ghp_{}", "9fQ2xLm7Rt4KpZ8vWc3BnY6sDh1JgT5aEuXo");
    expect_tool(&fixture, "remember", json!({"text": format!("the key is {key}")}));
    expect_tool_error(&fixture, "remember", json!({"text": "x", "path": "../b"}));
    let why = expect_tool_error(&fixture, "remember", json!({"text": "x", "project": true}));
    assert!(why.contains("no project"), "{why}");
    let mut client = fixture.client();
    let list = client.remembered("a").entries;
    assert_eq!(list.len(), 2, "{list:?}");
    assert!(!list[0].text.contains(&key), "{}", list[0].text);
    let entry = &list[1];
    assert_eq!((entry.source, entry.user.as_str(), &entry.session_id), (MemorySource::Tool, "owner", &None));
    let call = client.messages("a").into_iter().find(|message| !message.tool_calls.is_empty()).expect("the call");
    assert_eq!(entry.message_id.as_ref(), Some(&call.id));
    let session = client.save("a", "sheep").header.session_id;
    assert_eq!(client.remembered("a").entries[1].session_id, Some(session));
}

#[test]
fn it_is_asked_about_sharing_with_others_by_its_own_action() {
    let fixture = start_fixture("standard");
    fixture.client().works_on("a", "farm");
    expect_tool_error(&fixture, "remember", json!({"text": "All may know.", "project": true}));
    let rows = catalog_rows(&fixture, "SELECT id FROM audit_log WHERE action = 'tool:remember:project:All may know.'");
    assert!(!rows.is_empty());
    assert_eq!(fixture.client().remembered("a").total, 0);
}

#[test]
fn it_goes_with_its_agent_and_comes_back_with_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.works_on("a", "farm");
    client.remember("a", "mine");
    client.try_remember(shared("a", "ours")).expect("shared");
    let rename = ConfigParams { name: "a".into(), key: Some("name".into()), value: Some("b".into()) };
    client.call::<Config>(&rename).expect("renamed");
    assert_eq!(client.known("b"), ["ours", "mine"]);
    let destroy = |client: &mut chorus_proto::Client, keep_files, purge| {
        client.call::<Destroy>(&DestroyParams { name: "b".into(), keep_files, purge }).expect("destroyed");
    };
    destroy(&mut client, true, false);
    client.init("b");
    assert_eq!(client.known("b"), ["ours", "mine"], "revived");
    destroy(&mut client, false, false);
    client.call::<Restore>(&RestoreParams { id: "b".into() }).expect("restored");
    assert_eq!(client.known("b"), ["ours", "mine"]);
    destroy(&mut client, false, false);
    client.call::<Empty>(&EmptyParams::default()).expect("emptied");
    let rows = || {
        let database = rusqlite::Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
        database.query_row("SELECT group_concat(text) FROM memory", [], |row| row.get::<_, String>(0)).expect("a row")
    };
    assert_eq!(rows(), "ours", "what the project shares is not its agent's");
    client.init("b");
    client.remember("b", "gone soon");
    destroy(&mut client, false, true);
    assert_eq!(rows(), "ours");
}
