//! P10: frames that are only announced cost no memory, and those that do not end cost a bounded amount.

use std::sync::atomic::{AtomicUsize, Ordering};

use chorus_tests::Daemon;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::process::{anonymous_memory, peak_rss, rss};

use crate::home;

const CONNECTIONS: usize = 200;
const ALLOWED_GROWTH: u64 = 64 * 1024 * 1024;

#[test]
fn two_hundred_announced_frames_cost_little_memory() {
    let home = home().without_index();
    let mut daemon = Daemon::start(&home);
    daemon.raw_connection().check_hello();
    let before = daemon.memory();
    let mut held: Vec<_> = (0..CONNECTIONS).map(|_| daemon.raw_connection()).collect();
    for raw in &mut held {
        raw.send_bytes(&(16 * 1024 * 1024_u32).to_be_bytes());
        raw.send_bytes(&[b' '; 1024]);
    }
    // All of it has been read once a later connection is served, or nearly: so ask often, and take the worst.
    let growth = (0..200).map(|_| {
        daemon.raw_connection().check_hello();
        daemon.memory().saturating_sub(before)
    });
    let growth = growth.max().expect("a measurement");
    assert!(growth < ALLOWED_GROWTH, "{growth} bytes for {CONNECTIONS} announced frames");
    drop(held);
    daemon.assert_alive();
}

/// 128 MiB of frames longer than 64 KiB, and 64 KiB and what was read ahead of those that wait.
const ALLOWED_FOR_UNFINISHED: u64 = 192 * 1024 * 1024;

#[test]
fn two_hundred_frames_that_do_not_end_cost_a_bounded_amount_of_memory() {
    let home = home().without_index();
    let mut daemon = Daemon::start_with(&home, "frame_timeout = \"2s\"\n");
    let mut client = daemon.client();
    client.init("a");
    let before = rss(daemon.pid);
    let (part, ended) = (vec![b' '; 15 * 1024 * 1024], AtomicUsize::new(0));
    let mut appended = 0;
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut raw = daemon.raw_connection();
                raw.send_bytes(&(16 * 1024 * 1024_u32).to_be_bytes());
                // Until the daemon has it all, or closes.
                raw.send_bytes(&part);
                assert!(raw.wait_until_closed());
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        // Meanwhile everybody else is served.
        while ended.load(Ordering::Relaxed) < CONNECTIONS {
            client.append("a", "Hello.");
            daemon.raw_connection().check_hello();
            appended += 1;
        }
    });
    let growth = peak_rss(daemon.pid).saturating_sub(before);
    assert!(growth < ALLOWED_FOR_UNFINISHED, "{growth} bytes for {CONNECTIONS} unfinished frames");
    assert!(growth > 16 * 1024 * 1024, "{growth} bytes: nothing was received");
    assert_eq!(client.message_texts("a").len(), appended);
    // Room that was held is there again.
    let text = "x".repeat(8 * 1024 * 1024);
    client.append("a", &text);
    daemon.assert_alive();
}

#[test]
fn connections_that_have_gone_leave_no_memory_behind() {
    let home = home().without_index();
    let daemon = Daemon::start_with(&home, "max_connections = 2000\n");
    daemon.raw_connection().check_hello();
    let memory = || anonymous_memory(daemon.pid);
    let before = memory();
    let mut held: Vec<_> = (0..600).map(|_| daemon.raw_connection()).collect();
    held.iter_mut().for_each(chorus_tests::RawConnection::check_hello);
    let grown = memory().saturating_sub(before);
    drop(held);
    chorus_tests::wait_until("the memory of 600 connections", chorus_tests::DEADLINE, || {
        (memory().saturating_sub(before) < grown / 2).then_some(())
    });
}
