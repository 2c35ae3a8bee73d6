//! `session tag` and `untag`: the header changes, the messages do not.

use std::fs;

use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::session::{Tag, TagParams};
use chorus_proto::{Client, ErrorKind};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

fn found(client: &mut Client, tag: &str) -> usize {
    let params = HistoryParams { agent: Some("a".into()), tag: Some(tag.into()), ..Default::default() };
    client.call::<History>(&params).expect("a history").sessions.len()
}

#[test]
fn tags_come_and_go_and_nothing_else_changes() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let saved = client.save("a", "first");
    client.append("a", "more");
    client.save("a", "second");
    // A field that a later version wrote stays.
    let before = fs::read_to_string(&saved.file_path).expect("the file");
    let before = before.replacen("  \"tags\": []", "  \"later\": {\"n\": 1.50},\n  \"tags\": []", 1);
    fs::write(&saved.file_path, &before).expect("rewritten");
    let said =
        chorusctl(&home, ["session", "tag", &saved.header.session_id, "import", "to do", "import"]).expect_success();
    assert!(said.contains("#import #to do"), "{said}");
    let after = fs::read_to_string(&saved.file_path).expect("the file");
    assert_eq!(after, before.replacen("\"tags\": []", "\"tags\": [\"import\",\"to do\"]", 1));
    assert_eq!((found(&mut client, "import"), found(&mut client, "to do")), (1, 1));
    assert_eq!(client.history("a").last().expect("still the older").header.id, saved.header.id);
    chorusctl(&home, ["session", "untag", &saved.header.session_id, "import", "never-there"]).expect_success();
    assert_eq!((found(&mut client, "import"), found(&mut client, "to do")), (0, 1));
    daemon.kill9();
    daemon = Daemon::start(&home);
    client = daemon.client();
    let (session, _) = client.get_session("a", &saved.header.session_id);
    assert_eq!(session.header.tags, ["to do"]);
    assert_eq!(client.restore("a", &saved.header.session_id).warnings, Vec::<String>::new(), "the hash is the same");
}

#[test]
fn tags_that_are_none_and_files_that_cannot_be_read_are_refused() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "hello");
    let saved = client.save("a", "first");
    let tag = |tag: &str| TagParams { session: "latest".into(), tag: vec![tag.into()], ..Default::default() };
    for wrong in ["", " ", "two\nlines", &"x".repeat(65)] {
        assert_eq!(expect_error_kind(client.call::<Tag>(&tag(wrong))), ErrorKind::InvalidParams, "{wrong:?}");
    }
    chorusctl(&home, ["session", "tag", "latest"]).expect_failure(2);
    fs::write(&saved.file_path, "{\"schema\":").expect("damaged");
    assert_eq!(expect_error_kind(client.call::<Tag>(&tag("x"))), ErrorKind::CorruptSession);
    assert_eq!(fs::read_to_string(&saved.file_path).expect("the file"), "{\"schema\":");
    assert_eq!(found(&mut client, "x"), 0);
}
