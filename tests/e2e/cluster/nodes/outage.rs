//! Requests that wait while their node has no database.

use chorus_proto::methods::context::{Save, SaveParams};
use chorus_proto::{CallError, ErrorKind};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::{Daemon, Home};

use super::left_behind::cut_off;
use super::{Cluster, try_append};

fn rpc_error(failure: CallError) -> (ErrorKind, String) {
    let CallError::Rpc(error) = failure else { panic!("{failure:?}") };
    let hint = error.data.as_ref().and_then(|data| data.hint.clone()).unwrap_or_default();
    (error.kind(), format!("{}: {hint}", error.message))
}

#[test]
fn who_waits_for_the_database_is_told_after_ten_seconds_and_what_was_sent_is_stored_once() {
    let Some(cluster) = Cluster::create() else { return };
    let (_runtime, proxy, url) = cut_off(&cluster);
    let home: Home = cluster.node_at("a", &url, "");
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("x");
    assert_eq!(try_append(&mut client, "x", "one").expect("an append"), 1);
    proxy.fall_silent();
    // It is sent, and nobody knows what became of it. The other one waits for it.
    let save = std::thread::scope(|scope| {
        let mut other = daemon.client();
        let append = scope.spawn(move || try_append(&mut other, "x", "two").expect_err("an append without an answer"));
        let mut other = daemon.client();
        let save = scope.spawn(move || {
            other.call::<Save>(&SaveParams { agent: Some("x".into()), ..Default::default() }).expect_err("a save")
        });
        let (kind, text) = rpc_error(append.join().expect("the append"));
        assert_eq!(kind, ErrorKind::StorageUnavailable, "{text}");
        assert!(text.contains("lost its connection to PostgreSQL: it may have been saved"), "{text}");
        rpc_error(save.join().expect("the save"))
    });
    assert!(matches!(save.0, ErrorKind::StorageUnavailable | ErrorKind::Busy), "{save:?}");
    let status = chorusctl(&home, ["daemon", "status"]);
    status.expect_success();
    proxy.heal();
    // A message with a key is there once, whatever happened.
    let total = chorus_tests::wait_until("the database to be back", super::discord::TAKEOVER, || {
        try_append(&mut daemon.client(), "x", "two").ok()
    });
    assert_eq!(total, 2);
    assert_eq!(client.message_texts("x"), ["one", "two"]);
}
