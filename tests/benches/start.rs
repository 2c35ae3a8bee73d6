//! Bench: start of a daemon with 2,000 live contexts, compared with a start without any.

use std::time::Duration;

use chorus_proto::{NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, measure_paired, median, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, Home, home};

const CONTEXTS: usize = 2000;
const MESSAGES: usize = 50;
const ROUNDS: usize = 21;
const TARGET: Duration = Duration::from_millis(150);

fn time_start(home: &Home) -> Duration {
    let mut daemon = None;
    let took = time(|| daemon = Some(Daemon::start(home)));
    daemon.expect("a daemon").kill9();
    took
}

fn main() {
    let (empty, full) = (home!(), home!());
    let daemon = Daemon::start(&full);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let mut client = daemon.client();
            scope.spawn(move || {
                for n in (part..CONTEXTS).step_by(4) {
                    let agent = format!("agent-{n}");
                    client.init(&agent);
                    let text = |n| NewMessage::text(Role::User, format!("message {n} {}", "word ".repeat(60)));
                    client.append_all(&agent, (0..MESSAGES).map(text).collect());
                }
            });
        }
    });
    daemon.kill9();
    use_realtime_scheduler();
    time_start(&empty);
    let mut times = Vec::new();
    let ratio = measure_paired(
        "start, 2,000 contexts over none",
        f64::INFINITY,
        ROUNDS,
        || time_start(&empty),
        || {
            let took = time_start(&full);
            times.push(took);
            took
        },
    );
    print_report(&ratio);
    let name = "start, 2,000 contexts of 50 messages".to_owned();
    print_report(Measurement { name, floor: TARGET, ours: median(times), target: 1.0 });
    let daemon = Daemon::start(&full);
    assert_eq!(daemon.client().message_texts("agent-1999").len(), MESSAGES, "and they are all there");
}
