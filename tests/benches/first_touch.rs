//! Bench: the first requests to a context of 1,000,000 messages after `kill -9`: its last page, an append, and a page
//! that needs all messages. Then what a model would be shown of it, which reads each message once for what it decides.

use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::context::{Append, AppendParams, Show, ShowParams};
use chorus_tests::bulk_data::{fill_context, message_count, usual_text};
use chorus_tests::measure::{Measurement, median, print_report, time, use_ordinary_scheduler};
use chorus_tests::redis::Redis;
use chorus_tests::{Daemon, Home, home};
use rusqlite::{Connection, OpenFlags};

const ROUNDS: usize = 5;
/// Until all messages are indexed.
const INDEXING: Duration = Duration::from_secs(600);

fn count_shown(client: &mut Client, params: ShowParams) -> usize {
    client.call::<Show>(&ShowParams { agent: Some("a".into()), ..params }).expect("shown").messages.len()
}

fn append_one(client: &mut Client) {
    let params = AppendParams { agent: Some("a".into()), text: Some("One more.".into()), ..Default::default() };
    client.call::<Append>(&params).expect("appended");
}

/// Times reading every record in the order of the file: the floor of loading all messages.
fn time_table_scan(home: &Home) -> Duration {
    let path = home.path.join("db/live.db");
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the journal");
    time(|| {
        let mut statement = database.prepare("SELECT envelope FROM records ORDER BY id").expect("a statement");
        let mut rows = statement.query([]).expect("the records");
        let mut bytes = 0;
        while let Some(row) = rows.next().expect("a record") {
            bytes += row.get::<_, Vec<u8>>(0).expect("its envelope").len();
        }
        assert!(bytes > message_count() * 400);
    })
}

/// Starts Redis with as many messages of the same length; `None` if it is not installed.
fn start_redis(home: &Home) -> Option<Redis> {
    let redis = Redis::start(&home.temp_dir().join("redis"))?;
    redis.client().push_all("a", &usual_text(), message_count());
    Some(redis)
}

/// The first request to a daemon that has just started.
#[derive(Default)]
struct First {
    /// Times of the request alone.
    requests: Vec<Duration>,
    /// Times from the start of the daemon's process.
    from_start: Vec<Duration>,
}

impl First {
    fn measure(&mut self, begun: Instant, request: impl FnOnce()) {
        self.requests.push(time(request));
        self.from_start.push(begun.elapsed());
    }

    fn report(self, name: &str) {
        let request = Duration::from_millis(50);
        let ours = median(self.requests);
        print_report(Measurement { name: format!("{name}, first"), floor: request, ours, target: 1.0 });
        let (whole, ours) = (Duration::from_millis(200), median(self.from_start));
        print_report(Measurement { name: format!("{name}, from the daemon's start"), floor: whole, ours, target: 1.0 });
    }
}

fn main() {
    // With the real-time one, threads that read on every core would keep the kernel's own from the syncs of others.
    use_ordinary_scheduler();
    let home = home!();
    let mut redis = start_redis(&home);
    let mut daemon = Daemon::start(&home);
    fill_context(&mut daemon.client(), "a", message_count());
    // What is measured is not to share the machine with the index.
    daemon.wait_until_calm(INDEXING);
    let (mut page, mut append, mut behind) = (First::default(), First::default(), vec![]);
    let (mut all, mut loads, mut floors) = (vec![], vec![], vec![]);
    for round in 0..2 * ROUNDS {
        daemon.kill9();
        floors.push(time_table_scan(&home));
        loads.extend(redis.as_mut().map(Redis::time_reload));
        // As for Redis, from before the process starts.
        let begun = Instant::now();
        daemon = Daemon::start(&home);
        let mut client = daemon.client();
        if round % 2 == 0 {
            let last = ShowParams { last: Some(50), ..ShowParams::default() };
            page.measure(begun, || assert_eq!(count_shown(&mut client, last), 50));
            behind.push(time(|| append_one(&mut client)));
        } else {
            append.measure(begun, || append_one(&mut client));
        }
        let first = ShowParams { offset: Some(0), limit: Some(1), ..ShowParams::default() };
        assert_eq!(count_shown(&mut client, first), 1);
        all.push(begun.elapsed());
    }
    let mut client = daemon.client();
    let mut show_window = || {
        time(|| {
            let params = ShowParams { agent: Some("a".into()), window: true, ..ShowParams::default() };
            assert!(client.call::<Show>(&params).expect("shown").window.is_some());
        })
    };
    let (first_window, next_window) = (show_window(), show_window());
    page.report("the last 50");
    append.report("an append");
    let (name, floor) = ("an append behind the last 50".to_owned(), Duration::from_millis(50));
    print_report(Measurement { name, floor, ours: median(behind), target: 1.0 });
    if !loads.is_empty() {
        let name = format!("all {} messages, over Redis loading its log", message_count());
        print_report(Measurement { name, floor: median(loads), ours: median(all.clone()), target: 1.0 });
    }
    let name = format!("all {} messages, over reading the rows", message_count());
    print_report(Measurement { name, floor: median(floors), ours: median(all), target: f64::INFINITY });
    print_report(format_args!(
        "context show --window: {first_window:.3?} the first time, {next_window:.3?} the second"
    ));
}
