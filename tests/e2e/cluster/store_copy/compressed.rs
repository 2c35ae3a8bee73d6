//! A compressed session is copied like any other.

use std::fs;

use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, wait_until};
use rusqlite::Connection;

use super::CopiedHome;

#[test]
fn a_compressed_session_goes_to_the_bucket_and_comes_back_from_it() {
    let bucket = tempfile::tempdir().expect("a directory");
    let config = format!("[store.sessions]\nkind = \"dir\"\npath = \"{}\"\n", bucket.path().join("b").display());
    let Some(home) = CopiedHome::create(&config) else { return };
    home.with_daemon(|client| {
        client.init("docs");
        for n in 0..40 {
            client.append("docs", &format!("message {n}: {}", "some words ".repeat(100)));
        }
        client.save("docs", "long");
        let clear = ClearParams { agent: Some("docs".into()), ..Default::default() };
        client.call::<Clear>(&clear).expect("cleared");
    });
    let database = Connection::open(home.home.path.join("db/chorus.db")).expect("the catalog");
    database.execute("UPDATE sessions SET last_used_at = 0", []).expect("updated");
    database.close().expect("closed");
    let plain = home.config();
    home.home.write_config(&format!("{plain}\n[retention]\nsessions_compressed_after = \"1d\"\n"));
    let daemon = Daemon::start(&home.home);
    let mut client = daemon.client();
    let find = |client: &mut chorus_proto::Client| {
        let listed = client.history("docs");
        listed.into_iter().find(|session| session.file_path.ends_with(".json.gz"))
    };
    let session = wait_until("a session to be compressed", DEADLINE, || find(&mut client));
    let id = session.header.id.to_string();
    let texts = |client: &mut chorus_proto::Client| -> Vec<String> {
        client.get_session("docs", &id).1.into_iter().map(|message| message.content).collect()
    };
    let before = texts(&mut client);
    drop(client);
    assert!(daemon.terminate().success());
    home.to_postgres().expect_success();
    home.with_daemon(|client| {
        assert_eq!(texts(client), before, "beside the bucket");
        fs::remove_file(&session.file_path).expect("removed");
        assert_eq!(texts(client), before, "from the bucket");
    });
    home.to_sqlite().expect_success();
    home.with_daemon(|client| {
        assert_eq!(texts(client), before, "back in SQLite");
        assert!(client.restore("docs", &id).warnings.is_empty());
    });
}
