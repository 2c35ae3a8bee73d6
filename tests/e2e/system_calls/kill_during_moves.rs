//! `kill -9` at the system calls of verbs that move something between its place, the trash and the catalog.

use std::os::unix::process::ExitStatusExt as _;

use chorus_proto::methods::agent::{Config, ConfigParams, Destroy, DestroyParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams, Verdict};
use chorus_proto::methods::session::{Delete, DeleteParams, Purge, PurgeParams};
use chorus_proto::methods::{agent, memory, trash};
use chorus_proto::{CallError, Client, ErrorKind};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::is_running;
use chorus_tests::rng::Rng;
use chorus_tests::strace::{
    CallPoint, FILE_CHANGING_CALLS, Strace, call_points, is_permitted, threads, wait_until_quiet,
};
use chorus_tests::{DEADLINE, Daemon, Home, wait_until};

use super::home;
use super::operations::copy;
use super::state::assert_databases_whole;
use super::{all, sample};
use crate::agent::export_import::{export, import};

/// Calls struck a verb unless all are asked for.
const SAMPLE: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    DeleteSession,
    PurgeSession,
    RestoreSession,
    DestroyAgent,
    PurgeAgent,
    RestoreAgent,
    Rename,
    Import,
    RemoveMemory,
    RestoreMemory,
    EmptyTrash,
}

const KEPT: &str = "the kept one";
const DELETED: &str = "the deleted one";

/// A thing that is there, wherever it is: no verb but a purge and an emptying may make it less.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    /// A session of this agent with this text.
    Session(&'static str, &'static str),
    Memory(&'static str, &'static str),
}

const ALL: [Thing; 5] = [
    Thing::Session("a", KEPT),
    Thing::Session("a", DELETED),
    Thing::Memory("a", "gates are oak"),
    Thing::Memory("a", "fences are pine"),
    Thing::Session("gone", KEPT),
];

/// A stopped home: `a` has a session, another in the trash, something remembered and something forgotten; `gone` is in the trash.
fn prepared() -> (Home, Vec<u8>) {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    for name in ["a", "gone"] {
        client.init(name);
        client.append(name, KEPT);
        client.save(name, "kept");
    }
    client.append("a", DELETED);
    client.save("a", "deleted");
    remember(&mut client, "gates are oak");
    remember(&mut client, "fences are pine");
    let (archive, _) = export(&mut client, "a");
    let deleted = DeleteParams { conversation: None, agent: Some("a".into()), session: "latest".into(), own: false };
    client.call::<Delete>(&deleted).expect("deleted");
    forget(&mut client, "fences are pine").expect("forgotten");
    destroy(&mut client, "gone", false).expect("destroyed");
    daemon.kill9();
    Daemon::start(&home).kill9();
    (home, archive)
}

fn remember(client: &mut Client, text: &str) {
    let params = memory::AddParams { agent: Some("a".into()), text: text.into(), ..Default::default() };
    client.call::<memory::Add>(&params).expect("remembered");
}

fn remembered(client: &mut Client, agent: &str) -> Vec<memory::MemoryEntry> {
    let params = memory::ListParams { agent: Some(agent.into()), ..Default::default() };
    client.call::<memory::List>(&params).expect("memories").entries
}

fn forget(client: &mut Client, text: &str) -> Result<(), CallError> {
    let id = remembered(client, "a").into_iter().find(|entry| entry.text == text).expect("a memory").id;
    let params = memory::RemoveParams { agent: Some("a".into()), id: id.to_string() };
    client.call::<memory::Remove>(&params).map(drop)
}

fn destroy(client: &mut Client, name: &str, purge: bool) -> Result<(), CallError> {
    client.call::<Destroy>(&DestroyParams { name: name.into(), keep_files: false, purge }).map(drop)
}

fn trashed(client: &mut Client) -> Vec<trash::TrashEntry> {
    client.call::<trash::List>(&trash::ListParams {}).expect("the trash").entries
}

fn restore(client: &mut Client, entry: &trash::TrashEntry) -> Result<(), CallError> {
    client.call::<trash::Restore>(&trash::RestoreParams { id: entry.id.clone() }).map(drop)
}

impl Verb {
    /// Asks for it; whether it was acknowledged.
    fn ask(self, client: &mut Client, archive: &[u8]) -> bool {
        let of = |client: &mut Client, kind| {
            trashed(client).into_iter().find(|entry| entry.kind == Some(kind)).expect("an entry")
        };
        let (agent, session) = (Some("a".to_owned()), "latest".to_owned());
        let answer = match self {
            Self::DeleteSession => {
                client.call::<Delete>(&DeleteParams { conversation: None, agent, session, own: false }).map(drop)
            }
            Self::PurgeSession => {
                client.call::<Purge>(&PurgeParams { conversation: None, agent, session, own: false }).map(drop)
            }
            Self::RestoreSession => {
                let entry = of(client, trash::TrashKind::Session);
                restore(client, &entry)
            }
            Self::RestoreAgent => {
                let entry = of(client, trash::TrashKind::Agent);
                restore(client, &entry)
            }
            Self::RestoreMemory => {
                let entry = of(client, trash::TrashKind::Memory);
                restore(client, &entry)
            }
            Self::DestroyAgent => destroy(client, "a", false),
            Self::PurgeAgent => destroy(client, "a", true),
            Self::Rename => {
                let (key, value) = (Some("name".into()), Some("b".into()));
                client.call::<Config>(&ConfigParams { name: "a".into(), key, value }).map(drop)
            }
            Self::Import => import(client, archive, Some("b")).map(drop),
            Self::RemoveMemory => forget(client, "gates are oak"),
            Self::EmptyTrash => client.call::<trash::Empty>(&trash::EmptyParams { older_than: None }).map(drop),
        };
        match answer {
            Ok(()) => true,
            Err(CallError::Io(_) | CallError::Rpc(_)) => false,
            Err(other) => panic!("{self:?}: {other}"),
        }
    }

    /// Returns true if `thing` may be gone afterwards.
    fn may_lose(self, thing: &Thing) -> bool {
        match self {
            Self::PurgeSession => *thing == Thing::Session("a", KEPT),
            // Things that the agent forgot before lie in the trash, and have nobody to go back to.
            Self::PurgeAgent => !matches!(thing, Thing::Session("gone", _)),
            Self::EmptyTrash => !matches!(thing, Thing::Session("a", KEPT) | Thing::Memory(_, "gates are oak")),
            _ => false,
        }
    }
}

fn agents(client: &mut Client) -> Vec<String> {
    let list = client.call::<agent::List>(&agent::ListParams::default()).expect("agents");
    list.agents.into_iter().map(|agent| agent.name).collect()
}

/// Nothing is halfway: each session listed has its file, no entry is hidden, and the doctor has nothing to say.
fn assert_settled(home: &Home, client: &mut Client, at: &str) {
    for name in agents(client) {
        for session in client.history(&name) {
            assert!(session.available, "{at}: {session:?}");
            client.get_session(&name, &session.header.id.to_string());
        }
    }
    for dir in ["trash", "agents"] {
        let entries = std::fs::read_dir(home.path.join(dir)).expect("a directory").flatten();
        let hidden: Vec<_> =
            entries.map(|entry| entry.file_name()).filter(|name| name.as_encoded_bytes()[0] == b'.').collect();
        assert!(hidden.is_empty(), "{at}: {hidden:?}");
    }
    // Sessions that the index does not have yet are taken up in the background.
    wait_until(&format!("{at}: a doctor with nothing to say"), DEADLINE, || {
        let checks = client.call::<Doctor>(&DoctorParams::default()).expect("doctor").checks;
        let wrong = |name: &str| checks.iter().any(|check| check.name == name && check.verdict != Verdict::Ok);
        (!["agents", "sessions", "trash"].iter().any(|name| wrong(name))).then_some(())
    });
}

/// Brings everything back out of the trash. A second copy of what is there says so and stays.
fn restore_all(client: &mut Client, at: &str) {
    let mut entries = trashed(client);
    entries.sort_by_key(|entry| entry.kind != Some(trash::TrashKind::Agent));
    for entry in entries {
        match restore(client, &entry) {
            Ok(()) => {}
            Err(CallError::Rpc(e)) if e.kind() == ErrorKind::AgentNotFound => {}
            // An agent that was imported has it now.
            Err(CallError::Rpc(e)) if e.kind() == ErrorKind::AlreadyExists && agents(client).contains(&"b".into()) => {}
            Err(e) => panic!("{at}: {entry:?}: {e}"),
        }
    }
}

/// All that is there.
fn things(client: &mut Client) -> Vec<Thing> {
    let names = agents(client);
    let own = if names.iter().any(|name| name == "a") { "a" } else { "b" };
    let is_there = |client: &mut Client, thing: &Thing| match thing {
        Thing::Session(agent, text) => {
            let holders = if *agent == "a" { &["a", "b"][..] } else { &[*agent][..] };
            let holders: Vec<_> = holders.iter().filter(|holder| names.iter().any(|name| name == *holder)).collect();
            holders.into_iter().any(|holder| {
                client.history(holder).iter().any(|session| {
                    let (_, messages) = client.get_session(holder, &session.header.id.to_string());
                    messages.last().is_some_and(|message| message.content == *text)
                })
            })
        }
        Thing::Memory(_, text) => {
            names.iter().any(|name| name == own) && remembered(client, own).iter().any(|entry| entry.text == *text)
        }
    };
    ALL.into_iter().filter(|thing| is_there(client, thing)).collect()
}

/// Counts the points of `verb`: renames, removals and syncs of what lies below the home.
fn count(home: &Home, verb: Verb, archive: &[u8]) -> Vec<CallPoint> {
    let daemon = Daemon::start(home);
    let mut client = daemon.client();
    client.set_timeout(Some(DEADLINE)).expect("a time-out");
    wait_until_quiet(daemon.pid);
    let threads = threads(daemon.pid);
    let trace = format!("trace={FILE_CHANGING_CALLS}");
    let all: Vec<u32> = threads.values().flatten().copied().collect();
    let mut strace = Strace::attach(home, &all, &["-f", "-e", &trace]).expect("strace attaches");
    assert!(verb.ask(&mut client, archive), "{verb:?} was not done");
    wait_until_quiet(daemon.pid);
    daemon.kill9();
    strace.wait_for_exit();
    let home = std::fs::canonicalize(&home.path).expect("the home");
    let points = call_points(&strace.read_output(), &threads, &home);
    let steps = |point: &CallPoint| !point.call.contains("write");
    points.into_iter().filter(steps).collect()
}

/// Kills the daemon at `point` of `verb`, starts it again and looks; false: the point was not reached.
fn kill_at((template, archive): &(Home, Vec<u8>), verb: Verb, point: &CallPoint) -> bool {
    let home = copy(template);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    wait_until_quiet(daemon.pid);
    let threads = threads(daemon.pid);
    let Some(struck) = threads.get(&point.role) else { return false };
    let trace = format!("trace={}", point.call);
    let inject = format!("inject={}:signal=KILL:when={}", point.call, point.number);
    let strace = Strace::attach(&home, struck, &["-e", &trace, "-e", &inject]).expect("strace attaches");
    let acked = verb.ask(&mut client, archive);
    wait_until_quiet(daemon.pid);
    if is_running(daemon.pid) {
        return false;
    }
    let mut daemon = daemon;
    let ended = daemon.wait();
    drop(strace);
    if ended.signal() != Some(9) {
        return false;
    }
    let at = format!("{verb:?} killed at {point:?}");
    let again = Daemon::start(&home);
    let mut client = again.client();
    assert_settled(&home, &mut client, &at);
    let names = agents(&mut client);
    match verb {
        Verb::Rename => assert!(names == ["a"] || names == ["b"], "{at}: {names:?}"),
        Verb::Import => assert!(names == ["a"] || names == ["a", "b"], "{at}: {names:?}"),
        _ => {}
    }
    if verb == Verb::Import && names.len() == 2 {
        // Whole or not at all.
        assert_eq!((client.history("b").len(), remembered(&mut client, "b").len()), (2, 2), "{at}");
    }
    if acked {
        let done = match verb {
            Verb::Rename => names == ["b"],
            Verb::Import => names == ["a", "b"],
            Verb::DestroyAgent | Verb::PurgeAgent => names.is_empty(),
            Verb::RestoreAgent => names == ["a", "gone"],
            Verb::DeleteSession | Verb::PurgeSession => client.history("a").is_empty(),
            Verb::RestoreSession => client.history("a").len() == 2,
            Verb::RemoveMemory => remembered(&mut client, "a").is_empty(),
            Verb::RestoreMemory => remembered(&mut client, "a").len() == 2,
            Verb::EmptyTrash => trashed(&mut client).is_empty(),
        };
        assert!(done, "{at}: it was acknowledged and is not done");
    }
    restore_all(&mut client, &at);
    let there = things(&mut client);
    for thing in ALL {
        assert!(there.contains(&thing) || verb.may_lose(&thing), "{at}: {thing:?} is lost");
    }
    assert_settled(&home, &mut client, &at);
    assert!(!again.read_log().contains("panicked"), "{at}: {}", again.read_log());
    assert!(again.terminate().success(), "{at}: the next stop");
    assert_databases_whole(&home);
    true
}

fn strike(verbs: &[Verb]) {
    let prepared = prepared();
    if !is_permitted(&prepared.0) {
        return;
    }
    let mut rng = Rng::new(5);
    for verb in verbs {
        let points = count(&copy(&prepared.0), *verb, &prepared.1);
        assert!(!points.is_empty(), "{verb:?} moves nothing");
        let wanted = if all() { points.len() } else { SAMPLE.min(points.len()) };
        let chosen = sample(&points, wanted, &mut rng);
        // Threads share the work otherwise than when it was counted: another call takes the place of one that was not reached.
        let others = points.iter().filter(|point| !chosen.contains(point));
        let (mut killed, mut missed) = (0, Vec::new());
        for point in chosen.iter().chain(others) {
            if killed == wanted || missed.len() > wanted {
                break;
            }
            if (0..3).any(|_| kill_at(&prepared, *verb, point)) {
                killed += 1;
            } else {
                missed.push(point.clone());
            }
        }
        assert!(
            killed * 2 >= wanted,
            "{verb:?}: {killed} of {wanted} kills, too many calls were not reached: {missed:?}"
        );
    }
}

#[test]
fn a_kill_at_any_step_of_a_deletion_of_a_session_or_its_return_loses_nothing() {
    strike(&[Verb::DeleteSession, Verb::RestoreSession, Verb::PurgeSession]);
}

#[test]
fn a_kill_at_any_step_of_the_end_of_an_agent_or_its_return_loses_nothing() {
    strike(&[Verb::DestroyAgent, Verb::RestoreAgent, Verb::PurgeAgent]);
}

#[test]
fn a_kill_at_any_step_of_a_rename_or_an_import_loses_nothing() {
    strike(&[Verb::Rename, Verb::Import]);
}

#[test]
fn a_kill_at_any_step_of_forgetting_something_or_emptying_the_trash_loses_nothing_else() {
    strike(&[Verb::RemoveMemory, Verb::RestoreMemory, Verb::EmptyTrash]);
}
