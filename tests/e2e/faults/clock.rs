//! Clocks that ran ahead, stand before 1970 or far in the future.

use chorus_proto::methods::context::{History, HistoryParams};
use chorus_proto::methods::doctor::{Doctor, DoctorParams};
use chorus_proto::methods::session::{Delete, DeleteParams};
use chorus_proto::methods::{agent, memory, trash};
use chorus_proto::{Client, Session};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{InProcessDaemon, ManualClock};
use jiff::{SignedDuration, Timestamp};

use crate::home;

const YEAR: i64 = 365 * 24;

fn all_agents(client: &mut Client) -> Vec<Session> {
    let params = HistoryParams { all_agents: true, limit: Some(100), ..Default::default() };
    client.call::<History>(&params).expect("history").sessions
}

fn described(sessions: &[Session]) -> Vec<&str> {
    sessions.iter().map(|session| session.header.description.as_deref().unwrap_or_default()).collect()
}

#[test]
fn after_a_clock_that_ran_ahead_the_latest_is_what_was_saved_last() {
    let home = home();
    let hands = ManualClock::new("2026-03-01T00:00:00Z".parse().expect("a time"));
    let inside = InProcessDaemon::start(&home, &hands);
    let mut client = inside.client();
    for name in ["a", "b"] {
        client.init(name);
        client.append(name, "hello");
    }
    client.save("a", "before");
    hands.shift_time_of_day(SignedDuration::from_hours(10 * YEAR));
    client.save("a", "ahead");
    client.save("b", "ahead too");
    hands.shift_time_of_day(SignedDuration::from_hours(-10 * YEAR));
    client.append("a", "more");
    client.save("a", "after");
    client.append("a", "and more");
    let last = client.save("a", "last");
    assert!(
        last.header.saved_at < "2027-01-01T00:00:00Z".parse::<Timestamp>().expect("a time"),
        "times are told as they are"
    );
    let order = ["last", "after", "ahead", "before"];
    let check = |client: &mut Client| {
        assert_eq!(described(&client.history("a")), order);
        for (back, description) in order.iter().enumerate() {
            let (session, _) = client.get_session("a", &format!("latest~{back}"));
            assert_eq!(session.header.description.as_deref(), Some(*description));
        }
        assert_eq!(described(&all_agents(client)), ["last", "after", "ahead too", "ahead", "before"]);
        assert_eq!(client.agent_status("a").last_session.expect("a session").description.as_deref(), Some("last"));
    };
    check(&mut client);
    client.call::<Doctor>(&DoctorParams { rebuild: true, salvage: false }).expect("rebuilt");
    check(&mut client);
    // A deletion and a return change nothing in it.
    let params = DeleteParams { conversation: None, agent: Some("a".into()), session: "latest~1".into(), own: false };
    let gone = client.call::<Delete>(&params).expect("deleted").trash.expect("an entry");
    client.call::<trash::Restore>(&trash::RestoreParams { id: gone }).expect("restored");
    check(&mut client);
    // A query by time finds sessions by their time.
    let since = HistoryParams { agent: Some("a".into()), since: Some("2030-01-01".into()), ..Default::default() };
    assert_eq!(described(&client.call::<History>(&since).expect("history").sessions), ["ahead"]);
    drop(client);
    inside.stop().expect("a stop");
    let inside = InProcessDaemon::start(&home, &hands);
    check(&mut inside.client());
}

/// Much of what there is to ask, by that clock.
fn works_at(now: &str) {
    let home = home();
    let hands = ManualClock::new(now.parse().expect("a time"));
    let inside = InProcessDaemon::start(&home, &hands);
    let mut client = inside.client();
    for name in ["a", "b"] {
        client.init(name);
        client.append(name, "hello");
        client.save(name, "one");
    }
    client.append("a", "more");
    client.save("a", "two");
    assert_eq!(described(&client.history("a")), ["two", "one"]);
    let since = HistoryParams { agent: Some("a".into()), since: Some("7d".into()), ..Default::default() };
    client.call::<History>(&since).expect("history");
    let text = memory::AddParams { agent: Some("a".into()), text: "gates are oak".into(), ..Default::default() };
    client.call::<memory::Add>(&text).expect("remembered");
    let params = DeleteParams { conversation: None, agent: Some("a".into()), session: "latest".into(), own: false };
    let gone = client.call::<Delete>(&params).expect("deleted").trash.expect("an entry");
    client.call::<trash::List>(&trash::ListParams {}).expect("the trash");
    client.call::<trash::Restore>(&trash::RestoreParams { id: gone }).expect("restored");
    let destroy = agent::DestroyParams { name: "b".into(), keep_files: false, purge: false };
    client.call::<agent::Destroy>(&destroy).expect("destroyed");
    client.call::<trash::Restore>(&trash::RestoreParams { id: "b".into() }).expect("restored");
    client.call::<Doctor>(&DoctorParams { rebuild: true, salvage: false }).expect("doctor");
    client.restore("a", "latest");
    assert_eq!(client.message_texts("a"), ["hello", "more"]);
    hands.advance(std::time::Duration::from_secs(1));
    client.append("a", "later");
    drop(client);
    inside.stop().expect("a stop");
    let inside = InProcessDaemon::start(&home, &hands);
    assert_eq!(inside.client().message_texts("a"), ["hello", "more", "later"]);
}

#[test]
fn a_clock_before_1970_works() {
    works_at("1969-07-20T20:17:40Z");
}

#[test]
fn a_clock_far_in_the_past_works() {
    works_at("-009998-01-02T00:00:00Z");
}

#[test]
fn a_clock_past_what_64_bits_of_nanoseconds_hold_works() {
    works_at("9999-12-01T00:00:00Z");
}
