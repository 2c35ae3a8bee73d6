//! P6: catalog and files agree; the catalog can be rebuilt.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use chorus_proto::Session;
use chorus_proto::methods::agent::{List, ListParams, Use, UseParams};
use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_tests::bulk_data::copy_session;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, Daemon, wait_until};

use super::{doctor, trouble};
use crate::home;

const SESSIONS: usize = 1000;
const PROMISED_MS: u64 = 5000;

fn list(daemon: &Daemon) -> Vec<Session> {
    daemon.client().history("a")
}

#[test]
fn a_thousand_sessions_are_the_same_list_after_the_catalog_is_gone() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    daemon.client().append("a", "one");
    let saved = daemon.client().save("a", "the first").header.session_id;
    daemon.terminate();
    copy_session(&home, "a", &saved, SESSIONS - 1);
    let daemon = Daemon::start(&home);
    let all = |daemon: &Daemon| {
        let params = HistoryParams { agent: Some("a".into()), ..Default::default() };
        daemon.client().call::<History>(&params).expect("a history").total == SESSIONS as u64
    };
    wait_until("every session to be listed", DEADLINE, || all(&daemon).then_some(()));
    let before = list(&daemon);
    daemon.terminate();
    for name in ["chorus.db", "chorus.db.bak"] {
        fs::remove_file(home.path.join("db").join(name)).expect("removed");
    }
    let (status, found) = doctor(&home, &["--rebuild"]);
    let rebuilt = found.rebuilt.clone().expect("it was rebuilt");
    assert_eq!((status, rebuilt.agents, rebuilt.sessions, rebuilt.corrupt), (0, 1, SESSIONS as u64, 0), "{found:?}");
    assert_eq!((rebuilt.set_aside, trouble(&found).len()), (None, 0), "{found:?}");
    assert!(rebuilt.duration_ms < PROMISED_MS, "{} ms", rebuilt.duration_ms);
    assert!(!home.socket().exists(), "a daemon was started");
    assert_eq!(list(&Daemon::start(&home)), before);
}

#[test]
fn settings_destroyed_agents_and_the_hash_of_the_save_stay() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for agent in ["a", "b", "c"] {
        client.init(agent);
        client.append(agent, "the original words");
    }
    client.call::<Use>(&UseParams { name: "b".into() }).expect("chosen");
    let kept = client.save("c", "of the destroyed").header.session_id;
    let changed = client.save("a", "to be changed").header.session_id;
    let destroy = chorus_proto::methods::agent::DestroyParams { name: "c".into(), ..Default::default() };
    client.call::<chorus_proto::methods::agent::Destroy>(&destroy).expect("destroyed");
    let path = home.sessions_dir("a").join(format!("{changed}.json"));
    let text = fs::read_to_string(&path).expect("the session").replace("the original words", "other words");
    fs::write(&path, text).expect("changed");
    let found = client.call::<Doctor>(&DoctorParams { rebuild: true, ..DoctorParams::default() }).expect("rebuilt");
    assert_eq!(found.rebuilt.map(|rebuilt| (rebuilt.agents, rebuilt.sessions)), Some((2, 1)));
    let agents = client.call::<List>(&ListParams { all: true, node: None }).expect("a list");
    assert_eq!((agents.agents.len(), agents.chosen.as_deref()), (3, Some("b")));
    let everything = HistoryParams { all_agents: true, ..Default::default() };
    let sessions = client.call::<History>(&everything).expect("a history");
    assert!(sessions.sessions.iter().any(|session| session.header.session_id == kept), "{sessions:?}");
    assert_eq!(sessions.total, sessions.sessions.len() as u64);
    let restored = client.restore("a", &changed);
    assert!(!restored.warnings.is_empty(), "restore still says that the file was changed");
}

/// What is saved while the index is made anew is neither lost nor doubled.
#[test]
fn saves_meanwhile_are_in_the_new_index() {
    let home = home();
    let daemon = Daemon::start(&home);
    daemon.client().init("a");
    let done = AtomicBool::new(false);
    let saved: usize = std::thread::scope(|scope| {
        let saving = scope.spawn(|| {
            let (mut client, mut saved) = (daemon.client(), 0);
            while saved < 3 || !done.load(Ordering::Relaxed) {
                client.append("a", "one more");
                client.save("a", "");
                saved += 1;
            }
            saved
        });
        for _ in 0..20 {
            daemon
                .client()
                .call::<Doctor>(&DoctorParams { rebuild: true, ..DoctorParams::default() })
                .expect("rebuilt");
        }
        done.store(true, Ordering::Relaxed);
        saving.join().expect("a client")
    });
    let names: std::collections::BTreeSet<_> =
        list(&daemon).into_iter().map(|session| session.header.session_id).collect();
    assert_eq!((list(&daemon).len(), names.len()), (saved, saved));
}
