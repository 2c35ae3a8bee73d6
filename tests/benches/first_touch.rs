//! Bench: the first requests to a context of 1,000,000 messages after `kill -9`: its last page, an append, and a page
//! that needs all messages. Then what a model would be shown of it, which reads each message once for what it decides.

use std::time::{Duration, Instant};

use chorus_proto::methods::context::{Append, AppendParams, Show, ShowParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, median, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, Home, home};
use rusqlite::{Connection, OpenFlags};

const ROUNDS: usize = 5;

/// Returns the number of messages, which `CHORUS_MESSAGES` can set.
fn message_count() -> usize {
    std::env::var("CHORUS_MESSAGES").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000_000)
}

/// Appends `count` messages of a length that is usual in transcripts.
fn fill_context(client: &mut Client, count: usize) {
    client.init("a");
    let text = "The nightly import dropped every row whose country was empty, \"quoted\" or not.\n".repeat(6);
    for batch in 0..count / 1000 {
        let role = |n: usize| if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
        let messages = (0..1000).map(|n| NewMessage::text(role(n), format!("{batch} {n} {text}")));
        client.append_all("a", messages.collect());
    }
}

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

fn main() {
    let home = home!();
    use_realtime_scheduler();
    let mut daemon = Daemon::start(&home);
    fill_context(&mut daemon.client(), message_count());
    let (mut pages, mut appends, mut behind, mut all, mut floors) = (vec![], vec![], vec![], vec![], vec![]);
    for round in 0..2 * ROUNDS {
        daemon.kill9();
        floors.push(time_table_scan(&home));
        daemon = Daemon::start(&home);
        let mut client = daemon.client();
        let begun = Instant::now();
        if round % 2 == 0 {
            let page = ShowParams { last: Some(50), ..ShowParams::default() };
            pages.push(time(|| assert_eq!(count_shown(&mut client, page), 50)));
            behind.push(time(|| append_one(&mut client)));
        } else {
            appends.push(time(|| append_one(&mut client)));
        }
        assert_eq!(
            count_shown(&mut client, ShowParams { offset: Some(0), limit: Some(1), ..ShowParams::default() }),
            1
        );
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
    let target = Duration::from_millis(50);
    let report_first = |name: &str, times| {
        print_report(Measurement { name: name.into(), floor: target, ours: median(times), target: 1.0 })
    };
    report_first("the last 50, first", pages);
    report_first("an append behind them", behind);
    report_first("an append, first", appends);
    let name = format!("all {} messages, over reading the rows", message_count());
    print_report(Measurement { name, floor: median(floors), ours: median(all), target: f64::INFINITY });
    print_report(format_args!(
        "context show --window: {first_window:.3?} the first time, {next_window:.3?} the second"
    ));
}
