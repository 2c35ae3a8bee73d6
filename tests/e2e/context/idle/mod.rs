//! Idle timers by a clock that the test moves: what changes of the time of day, sleep, crowds and restarts do to them.

mod clock_jumps;
mod eviction;
mod race;
mod restart;
mod simultaneous;
mod time_zones;
pub mod timeout;
mod turns;

use std::time::Duration;

use chorus_proto::methods::agent::{Init, InitParams};
use chorus_proto::{Client, Session, Trigger};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::{DEADLINE, ManualClock, wait_until};
use jiff::Timestamp;

use super::idle::timeout::notices;

const MINUTE: Duration = Duration::from_secs(60);
/// What agents have unless they say otherwise.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

fn hands() -> ManualClock {
    ManualClock::new(Timestamp::from_second(1_771_000_000).expect("a time"))
}

/// An agent with a timeout of its own and one message.
fn busy(client: &mut Client, name: &str, timeout: &str) {
    let params = InitParams { name: name.into(), idle_timeout: Some(timeout.into()), ..Default::default() };
    client.call::<Init>(&params).expect("agent.init");
    client.append(name, &format!("A word of {name}."));
}

/// Whose context was put away so far, in order.
fn put_away(client: &mut Client) -> Vec<String> {
    notices(client).into_iter().map(|event| event.agent.expect("an agent")).collect()
}

/// Waits until that many contexts were put away, and says whose they were.
fn wait_for(client: &mut Client, count: usize) -> Vec<String> {
    wait_until("the notices", DEADLINE, || Some(put_away(client)).filter(|agents| agents.len() >= count))
}

/// Waits until time has come to pass in the daemon, too: `sentinel` has just fallen due, and nobody else.
fn only_the_sentinel(client: &mut Client, sentinel: &str) {
    wait_until("the sentinel", DEADLINE, || put_away(client).contains(&sentinel.to_owned()).then_some(()));
    assert_eq!(put_away(client), [sentinel]);
}

/// The one session that the timer saved.
fn saved_once(client: &mut Client, agent: &str) -> Session {
    let mut sessions = client.history(agent);
    assert_eq!(sessions.len(), 1, "{agent}");
    let session = sessions.pop().expect("a session");
    assert_eq!(session.header.trigger, Trigger::IdleTimeout);
    session
}
