//! The ways to name a session.

use std::collections::BTreeMap;

use chorus_proto::methods::session::{Get, GetParams};
use chorus_proto::{CallError, Client, ErrorKind, Session};
use chorus_tests::Daemon;
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;

use crate::home;

fn get(client: &mut Client, selector: &str) -> Result<Session, CallError> {
    let params = GetParams { agent: Some("a".into()), session: selector.into(), limit: Some(0), ..Default::default() };
    client.call::<Get>(&params).map(|found| found.session)
}

/// Saves `count` sessions of agent `a`, newest first.
fn saved(client: &mut Client, count: usize) -> Vec<Session> {
    client.init("a");
    client.append("a", "one");
    let mut sessions: Vec<_> = (0..count).map(|n| client.save("a", &format!("save {n}"))).collect();
    sessions.reverse();
    sessions
}

#[test]
fn each_way_finds_its_session() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = saved(&mut client, 12);
    let newest = &sessions[0].header;
    let uuid = newest.id.to_string();
    let selectors = ["latest", "latest~0", &newest.session_id, &uuid, &sessions[0].short_id, &uuid[..20]];
    for selector in selectors.into_iter().chain([uuid.to_uppercase().as_str()]) {
        assert_eq!(get(&mut client, selector).expect(selector).header.id, newest.id, "{selector}");
    }
    assert_eq!(get(&mut client, "latest~11").expect("the oldest").header.id, sessions[11].header.id);
    for nothing in ["latest~12", "latest~", "latest~-1", "latest~x", "yesterday", "0000000000", "", "..", "/etc/passwd"]
    {
        let kind = expect_error_kind(get(&mut client, nothing));
        assert!([ErrorKind::SessionNotFound, ErrorKind::InvalidParams].contains(&kind), "{nothing:?}: {kind:?}");
    }
}

#[test]
fn a_prefix_must_be_unique_and_an_ambiguous_one_lists_its_candidates() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = saved(&mut client, 3);
    let date = &sessions[0].header.session_id[..10];
    match get(&mut client, date) {
        Err(CallError::Rpc(error)) => {
            assert_eq!(error.kind(), ErrorKind::Ambiguous);
            let said = format!("{} {:?}", error.message, error.data);
            let listed = sessions
                .iter()
                .filter(|session| said.contains(&session.header.session_id) || said.contains(&session.short_id));
            assert_eq!(listed.count(), 3, "{said}");
        }
        other => panic!("an ambiguous prefix gave {other:?}"),
    }
    chorusctl(&home, ["session", "show", date]).expect_failure_with_hint(7);
    assert!(get(&mut client, &sessions[1].header.session_id[..3]).is_err(), "three characters are too few");
    // `…_save-1` is also the beginning of nothing else here; an exact match wins over being a prefix.
    client.save("a", "save 1");
    let exact = get(&mut client, &sessions[1].header.session_id).expect("exact");
    assert_eq!(exact.header.id, sessions[1].header.id);
}

#[test]
fn history_numbers_mean_what_the_last_history_showed() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let sessions = saved(&mut client, 12);
    let show = |selector: &str| chorusctl(&home, ["--json", "session", "show", selector]);
    chorusctl(&home, ["context", "history"]).expect_success();
    let by_number: BTreeMap<usize, String> = (1..=10)
        .map(|n| (n, show(&n.to_string()).expect_json()["session"]["id"].as_str().expect("an id").to_owned()))
        .collect();
    for (n, id) in &by_number {
        assert_eq!(*id, sessions[n - 1].header.id.to_string(), "number {n}");
    }
    client.save("a", "one more");
    assert_eq!(show("1").expect_json()["session"]["id"], by_number[&1], "still what was shown");
    chorusctl(&home, ["context", "history", "--page", "2"]).expect_success();
    assert_eq!(
        show("11").expect_json()["session"]["id"],
        sessions[9].header.id.to_string(),
        "numbers go on over pages"
    );
    show("9999").expect_failure(3);
}
