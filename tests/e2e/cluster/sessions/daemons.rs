//! Two daemons with one database and one bucket. Only one runs at a time: the other takes its agents over.

use std::fs;
use std::path::PathBuf;

use chorus_proto::methods::{context, search, session, trash};
use chorus_proto::{ErrorKind, NewMessage, Role, Session};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::postgres::Database;
use chorus_tests::{DEADLINE, Daemon, Home, home, skip, wait_until};
use tempfile::TempDir;

use super::objects;

/// The homes of two nodes.
struct Homes {
    a: Home,
    b: Home,
    bucket: PathBuf,
    _shared: TempDir,
}

impl Homes {
    /// Makes them; `None` if PostgreSQL is not installed.
    fn create() -> Option<Self> {
        let Ok(url) = Database::create_blocking() else {
            skip("PostgreSQL is not installed here");
            return None;
        };
        let shared = tempfile::tempdir().expect("a shared directory");
        let bucket = shared.path().join("bucket");
        let node = |name| {
            let home = home!();
            home.write_config(&format!(
                "[store]\nkind = \"postgres\"\nurl_file = \"url\"\n[cluster]\nnode = \"{name}\"\n\
                 [store.sessions]\nkind = \"dir\"\npath = \"{}\"\n",
                bucket.display()
            ));
            chorus_base::private_fs::write_private(&home.path.join("url"), url.as_bytes()).expect("the URL");
            home
        };
        Some(Self { a: node("a"), b: node("b"), bucket, _shared: shared })
    }
}

fn tag(client: &mut chorus_proto::Client, name: &str) -> Session {
    let params = session::TagParams {
        agent: Some("x".into()),
        session: "latest".into(),
        tag: vec![name.into()],
        ..Default::default()
    };
    client.call::<session::Tag>(&params).expect("session.tag").session
}

#[test]
fn what_one_node_saved_is_listed_read_found_restored_and_changed_on_another() {
    let Some(homes) = Homes::create() else { return };
    let daemon = Daemon::start(&homes.a);
    let mut client = daemon.client();
    client.init("x");
    client.append("x", "the lighthouse is painted green");
    let saved = client.save("x", "lighthouse");
    assert!(fs::exists(&saved.file_path).expect("a directory to look into"));
    assert_eq!(objects(&homes.bucket).len(), 1);
    drop(client);
    assert!(daemon.terminate().success());

    let daemon = Daemon::start(&homes.b);
    let mut client = daemon.client();
    let listed = client.history("x");
    assert_eq!(
        listed.iter().map(|session| (session.header.id, session.available)).collect::<Vec<_>>(),
        [(saved.header.id, true)]
    );
    let (read, messages) = client.get_session("x", "latest");
    assert_eq!((read.header, &*messages[0].content), (saved.header.clone(), "the lighthouse is painted green"));
    let params = search::SearchParams { agent: Some("x".into()), query: "painted".into(), ..Default::default() };
    wait_until("the session in the index of the other node", DEADLINE, || {
        let found = client.call::<search::Search>(&params).expect("search");
        (!found.hits.is_empty()).then_some(())
    });
    client.restore("x", "latest");
    assert_eq!(client.message_texts("x"), ["the lighthouse is painted green"]);
    client.append("x", "and has two floors");
    client.save("x", "two floors");
    assert_eq!(objects(&homes.bucket).len(), 2);
    tag(&mut client, "seen-on-b");
    drop(client);
    assert!(daemon.terminate().success());

    let daemon = Daemon::start(&homes.a);
    let mut client = daemon.client();
    let (read, messages) = client.get_session("x", "latest");
    assert_eq!((&*read.header.tags, messages.len()), (&["seen-on-b".to_owned()][..], 2));
    let file = fs::read_to_string(&read.file_path).expect("a copy on a");
    assert!(file.contains("seen-on-b"), "{file}");
}

#[test]
fn a_save_fails_while_the_bucket_is_down_and_its_messages_stay_live() {
    let Some(homes) = Homes::create() else { return };
    let daemon = Daemon::start(&homes.a);
    let mut client = daemon.client();
    client.init("x");
    client.append("x", "one");
    client.save("x", "first");
    client.append("x", "two");
    let away = homes.bucket.with_extension("away");
    fs::rename(&homes.bucket, &away).expect("the bucket goes away");
    fs::write(&homes.bucket, "").expect("a file in its place");
    let params = context::SaveParams { agent: Some("x".into()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<context::Save>(&params)), ErrorKind::StorageFailed);
    assert_eq!(client.message_texts("x"), ["one", "two"]);
    // What is on this machine can be read, and the daemon takes more.
    assert_eq!(client.get_session("x", "latest").1.len(), 1);
    client.append("x", "three");
    assert_eq!(client.history("x").len(), 1);
    let files = fs::read_dir(homes.a.sessions_dir("x")).expect("its sessions").count();
    assert_eq!(files, 1, "nothing is left of the save that failed");
    fs::remove_file(&homes.bucket).expect("the file");
    fs::rename(&away, &homes.bucket).expect("the bucket is back");
    client.save("x", "second");
    assert_eq!((client.history("x").len(), objects(&homes.bucket).len()), (2, 2));
}

#[test]
fn a_large_session_is_paged_on_another_node_without_a_copy() {
    let Some(homes) = Homes::create() else { return };
    let homes = Homes { b: homes.b.without_index(), ..homes };
    let daemon = Daemon::start(&homes.a);
    let mut client = daemon.client();
    client.init("x");
    let text = "word ".repeat(200);
    let message = |n: usize| NewMessage::text(Role::User, format!("{n} {text}"));
    for first in (0..4_000).step_by(500) {
        client.append_all("x", (first..first + 500).map(message).collect());
    }
    let saved = client.save("x", "large");
    drop(client);
    assert!(daemon.terminate().success());

    let daemon = Daemon::start(&homes.b);
    let mut client = daemon.client();
    let params = session::GetParams {
        agent: Some("x".into()),
        session: saved.header.session_id.clone(),
        offset: Some(3_990),
        limit: Some(5),
        ..Default::default()
    };
    let page = client.call::<session::Get>(&params).expect("session.get");
    let starts: Vec<&str> = page.messages.iter().filter_map(|message| message.content.split(' ').next()).collect();
    assert_eq!((starts, page.next), (vec!["3990", "3991", "3992", "3993", "3994"], Some(3_995)));
    assert!(page.warnings.is_empty(), "{:?}", page.warnings);
    let file = homes.b.sessions_dir("x").join(format!("{}.json", saved.header.session_id));
    assert!(!file.exists(), "a page needs no copy");
    client.restore("x", "latest");
    assert_eq!(client.agent_status("x").context.map(|live| live.messages), Some(4_000));
    assert!(file.exists(), "a restore needs one");
}

#[test]
fn a_session_of_another_node_is_copied_before_it_is_deleted_and_comes_back_with_a_new_body() {
    let Some(homes) = Homes::create() else { return };
    let daemon = Daemon::start(&homes.a);
    let mut client = daemon.client();
    client.init("x");
    client.append("x", "one");
    client.save("x", "first");
    drop(client);
    assert!(daemon.terminate().success());

    let daemon = Daemon::start(&homes.b);
    let mut client = daemon.client();
    let params = session::DeleteParams { agent: Some("x".into()), session: "latest".into(), ..Default::default() };
    let deleted = client.call::<session::Delete>(&params).expect("session.delete");
    let id = deleted.trash.expect("an entry of the trash");
    wait_until("the body to go", DEADLINE, || objects(&homes.bucket).is_empty().then_some(()));
    client.call::<trash::Restore>(&trash::RestoreParams { id }).expect("trash.restore");
    assert_eq!(client.get_session("x", "latest").1[0].content, "one");
    assert_eq!(objects(&homes.bucket).len(), 1);
    // Where nothing of it is.
    drop(client);
    assert!(daemon.terminate().success());
    fs::remove_dir_all(homes.a.sessions_dir("x")).expect("the copies of a");
    let daemon = Daemon::start(&homes.a);
    let mut client = daemon.client();
    assert_eq!(client.get_session("x", "latest").1[0].content, "one");
    let params = session::PurgeParams { agent: Some("x".into()), session: "latest".into(), ..Default::default() };
    client.call::<session::Purge>(&params).expect("session.purge");
    wait_until("the body to go", DEADLINE, || objects(&homes.bucket).is_empty().then_some(()));
    assert_eq!(client.history("x").len(), 0);
}
