//! Bench: the appends of one client alone, and while another one saves and restores a context of 1,000,000 messages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::context::{Append, AppendParams, Restore, RestoreParams, Save, SaveParams};
use chorus_tests::bulk_data::{fill_context, message_count, usual_text};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, median, print_report, time, use_ordinary_scheduler};
use chorus_tests::{DEADLINE, Daemon, home};

/// Saves and restores, in turn.
const ROUNDS: usize = 3;

/// Until all messages are indexed.
const INDEXING: Duration = Duration::from_secs(600);

/// Appends that are measured alone before the first round and after the last one.
const APPENDS_ALONE: usize = 1_000;

fn time_append(client: &mut Client, params: &AppendParams) -> Duration {
    time(|| _ = client.call::<Append>(params).expect("appended"))
}

/// Runs `bulk` on another thread and appends until it has ended. Returns how long it took, and the times of the appends.
fn append_during(
    client: &mut Client,
    params: &AppendParams,
    bulk: impl FnOnce() + Send,
    times: &mut Vec<Duration>,
) -> Duration {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let bulk = scope.spawn(|| {
            let took = time(bulk);
            ended.store(true, Ordering::Release);
            took
        });
        while !ended.load(Ordering::Acquire) {
            times.push(time_append(client, params));
        }
        bulk.join().expect("saved or restored")
    })
}

/// Times of appends, sorted.
struct Appends(Vec<Duration>);

impl Appends {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }

    fn describe(&self) -> String {
        let (slow, slowest) = (self.0[self.0.len() * 99 / 100], self.0[self.0.len() - 1]);
        format!("{} appends; p99 {slow:.3?}, longest {slowest:.3?}", self.0.len())
    }
}

fn report(name: &str, alone: &Appends, times: Vec<Duration>, bulk: Vec<Duration>) {
    let appends = Appends::new(times);
    let (name, floor, ours) = (format!("append while {name}"), alone.median(), appends.median());
    print_report(Measurement { name, floor, ours, target: 2.0 });
    print_report(format_args!("  {}; one of the others {:.3?}", appends.describe(), median(bulk)));
}

fn main() {
    // Threads of the real-time one do not share a processor, so whoever works long would hold up the others.
    use_ordinary_scheduler();
    let home = home!();
    let daemon = Daemon::start(&home);
    let mut bulk = daemon.client();
    bulk.set_timeout(Some(4 * DEADLINE)).expect("a time-out");
    let filled = Instant::now();
    fill_context(&mut bulk, "large", message_count());
    print_report(format_args!("{} messages appended in {:.1?}", message_count(), filled.elapsed()));
    let mut client = daemon.client();
    client.init("small");
    let text = Some(usual_text().repeat(2));
    let params = AppendParams { agent: Some("small".into()), text, ..Default::default() };
    let (mut alone, mut while_saved, mut while_restored) = (Vec::new(), Vec::new(), Vec::new());
    let (mut saves, mut restores) = (Vec::new(), Vec::new());
    // Alone means without the index of what was appended or restored before; a part is measured at each end.
    let mut measure_alone = |client: &mut Client| {
        daemon.wait_until_calm(INDEXING);
        alone.extend((0..APPENDS_ALONE).map(|_| time_append(client, &params)));
    };
    measure_alone(&mut client);
    for _ in 0..ROUNDS {
        let save = SaveParams { agent: Some("large".into()), description: Some("bench".into()), ..Default::default() };
        let mut session = String::new();
        let saving = || session = bulk.call::<Save>(&save).expect("saved").session.header.id.to_string();
        saves.push(append_during(&mut client, &params, saving, &mut while_saved));
        let restore = RestoreParams { agent: Some("large".into()), session, discard: true, ..Default::default() };
        let restoring = || _ = bulk.call::<Restore>(&restore).expect("restored");
        restores.push(append_during(&mut client, &params, restoring, &mut while_restored));
    }
    measure_alone(&mut client);
    let alone = Appends::new(alone);
    print_report(format_args!("alone: {}", alone.describe()));
    report("saved", &alone, while_saved, saves);
    report("restored", &alone, while_restored, restores);
}
