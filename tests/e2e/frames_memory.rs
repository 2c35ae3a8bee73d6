//! P10: frames that are only announced cost no memory.

use chorus_tests::Daemon;

use crate::home;

const CONNECTIONS: usize = 200;
const ALLOWED_GROWTH: u64 = 64 * 1024 * 1024;

#[test]
fn two_hundred_announced_frames_cost_little_memory() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    daemon.raw().hello();
    let before = daemon.rss();
    let mut held: Vec<_> = (0..CONNECTIONS).map(|_| daemon.raw()).collect();
    for raw in &mut held {
        raw.bytes(&(16 * 1024 * 1024_u32).to_be_bytes());
        raw.bytes(&[b' '; 1024]);
    }
    // All of it has been read once a later connection is served, or nearly: so ask often, and take the worst.
    let growth = (0..200).map(|_| {
        daemon.raw().hello();
        daemon.rss().saturating_sub(before)
    });
    let growth = growth.max().expect("a measurement");
    assert!(growth < ALLOWED_GROWTH, "{growth} bytes for {CONNECTIONS} announced frames");
    drop(held);
    daemon.assert_alive();
}
