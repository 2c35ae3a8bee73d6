//! Bench: durable appends of 1 KB by one client, by 64 clients, and to contexts of growing length.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{Measurement, measure_paired, median, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, home};

const CLIENTS: usize = 64;
const LENGTHS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];

fn text_1kb() -> String {
    "x".repeat(1024)
}

fn append_message(client: &mut Client, agent: &str, text: &str) {
    let params = AppendParams { agent: Some(agent.into()), text: Some(text.into()), ..Default::default() };
    client.call::<Append>(&params).expect("appended");
}

/// Opens a plain file for the floor.
fn open_floor_log(folder: &Path) -> File {
    File::options().create(true).append(true).open(folder.join("floor.log")).expect("a file")
}

fn write_synced(file: &mut File, bytes: &[u8]) {
    file.write_all(bytes).expect("written");
    file.sync_data().expect("flushed");
}

/// One client: a request compared with a plain write and sync of the same bytes.
fn one_client(daemon: &Daemon, folder: &Path) -> Measurement {
    let mut client = daemon.client();
    client.init("one");
    let (text, mut file) = (text_1kb(), open_floor_log(folder));
    measure_paired(
        "append 1 KB, one client",
        2.0,
        1000,
        || time(|| write_synced(&mut file, text.as_bytes())),
        || time(|| append_message(&mut client, "one", &text)),
    )
}

/// 64 clients: their appends per second, and those of one writer that syncs after each write.
fn many_clients(daemon: &Daemon, folder: &Path) -> (f64, f64) {
    const EACH: usize = 10;
    for n in 0..CLIENTS {
        daemon.client().init(&format!("many-{n}"));
    }
    let (text, mut file) = (text_1kb(), open_floor_log(folder));
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| daemon.client()).collect();
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..41 {
        floor.push(time(|| (0..CLIENTS * EACH / 4).for_each(|_| write_synced(&mut file, text.as_bytes()))));
        ours.push(time(|| {
            std::thread::scope(|scope| {
                for (n, client) in clients.iter_mut().enumerate() {
                    let text = &text;
                    scope.spawn(move || (0..EACH).for_each(|_| append_message(client, &format!("many-{n}"), text)));
                }
            });
        }));
    }
    let rate = |count: usize, times: Vec<Duration>| count as f64 / median(times).as_secs_f64();
    (rate(CLIENTS * EACH / 4, floor), rate(CLIENTS * EACH, ours))
}

/// Measures an append to contexts of growing length.
fn cost_by_length(daemon: &Daemon) -> Vec<(usize, Duration)> {
    let (mut client, text) = (daemon.client(), text_1kb());
    for length in LENGTHS {
        let agent = format!("length-{length}");
        client.init(&agent);
        let mut left = length;
        while left > 0 {
            let batch = left.min(5000);
            client.append_all(&agent, (0..batch).map(|_| NewMessage::text(Role::User, &text[..512])).collect());
            left -= batch;
        }
    }
    let mut times = vec![Vec::new(); LENGTHS.len()];
    for _ in 0..300 {
        for (length, times) in LENGTHS.iter().zip(&mut times) {
            times.push(time(|| append_message(&mut client, &format!("length-{length}"), &text)));
        }
    }
    LENGTHS.into_iter().zip(times.into_iter().map(median)).collect()
}

fn main() {
    let home = home!();
    use_realtime_scheduler();
    let daemon = Daemon::start(&home);
    print_report(one_client(&daemon, home.temp_dir()));
    let (floor, ours) = many_clients(&daemon, home.temp_dir());
    let verdict = if ours / floor >= 3.0 { "met" } else { "MISSED" };
    let name = "append 1 KB, 64 clients";
    print_report(format_args!(
        "{name:<44} floor {floor:>8.0}/s  chorus {ours:>8.0}/s  ratio {:>5.2}  target >= 3.00  {verdict}",
        ours / floor
    ));
    let lengths = cost_by_length(&daemon);
    let first = lengths[0].1;
    for (length, cost) in lengths {
        let name = format!("append 1 KB to {length} messages, over 10");
        print_report(Measurement { name, floor: first, ours: cost, target: 1.25 });
    }
}
