//! `session expire` and `[retention]`: what nobody uses goes to the trash, by a clock that the test moves.

use std::path::Path;
use std::time::Duration;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::methods::context::{Clear, ClearParams};
use chorus_proto::methods::continuation::{Resume, ResumeParams};
use chorus_proto::methods::events::{List as Events, ListParams as EventsParams};
use chorus_proto::methods::session::{Expire, ExpireParams, ExpireResult};
use chorus_proto::methods::trash::{Restore, RestoreParams};
use chorus_proto::{Client, ErrorKind, EventType, Session};
use chorus_tests::client_ext::{ClientExt as _, expect_error_kind};
use chorus_tests::ctl::chorusctl;
use chorus_tests::{DEADLINE, Daemon, InProcessDaemon, ManualClock, wait_until};
use jiff::Timestamp;

use crate::home;

const CONFIG: &str = "[retention]\nsessions_unused_for = \"30d\"\n";

fn hands() -> ManualClock {
    ManualClock::new(Timestamp::from_second(1_771_000_000).expect("a time"))
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

/// An agent whose context no timer ends.
fn init(client: &mut Client, name: &str) {
    let params = InitParams { name: name.into(), idle_timeout: Some("0".into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
}

fn clear(client: &mut Client, name: &str) {
    client.call::<Clear>(&ClearParams { agent: Some(name.into()), ..Default::default() }).expect("context.clear");
}

/// A session that no live context needs.
fn put_aside(client: &mut Client, agent: &str, description: &str) -> Session {
    client.append(agent, "hello");
    let saved = client.save(agent, description);
    clear(client, agent);
    saved
}

fn expire(client: &mut Client, unused_for: Option<&str>, dry_run: bool) -> ExpireResult {
    let params = ExpireParams { unused_for: unused_for.map(Into::into), dry_run, ..Default::default() };
    client.call::<Expire>(&params).expect("session.expire")
}

fn names(result: &ExpireResult) -> Vec<&str> {
    result.sessions.iter().map(|session| session.session_id.as_str()).collect()
}

fn ids(sessions: &[Session]) -> Vec<&str> {
    sessions.iter().map(|session| session.header.session_id.as_str()).collect()
}

fn notices(client: &mut Client) -> Vec<(String, String)> {
    let events = client.call::<Events>(&EventsParams::default()).expect("events.list").events;
    let notices = events.into_iter().filter(|event| event.kind == EventType::Notice);
    notices
        .map(|event| (event.agent.unwrap_or_default(), event.data["text"].as_str().unwrap_or_default().into()))
        .collect()
}

/// Waits until the people of `agent` were told of one.
fn told(client: &mut Client, agent: &str) {
    let text = "Moved 1 session that was not used for 30d to the trash.";
    let wanted = (agent.to_owned(), text.to_owned());
    wait_until("the notice", DEADLINE, || notices(client).contains(&wanted).then_some(()));
}

#[test]
fn nothing_goes_where_nothing_is_configured() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    init(&mut client, "a");
    let saved = put_aside(&mut client, "a", "kept");
    hands.advance(days(10_000));
    let result = expire(&mut client, None, false);
    assert_eq!((result.unused_for, result.sessions, result.kept, result.left), (None, vec![], 0, 0));
    drop(daemon);
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    let said = chorusctl(&home, ["session", "expire"]);
    assert!(said.stderr.contains("`sessions_unused_for` is not set"), "{}", said.stderr);
    said.expect_success();
    assert_eq!(client.history("a"), [saved]);
    assert_eq!(notices(&mut client), []);
}

#[test]
fn a_dry_run_changes_nothing_and_what_it_lists_goes_and_comes_back() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    for name in ["a", "b"] {
        init(&mut client, name);
    }
    let first = put_aside(&mut client, "a", "the first");
    hands.advance(days(1));
    let other = put_aside(&mut client, "b", "of another");
    hands.advance(days(20));
    let used = put_aside(&mut client, "a", "used again");
    hands.advance(days(20));
    let young = put_aside(&mut client, "a", "young");
    client.restore("a", &used.header.id.to_string());
    clear(&mut client, "a");
    let before = client.history("a");
    let dry = expire(&mut client, Some("15d"), true);
    assert_eq!(
        names(&dry),
        [&*first.header.session_id, &other.header.session_id],
        "what was used longest ago is first"
    );
    assert!(dry.sessions.iter().all(|session| session.trash.is_none()));
    let said = chorusctl(&home, ["session", "expire", "--dry-run", "--unused-for", "15d"]).expect_success();
    assert!(said.contains("2 sessions unused for 15d would be moved to the trash"), "{said}");
    let paged = ExpireParams {
        unused_for: Some("15d".into()),
        dry_run: true,
        offset: Some(1),
        limit: Some(1),
        ..Default::default()
    };
    let page = client.call::<Expire>(&paged).expect("a page");
    assert_eq!((names(&page), page.left), (vec![&*other.header.session_id], 0));
    assert_eq!(client.history("a"), before, "nothing has changed");
    let gone = chorusctl(&home, ["--agent", "a", "session", "expire", "--unused-for", "15d", "--json"]).expect_json();
    assert_eq!(gone["sessions"][0]["session_id"], first.header.session_id);
    assert_eq!(gone["sessions"].as_array().map(Vec::len), Some(1), "the other is not of that agent: {gone}");
    assert!(!Path::new(&first.file_path).exists());
    assert_eq!(ids(&client.history("a")), [&*young.header.session_id, &used.header.session_id]);
    assert_eq!(ids(&client.history("b")), [&*other.header.session_id]);
    let entry = gone["sessions"][0]["trash"].as_str().expect("an entry");
    client.call::<Restore>(&RestoreParams { id: entry.into() }).expect("trash.restore");
    assert_eq!(client.history("a"), before);
    client.restore("a", &first.header.id.to_string());
    assert_eq!(client.message_texts("a"), ["hello"]);
}

#[test]
fn what_live_contexts_need_stays() {
    let (home, hands) = (home(), hands());
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    for name in ["saved", "restored", "resumed", "none"] {
        init(&mut client, name);
    }
    client.append("saved", "hello");
    client.save("saved", "saved as");
    let base = put_aside(&mut client, "restored", "restored from");
    client.restore("restored", &base.header.id.to_string());
    let parent = put_aside(&mut client, "resumed", "goes on from");
    let resume = ResumeParams {
        as_conversation: None,
        conversation: None,
        agent: Some("resumed".into()),
        session: parent.header.id.to_string(),
    };
    client.call::<Resume>(&resume).expect("context.resume");
    let aside = put_aside(&mut client, "none", "nobody's");
    hands.advance(days(31));
    let result = expire(&mut client, Some("30d"), false);
    assert_eq!((names(&result), result.kept), (vec![&*aside.header.session_id], 3));
    clear(&mut client, "resumed");
    let result = expire(&mut client, Some("30d"), false);
    assert_eq!((names(&result), result.kept), (vec![&*parent.header.session_id], 2));
}

#[test]
fn the_daemon_does_it_by_itself_and_tells() {
    let (home, hands) = (home(), hands());
    home.write_config(CONFIG);
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    for name in ["a", "b", "c", "d"] {
        init(&mut client, name);
    }
    client.append("b", "hello");
    client.save("b", "of a live context");
    let old = put_aside(&mut client, "a", "old");
    hands.advance(days(15));
    put_aside(&mut client, "c", "younger");
    hands.advance(days(16));
    told(&mut client, "a");
    assert!(client.history("a").is_empty());
    assert_eq!((client.history("b").len(), client.history("c").len()), (1, 1));
    // Somebody wants it back: it does not go the next time.
    client.call::<Restore>(&RestoreParams { id: old.header.session_id }).expect("trash.restore");
    hands.advance(days(15));
    told(&mut client, "c");
    assert_eq!((client.history("a").len(), client.history("c").len()), (1, 0));
    // A day is enough: it looks every day, and when it starts.
    put_aside(&mut client, "d", "last");
    drop(daemon);
    hands.advance(days(31));
    let daemon = InProcessDaemon::start(&home, &hands);
    let mut client = daemon.client();
    told(&mut client, "d");
    assert_eq!(client.history("b").len(), 1);
}

#[test]
fn ages_that_are_none_are_refused() {
    let home = home();
    let daemon = Daemon::start_with(&home, CONFIG);
    let mut client = daemon.client();
    client.init("a");
    for wrong in ["30m", "0", "", "soon", "-30d"] {
        let params = ExpireParams { unused_for: Some(wrong.into()), ..Default::default() };
        assert_eq!(expect_error_kind(client.call::<Expire>(&params)), ErrorKind::InvalidParams, "{wrong:?}");
    }
    let wrong =
        [ExpireParams { limit: Some(0), ..Default::default() }, ExpireParams { offset: Some(1), ..Default::default() }];
    for params in wrong {
        assert_eq!(expect_error_kind(client.call::<Expire>(&params)), ErrorKind::InvalidParams, "{params:?}");
    }
    let params = ExpireParams { agent: Some("nobody".into()), ..Default::default() };
    assert_eq!(expect_error_kind(client.call::<Expire>(&params)), ErrorKind::AgentNotFound);
    assert_eq!(expire(&mut client, None, true).unused_for.as_deref(), Some("30d"));
    assert!(daemon.terminate().success());
    home.write_config("[retention]\nsessions_unused_for = \"30m\"\n");
    let (_, said) = Daemon::try_start(&home, home.command(home.bins.chorusd)).expect_err("no start");
    assert!(said.contains("line 2") && said.contains("at least one day"), "{said}");
}
