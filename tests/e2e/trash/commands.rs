//! `trash list|restore|empty`.

use std::fs;

use chorus_proto::methods::agent::{Destroy, DestroyParams};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::methods::trash::{Empty, EmptyParams, List, ListParams, Restore, RestoreParams, TrashKind};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

fn destroy(client: &mut Client, name: &str) -> uuid::Uuid {
    let params = DestroyParams { name: name.into(), keep_files: false, purge: false };
    client.call::<Destroy>(&params).expect("destroyed").agent.id
}

fn restore(
    client: &mut Client,
    id: &str,
) -> Result<chorus_proto::methods::trash::RestoreResult, chorus_proto::CallError> {
    client.call::<Restore>(&RestoreParams { id: id.into() })
}

#[test]
fn an_agent_comes_back_with_its_id_its_sessions_and_its_work() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "unsaved");
    fs::write(home.agent_dir("a").join("workspace/work.txt"), "work").expect("a file");
    let id = destroy(&mut client, "a");
    let said = chorusctl(&home, ["trash", "restore", "a"]).expect_success();
    assert_eq!(said, "restored agent a\n");
    daemon.kill9();
    daemon = Daemon::start(&home);
    client = daemon.client();
    let sessions = client.history("a");
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0].available && sessions[0].header.agent_id == id, "{sessions:?}");
    client.restore("a", "latest");
    assert_eq!(client.message_texts("a"), ["unsaved"]);
    assert_eq!(fs::read_to_string(home.agent_dir("a").join("workspace/work.txt")).expect("its work"), "work");
    assert_eq!(client.call::<List>(&ListParams {}).expect("a list").entries, []);
}

#[test]
fn a_name_that_is_taken_is_left_to_whoever_has_it() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "the first");
    client.save("a", "kept");
    client
        .call::<Delete>(&DeleteParams {
            conversation: None,
            agent: Some("a".into()),
            session: "latest".into(),
            own: false,
        })
        .expect("deleted");
    client.save("a", "kept");
    let entries = client.call::<List>(&ListParams {}).expect("a list").entries;
    assert_eq!(entries[0].kind, Some(TrashKind::Session));
    destroy(&mut client, "a");
    assert_eq!(
        expect_error_kind(restore(&mut client, &entries[0].id)),
        ErrorKind::AgentNotFound,
        "its agent is in the trash"
    );
    client.init("a");
    client.append("a", "the second");
    let said = chorusctl(&home, ["trash", "restore", "a"]);
    assert!(said.expect_failure_with_hint(7).contains("rename"), "{}", said.stderr);
    assert_eq!(client.message_texts("a"), ["the second"]);
    assert_eq!(client.call::<List>(&ListParams {}).expect("a list").entries.len(), 2, "both are still there");
    assert_eq!(expect_error_kind(restore(&mut client, "nothing")), ErrorKind::NotFound);
}

#[test]
fn a_session_whose_name_was_taken_gets_a_free_one() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "the first");
    let first = client.save("a", "kept").header;
    chorusctl(&home, ["rm", "latest"]).expect_success();
    client.append("a", "the second");
    let second = client.save("a", "kept").header;
    assert_eq!(second.session_id, first.session_id);
    let said = chorusctl(&home, ["trash", "restore", &first.session_id]).expect_success();
    let name = format!("{}-2", first.session_id);
    let expected = format!(
        "restored as {name} ({}, 1 message), because {} is taken
",
        &first.id.to_string()[..8],
        first.session_id
    );
    assert_eq!(said, expected);
    let (session, messages) = client.get_session("a", &name);
    assert_eq!((session.header.id, messages.len()), (first.id, 1));
    assert_eq!(client.get_session("a", &second.session_id).0.header.id, second.id);
    daemon.kill9();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    assert_eq!(client.get_session("a", &name).0.header.id, first.id);
    assert_eq!(client.call::<List>(&ListParams {}).expect("a list").entries, []);
}

/// An export of it was imported since.
#[test]
fn a_session_that_exists_again_is_not_restored_a_second_time() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let session = client.save("a", "kept").header;
    let file = home.temp_dir().join("kept.json");
    let path = file.to_str().expect("a path");
    chorusctl(&home, ["export", "latest", "--output", path]).expect_success();
    chorusctl(&home, ["rm", "latest"]).expect_success();
    chorusctl(&home, ["--agent", "a", "import", path]).expect_success();
    let said = chorusctl(&home, ["trash", "restore", &session.session_id]);
    let hint = format!("chorusctl --agent a show {}", session.session_id);
    assert!(said.expect_failure_with_hint(7).contains(&hint), "{said:?}");
    chorusctl(&home, ["--agent", "a", "show", &session.session_id]).expect_success();
    assert_eq!((client.history("a").len(), client.call::<List>(&ListParams {}).expect("a list").entries.len()), (1, 1));
}

#[test]
fn emptying_deletes_for_good_and_asks_first() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for name in ["a", "b"] {
        client.init(name);
        client.append(name, "hello");
        client.save(name, "one");
    }
    client
        .call::<Delete>(&DeleteParams {
            conversation: None,
            agent: Some("a".into()),
            session: "latest".into(),
            own: false,
        })
        .expect("deleted");
    destroy(&mut client, "b");
    // Something that nobody knows: it can only go.
    fs::create_dir(home.path.join("trash/odd")).expect("a directory");
    chorusctl(&home, ["trash", "empty"]).expect_failure_with_hint(6);
    let young = EmptyParams { older_than: Some("1h".into()) };
    assert_eq!(client.call::<Empty>(&young).expect("emptied").entries, [], "nothing is that old");
    assert_eq!(
        expect_error_kind(client.call::<Empty>(&EmptyParams { older_than: Some("old".into()) })),
        ErrorKind::InvalidParams
    );
    assert_eq!(expect_error_kind(restore(&mut client, "odd")), ErrorKind::Unsupported);
    let said = chorusctl(&home, ["trash", "empty", "--yes"]).expect_success();
    assert_eq!(said, "permanently deleted 3 items\n");
    assert_eq!(chorusctl(&home, ["trash", "empty", "--yes"]).expect_success(), "the trash is empty\n");
    let old = chorusctl(&home, ["trash", "empty", "--yes", "--older-than", "30d"]).expect_success();
    assert_eq!(old, "nothing was moved to the trash more than 30d ago\n");
    assert_eq!(fs::read_dir(home.path.join("trash")).expect("the trash").count(), 0);
    let lines = chorusctl(&home, ["trash", "list", "--json"]).expect_json();
    assert_eq!(lines["entries"], serde_json::json!([]));
}

#[test]
fn a_session_in_the_trash_is_named_by_errors_and_restored_by_its_id() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("other");
    client.append("a", "hello");
    let header = client.save("a", "The talk").header;
    let id = header.id.to_string();
    chorusctl(&home, ["--agent", "a", "session", "delete", &header.session_id]).expect_success();
    for args in [&["show", &*id][..], &["--agent", "other", "show", &header.session_id]] {
        let shown = chorusctl(&home, args);
        let stderr = shown.expect_failure_with_hint(3);
        let expected = format!("the session {} of agent a is in the trash", header.session_id);
        assert!(stderr.contains(&expected) && stderr.contains("chorusctl trash restore "), "{stderr}");
    }
    let restored = chorusctl(&home, ["trash", "restore", &id[..13]]).expect_success();
    assert!(restored.contains(&header.session_id), "{restored}");
    assert!(chorusctl(&home, ["--agent", "a", "show", &id]).expect_success().contains("hello"));
}
