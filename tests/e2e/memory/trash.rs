//! What was removed lies in the trash until that is emptied.

use chorus_proto::ErrorKind;
use chorus_proto::methods::memory::{Remove, RemoveParams};
use chorus_proto::methods::trash::{Empty, EmptyParams, List, ListParams, Restore, RestoreParams, TrashKind};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use super::Memory as _;
use crate::home;

#[test]
fn it_comes_back_as_it_was_unless_it_is_known_again() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    let id = client.remember("a", "The gate sticks.").entry.id;
    let removed =
        client.call::<Remove>(&RemoveParams { agent: Some("a".into()), id: id.to_string() }).expect("removed");
    assert_eq!((removed.entry.id, client.remembered("a").total), (id, 0));
    daemon.kill9();
    daemon = Daemon::start(&home);
    client = daemon.client();
    let entry = client.call::<List>(&ListParams {}).expect("a list").entries.remove(0);
    assert_eq!((entry.kind, entry.agent_name.as_deref()), (Some(TrashKind::Memory), Some("a")));
    assert_eq!((entry.name.as_str(), &entry.id), ("The gate sticks.", &removed.trash));
    client.remember("a", "The gate sticks.");
    let restore =
        |client: &mut chorus_proto::Client, id: &str| client.call::<Restore>(&RestoreParams { id: id.into() });
    assert_eq!(expect_error_kind(restore(&mut client, &id.to_string())), ErrorKind::AlreadyExists);
    let new = client.remembered("a").entries[0].id;
    client.call::<Remove>(&RemoveParams { agent: Some("a".into()), id: new.to_string() }).expect("removed");
    let said = chorusctl(&home, ["trash", "restore", &id.to_string()[..8]]).expect_success();
    assert!(said.starts_with("restored memory "), "{said}");
    assert_eq!(client.remembered("a").entries[0].id, id);
    assert!(chorusctl(&home, ["trash", "list"]).expect_success().contains("memory"));
    assert_eq!(client.call::<Empty>(&EmptyParams::default()).expect("emptied").entries.len(), 1);
    assert_eq!(expect_error_kind(restore(&mut client, &removed.trash)), ErrorKind::NotFound);
}
