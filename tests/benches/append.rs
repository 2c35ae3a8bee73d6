//! Bench: durable appends of 1 KB by one client and by 64 clients, beside Redis if it is installed, and to contexts of growing
//! length.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use chorus_proto::methods::context::{Append, AppendParams};
use chorus_proto::{Client, NewMessage, Role};
use chorus_tests::bulk_data::text_of_kilobyte;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{
    Measurement, is_machine_busy, median, print_report, time, use_ordinary_scheduler, use_realtime_scheduler,
};
use chorus_tests::process::cpu_time;
use chorus_tests::redis::{Redis, RedisClient};
use chorus_tests::{Daemon, Home, home};

const CLIENTS: usize = 64;
/// Appends of one client.
const ROUNDS: usize = 1000;
/// Rounds of many clients, and appends of each of them in a round. A round of Chorus takes some seconds.
const RATE_ROUNDS: usize = 5;
const APPENDS_IN_ROUND: usize = 800;
/// Plain writes before each of these rounds.
const WRITES_IN_ROUND: usize = 200;
/// Until the messages of a round are indexed.
const INDEXING: Duration = Duration::from_secs(120);
const LENGTHS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];

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

/// One client: a request compared with a plain write and sync of the same bytes, and with the same in Redis.
fn one_client(daemon: &Daemon, redis: Option<&Redis>, folder: &Path) {
    let mut client = daemon.client();
    client.init("one");
    let mut peer = redis.map(Redis::client);
    let (text, mut file) = (text_of_kilobyte(), open_floor_log(folder));
    let (mut floor, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + ROUNDS / 10 {
        let written = time(|| write_synced(&mut file, text.as_bytes()));
        let pushed = peer.as_mut().map(|peer| time(|| _ = peer.push("one", &text)));
        let appended = time(|| append_message(&mut client, "one", &text));
        if round >= ROUNDS / 10 {
            floor.push(written);
            ours.push(appended);
            theirs.extend(pushed);
        }
    }
    let report = |over: &str, floor: Vec<Duration>, target| {
        let name = format!("append 1 KB, one client, over {over}");
        print_report(Measurement { name, floor: median(floor), ours: median(ours.clone()), target });
    };
    report("write + fdatasync", floor, 1.5);
    if !theirs.is_empty() {
        report("Redis", theirs, 1.0);
    }
}

/// The rounds of many clients of one server.
struct Rounds<C> {
    pid: u32,
    clients: Vec<C>,
    times: Vec<Duration>,
    /// Processor time of the server until the last append was answered.
    while_appending: Duration,
    /// The same until the server had nothing left to do, so with the index.
    processor: Duration,
}

impl<C: Send> Rounds<C> {
    fn new(pid: u32, clients: Vec<C>) -> Self {
        Self { pid, clients, times: Vec::new(), while_appending: Duration::ZERO, processor: Duration::ZERO }
    }

    /// Runs `append` in a thread for each client, `count` times.
    fn append(&mut self, count: usize, append: impl Fn(&mut C, usize) + Sync) {
        std::thread::scope(|scope| {
            for (n, client) in self.clients.iter_mut().enumerate() {
                let append = &append;
                scope.spawn(move || (0..count).for_each(|_| append(client, n)));
            }
        });
    }

    /// Measures a round, and waits with `wait_until_calm` until what follows from it is done, too.
    fn measure(&mut self, append: impl Fn(&mut C, usize) + Sync, wait_until_calm: impl Fn()) {
        let before = cpu_time(self.pid);
        let took = time(|| self.append(APPENDS_IN_ROUND, append));
        self.times.push(took);
        self.while_appending += cpu_time(self.pid) - before;
        wait_until_calm();
        self.processor += cpu_time(self.pid) - before;
    }

    fn per_second(&self) -> f64 {
        (CLIENTS * APPENDS_IN_ROUND) as f64 / median(self.times.clone()).as_secs_f64()
    }

    /// Returns the part of a processor time that one append had.
    fn micros_each(&self, processor: Duration) -> f64 {
        processor.as_secs_f64() * 1e6 / (CLIENTS * APPENDS_IN_ROUND * self.times.len()) as f64
    }
}

/// 64 clients: their appends per second, over those of one writer that syncs after each write, and over Redis, in turn.
fn many_clients(daemon: &Daemon, redis: Option<&Redis>, folder: &Path) {
    for n in 0..CLIENTS {
        daemon.client().init(&format!("many-{n}"));
    }
    let (text, mut file) = (text_of_kilobyte(), open_floor_log(folder));
    let push = |client: &mut RedisClient, n| _ = client.push(&format!("many-{n}"), &text);
    let append = |client: &mut Client, n| append_message(client, &format!("many-{n}"), &text);
    let mut theirs = redis.map(|redis| Rounds::new(redis.pid(), (0..CLIENTS).map(|_| redis.client()).collect()));
    let mut ours = Rounds::new(daemon.pid, (0..CLIENTS).map(|_| daemon.client()).collect());
    let mut floor = Vec::new();
    if let Some(theirs) = &mut theirs {
        theirs.append(APPENDS_IN_ROUND / 10, push);
    }
    ours.append(APPENDS_IN_ROUND / 10, append);
    daemon.wait_until_calm(INDEXING);
    for _ in 0..RATE_ROUNDS {
        floor.extend((0..WRITES_IN_ROUND).map(|_| time(|| write_synced(&mut file, text.as_bytes()))));
        if let Some(theirs) = &mut theirs {
            theirs.measure(push, || ());
        }
        ours.measure(append, || daemon.wait_until_calm(INDEXING));
    }
    let report = |over: &str, floor: f64, target: f64| {
        let (rate, ratio) = (ours.per_second(), ours.per_second() / floor);
        let verdict = if ratio >= target { "met" } else { "MISSED" };
        let name = format!("append 1 KB, 64 clients, over {over}");
        print_report(format_args!(
            "{name:<44} floor {floor:>8.0}/s  chorus {rate:>8.0}/s  ratio {ratio:>5.2}  target >= {target:.2}  {verdict}"
        ));
    };
    report("a one-writer loop", 1.0 / median(floor).as_secs_f64(), 3.0);
    if let Some(theirs) = theirs {
        report("Redis", theirs.per_second(), 1.2);
        let each = theirs.micros_each(theirs.processor);
        print_report(format_args!("processor time of an append there: Redis {each:.1} us"));
    }
    let until_answers = ours.micros_each(ours.while_appending);
    print_report(format_args!("processor time of an append there, until the answers: {until_answers:.1} us"));
    // On a busy machine nobody waits for the index.
    if !is_machine_busy() {
        let each = ours.micros_each(ours.processor);
        let verdict = if each <= 20.0 { "met" } else { "MISSED" };
        print_report(format_args!(
            "processor time of an append there, with the index: {each:.1} us  target <= 20 us  {verdict}"
        ));
    }
}

/// Measures an append to contexts of growing length.
fn cost_by_length(daemon: &Daemon) -> Vec<(usize, Duration)> {
    let (mut client, text) = (daemon.client(), text_of_kilobyte());
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

/// Starts a daemon, and Redis if it is installed.
fn start_servers(home: &Home) -> (Daemon, Option<Redis>) {
    (Daemon::start(home), Redis::start(&home.temp_dir().join("redis")))
}

fn main() {
    let home = home!();
    use_realtime_scheduler();
    let (daemon, redis) = start_servers(&home);
    if redis.is_none() {
        print_report("redis-server is not installed: no comparison with it");
    }
    one_client(&daemon, redis.as_ref(), home.temp_dir());
    let lengths = cost_by_length(&daemon);
    let first = lengths[0].1;
    for (length, cost) in lengths {
        let name = format!("append 1 KB to {length} messages, over 10");
        print_report(Measurement { name, floor: first, ours: cost, target: 1.25 });
    }
    drop((daemon, redis));
    // The real-time one knows no low priority, with which the index is made while the appends go on.
    use_ordinary_scheduler();
    let home = home!();
    let (daemon, redis) = start_servers(&home);
    many_clients(&daemon, redis.as_ref(), home.temp_dir());
}
