//! Bench P11: 100,000 events for 20 subscribers, one of which does not read. Measures the delay for the others and the
//! memory.

use std::time::Duration;

use chorus_proto::event::Event;
use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::methods::events::{Subscribe, SubscribeParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::print_report;
use chorus_tests::{DEADLINE, Daemon, home};
use jiff::Timestamp;

const SUBSCRIBERS: usize = 20;
const EVENTS: u64 = 100_000;
const WRITERS: u64 = 8;

fn subscribe(daemon: &Daemon) -> Client {
    let mut client = daemon.client();
    client.call::<Subscribe>(&SubscribeParams { after: None }).expect("subscribed");
    client
}

/// Returns the delay of each event in milliseconds, and how many `lagged` notifications came.
fn measure_delays(mut client: Client, last: u64) -> (Vec<f64>, u64) {
    client.set_timeout(Some(DEADLINE)).expect("a time-out");
    let (mut late, mut seen, mut missed) = (Vec::new(), 0, 0);
    loop {
        let (method, params) = client.next_notification().expect("a notification");
        if method == "lagged" {
            missed += 1;
            continue;
        }
        let event: Event = serde_json::from_str(params.get()).expect("an event");
        late.push(Timestamp::now().duration_since(event.time).as_secs_f64() * 1000.0);
        assert!(event.seq > seen, "out of order");
        seen = event.seq;
        if seen >= last {
            return (late, missed);
        }
    }
}

fn main() {
    let home = home!();
    let daemon = Daemon::start(&home);
    for n in 0..WRITERS {
        daemon.client().init(&format!("agent-{n}"));
    }
    let stopped = subscribe(&daemon);
    let before = daemon.rss();
    let first = daemon.client().append("agent-0", "the first");
    assert_eq!(first, 1);
    let last = EVENTS;
    let (heard, most) = std::thread::scope(|scope| {
        let listeners: Vec<_> = (1..SUBSCRIBERS)
            .map(|_| {
                let client = subscribe(&daemon);
                scope.spawn(move || measure_delays(client, last))
            })
            .collect();
        for n in 0..WRITERS {
            let mut client = daemon.client();
            scope.spawn(move || {
                let agent = format!("agent-{n}");
                for _ in 0..EVENTS / WRITERS + 1 {
                    let messages = vec![NewMessage::text(Role::User, "x")];
                    let params = AppendParams { agent: Some(agent.clone()), messages, ..Default::default() };
                    client.call::<Append>(&params).expect("appended");
                }
            });
        }
        let heard: Vec<_> = listeners.into_iter().map(|listener| listener.join().expect("a listener")).collect();
        (heard, daemon.rss())
    });
    drop(stopped);
    let missed: u64 = heard.iter().map(|(_, missed)| missed).sum();
    let mut late: Vec<f64> = heard.into_iter().flat_map(|(late, _)| late).collect();
    late.sort_by(f64::total_cmp);
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
    let verdict = |met: bool| if met { "met" } else { "MISSED" };
    print_report(format_args!(
        "{} events for {} who listen beside one who does not: p50 {:.1} ms, p99 {:.1} ms  target < 50 ms  {}",
        late.len(),
        SUBSCRIBERS - 1,
        at(0.5),
        at(0.99),
        verdict(at(0.99) < Duration::from_millis(50).as_secs_f64() * 1000.0)
    ));
    // The contexts grow by the appended messages, too: some 300 bytes each.
    let growth = most.saturating_sub(before) as f64 / 1_048_576.0;
    print_report(format_args!("told `lagged` {missed} times; RSS grew by {growth:.1} MB, the messages included"));
}
