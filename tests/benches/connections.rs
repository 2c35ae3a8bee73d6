//! Bench: memory of the daemon for each of 5,000 connections that have asked `hello`, and what stays after they close.

use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_tests::measure::print_report;
use chorus_tests::{DEADLINE, Daemon, RawConnection, home, wait_until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Memory of a connection in bytes.
const TARGET_BYTES: f64 = 8192.0;
const MEGABYTE: f64 = 1_048_576.0;
/// Descriptors that this process and the daemon need besides those of the connections.
const OTHER_DESCRIPTORS: u64 = 200;
/// The memory has settled when it has not shrunk for this long.
const SETTLING_TIME: Duration = Duration::from_secs(2);
const HELLO: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{}}"#;

/// Returns the number of connections, which `CHORUS_CONNECTIONS` can set.
fn connection_count() -> usize {
    std::env::var("CHORUS_CONNECTIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(5_000)
}

/// Raises the limit of descriptors to the highest one permitted, also for the daemon, which inherits it.
fn raise_descriptor_limit(connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    let needed = connections as u64 + OTHER_DESCRIPTORS;
    assert!(limit.maximum.is_none_or(|most| most >= needed), "{needed} descriptors are needed: raise `ulimit -Hn`");
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("the soft limit can be raised");
}

fn connect_and_ask(daemon: &Daemon) -> RawConnection {
    let mut connection = daemon.raw_connection();
    connection.send_bytes(&[&(HELLO.len() as u32).to_be_bytes()[..], HELLO].concat());
    assert!(connection.receive().is_some(), "the daemon takes no more connections");
    connection
}

/// Waits until only the connection of `client` is left, and the daemon has returned free memory to the system.
fn wait_until_calm(client: &mut Client, daemon: &Daemon) {
    wait_until("the connections to end", DEADLINE, || {
        let params = StatusParams { agent: None, limit: Some(0) };
        (client.call::<Status>(&params).expect("a status").daemon.connections == 1).then_some(())
    });
    let (mut lowest, mut since) = (daemon.rss(), Instant::now());
    wait_until("the memory to be returned", DEADLINE, || {
        let now = daemon.rss();
        if now < lowest {
            (lowest, since) = (now, Instant::now());
        }
        (since.elapsed() >= SETTLING_TIME).then_some(())
    });
}

fn main() {
    let (count, home) = (connection_count(), home!());
    raise_descriptor_limit(count);
    let daemon = Daemon::start_with(&home, &format!("max_connections = {}\n", count + 10));
    let mut client = daemon.client();
    // What the first connections allocate once and for all does not count.
    drop((0..20).map(|_| connect_and_ask(&daemon)).collect::<Vec<_>>());
    wait_until_calm(&mut client, &daemon);
    let before = daemon.rss() as f64;
    let connections: Vec<_> = (0..count).map(|_| connect_and_ask(&daemon)).collect();
    let open = daemon.rss() as f64;
    drop(connections);
    wait_until_calm(&mut client, &daemon);
    let after = daemon.rss() as f64;
    let each = (open - before) / count as f64;
    print_report(format_args!(
        "{count} connections: {:.1} KB each  target {:.1} KB  {}",
        each / 1024.0,
        TARGET_BYTES / 1024.0,
        if each <= TARGET_BYTES { "met" } else { "MISSED" }
    ));
    print_report(format_args!(
        "RSS {:.1} MB before them, {:.1} MB with them, {:.1} MB after they closed",
        before / MEGABYTE,
        open / MEGABYTE,
        after / MEGABYTE
    ));
}
