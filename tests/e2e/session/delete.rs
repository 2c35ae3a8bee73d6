//! `session delete`: into the trash and back, while live contexts go on.

use std::fs;
use std::path::Path;

use chorus_proto::ErrorKind;
use chorus_proto::methods::context::{Show, ShowParams};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

fn params(session: &str) -> DeleteParams {
    DeleteParams { conversation: None, agent: Some("a".into()), session: session.into(), own: false }
}

#[test]
fn a_deleted_session_comes_back_as_it_was() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let saved = client.save("a", "Kept for now");
    let bytes = fs::read(&saved.file_path).expect("the file");
    let said = chorusctl(&home, ["session", "delete", "latest"]).expect_success();
    assert!(said.contains("chorusctl trash restore "), "{said}");
    assert!(!Path::new(&saved.file_path).exists());
    assert_eq!(client.history("a"), []);
    assert_eq!(expect_error_kind(client.call::<Delete>(&params("latest"))), ErrorKind::SessionNotFound);
    let listed = chorusctl(&home, ["trash", "list"]).expect_success();
    assert_eq!(chorusctl(&home, ["trash"]).expect_success(), listed, "the list is the default");
    assert!(listed.contains(&saved.header.session_id), "{listed}");
    // The words of the hint are a command that works.
    let command = said.split("undo: chorusctl ").nth(1).expect("a hint").trim();
    chorusctl(&home, command.split(' ')).expect_success();
    assert_eq!(client.history("a"), std::slice::from_ref(&saved));
    assert_eq!(fs::read(&saved.file_path).expect("the file"), bytes);
    assert_eq!(client.restore("a", "latest").warnings, Vec::<String>::new(), "the hash is known again");
    assert_eq!(fs::read_dir(home.path.join("trash")).expect("the trash").count(), 0);
}

#[test]
fn a_context_that_was_restored_from_it_goes_on_even_after_a_crash() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.init("b");
    client.append("a", "one");
    client.append("a", "two");
    let saved = client.save("a", "base");
    client.restore("b", &saved.header.id.to_string());
    client.append("b", "three");
    // Once with the context in memory, once before anything of it was read back.
    for again in [false, true] {
        if again {
            let said = chorusctl(&home, ["trash", "restore", &saved.header.session_id]).expect_success();
            assert!(said.contains("restored"), "{said}");
            client.restore("a", &saved.header.id.to_string());
            daemon.kill9();
            daemon = Daemon::start(&home);
            client = daemon.client();
        }
        client.call::<Delete>(&params(&saved.header.id.to_string())).expect("deleted");
        daemon.kill9();
        daemon = Daemon::start(&home);
        client = daemon.client();
        assert_eq!(client.message_texts("b"), ["one", "two", "three"]);
        assert_eq!(client.message_texts("a"), ["one", "two"]);
        let live = client.call::<Show>(&ShowParams { agent: Some("a".into()), ..Default::default() });
        let live = live.expect("shown").context.expect("live");
        assert_eq!(live.unsaved, 2, "only that session held them");
    }
    assert!(daemon.terminate().success());
    let _daemon = Daemon::start(&home);
    let sessions = fs::read_dir(home.sessions_dir("a")).expect("its sessions").count();
    assert_eq!(
        sessions, 1,
        "the second restore found them in the session it restored; without that one, the stop saved them"
    );
}

#[test]
fn a_file_that_cannot_be_moved_stays_with_its_row() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let saved = client.save("a", "stays");
    // Something that is no directory is in the way.
    fs::remove_dir(home.path.join("trash")).expect("an empty trash");
    fs::write(home.path.join("trash"), "").expect("a file");
    assert_eq!(expect_error_kind(client.call::<Delete>(&params("latest"))), ErrorKind::StorageFailed);
    assert_eq!(client.history("a"), [saved]);
    client.restore("a", "latest");
}

#[test]
fn a_session_whose_file_is_gone_leaves_the_history() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let saved = client.save("a", "gone");
    fs::remove_file(&saved.file_path).expect("removed by hand");
    assert_eq!(client.call::<Delete>(&params("latest")).expect("deleted").trash, None);
    assert_eq!(client.history("a"), []);
}
