//! Where names and ids are taken.

use std::fs;

use chorus_proto::ErrorKind;
use chorus_proto::methods::agent::{Config, ConfigParams};
use chorus_proto::methods::memory::{Add, AddParams, List, ListParams, MemorySource};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};

use super::{export, import};
use crate::home;

#[test]
fn beside_its_original_an_agent_and_its_sessions_get_new_ids_and_stay_in_line() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "one");
    let first = client.save("a", "one");
    client.restore("a", "latest");
    client.append("a", "two");
    let second = client.save("a", "two");
    let add = AddParams { agent: Some("a".into()), text: "known".into(), ..Default::default() };
    client.call::<Add>(&add).expect("memory.add");
    let (bytes, made) = export(&mut client, "a");
    assert!(made.saved.is_none() && made.sessions == 2 && made.memories == 1, "{made:?}");
    assert_eq!(expect_error_kind(import(&mut client, &bytes, None)), ErrorKind::AlreadyExists);
    assert_eq!(expect_error_kind(import(&mut client, &bytes, Some("../x"))), ErrorKind::InvalidName);
    let came = import(&mut client, &bytes, Some("b")).expect("imported");
    assert!(came.new_id && came.new_session_ids == 2 && came.memories == 1, "{came:?}");
    let sessions = client.history("b");
    let (new_first, new_second) = (&sessions[1].header, &sessions[0].header);
    assert_eq!((&new_first.session_id, &new_second.session_id), (&first.header.session_id, &second.header.session_id));
    assert_ne!(new_first.id, first.header.id);
    assert_eq!(new_second.parent_id, Some(new_first.id), "its parent is the one beside it");
    let file = |agent: &str, session: &str| {
        fs::read_to_string(home.sessions_dir(agent).join(format!("{session}.json"))).expect("a session file")
    };
    let (old, new) = (file("a", &second.header.session_id), file("b", &second.header.session_id));
    let differ: Vec<_> =
        old.lines().zip(new.lines()).filter(|(old, new)| old != new).map(|(old, _)| old.trim()).collect();
    assert_eq!(differ.len(), 3, "{differ:?}");
    for field in ["\"id\"", "\"agent_id\"", "\"parent_id\""] {
        assert!(differ.iter().any(|line| line.starts_with(field)), "{differ:?}");
    }
    let known = client.call::<List>(&ListParams { agent: Some("b".into()), ..Default::default() }).expect("a list");
    assert_eq!(known.total, 1);
    client.restore("b", "latest");
    assert_eq!(client.message_texts("b"), ["one", "two"]);
    // The original is as it was.
    assert_eq!(
        client.history("a").iter().map(|session| session.header.id).collect::<Vec<_>>(),
        [second.header.id, first.header.id]
    );
}

#[test]
fn what_an_archive_says_for_others_is_left_out_where_they_are() {
    let (one, two) = (home(), home());
    let (here, there) = (Daemon::start(&one), Daemon::start(&two));
    let mut client = here.client();
    client.init("a");
    works_on(&mut client, "a", "farm");
    for (text, project) in [("mine", false), ("ours", true)] {
        let add = AddParams { agent: Some("a".into()), text: text.into(), project, ..Default::default() };
        client.call::<Add>(&add).expect("memory.add");
    }
    let bytes = export(&mut client, "a").0;
    let mut client = there.client();
    client.init("b");
    works_on(&mut client, "b", "farm");
    let came = import(&mut client, &bytes, Some("c")).expect("imported");
    assert!(came.memories == 1 && came.warnings.iter().any(|warning| warning.contains("farm")), "{came:?}");
    let list = |client: &mut chorus_proto::Client, agent: &str| {
        client.call::<List>(&ListParams { agent: Some(agent.into()), ..Default::default() }).expect("a list").entries
    };
    assert!(list(&mut client, "b").is_empty());
    let entry = list(&mut client, "c").remove(0);
    assert_eq!((entry.text.as_str(), entry.agent_name.as_str(), entry.source), ("mine", "c", MemorySource::Tool));
    let database = rusqlite::Connection::open(two.path.join("db/chorus.db")).expect("the catalog");
    let query = "SELECT count(*) FROM audit_log WHERE action = 'memory.import'";
    assert_eq!(database.query_row(query, [], |row| row.get::<_, u64>(0)).expect("a row"), 1);
    drop((here, there));
}

fn works_on(client: &mut chorus_proto::Client, agent: &str, project: &str) {
    let params = ConfigParams { name: agent.into(), key: Some("project".into()), value: Some(project.into()) };
    client.call::<Config>(&params).expect("agent.config");
}

#[test]
fn an_agent_that_may_much_comes_in_with_a_warning() {
    let (one, two) = (home(), home());
    let (here, there) = (Daemon::start(&one), Daemon::start(&two));
    let mut client = here.client();
    let params = chorus_proto::methods::agent::InitParams {
        name: "a".into(),
        permissions: Some("open".into()),
        ..Default::default()
    };
    client.call::<chorus_proto::methods::agent::Init>(&params).expect("agent.init");
    let bytes = export(&mut client, "a").0;
    let came = import(&mut there.client(), &bytes, None).expect("imported");
    assert!(!came.new_id && came.new_session_ids == 0, "{came:?}");
    assert!(came.warnings.iter().any(|warning| warning.contains("keeps its permissions (open)")), "{came:?}");
    drop((here, there));
}
