//! Ports of 127.0.0.1 for servers that are started a moment later, or not at all.

use std::fs;
use std::net::TcpListener;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of ports that are given in turn.
const PORTS: u16 = 12_000;

/// Returns a port that nobody listens on. No other call of this process returns it soon, and where the system has room below the ports
/// that outgoing connections get, the kernel gives it to no connection.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        // Two processes begin at different ones.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
        let start = (now / 1000).wrapping_add(std::process::id()) % u32::from(PORTS);
        AtomicU16::new(u16::try_from(start).expect("a small number"))
    });
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768).max(PORTS + 1024);
    (0..PORTS)
        .map(|_| end - PORTS + NEXT.fetch_add(1, Ordering::Relaxed) % PORTS)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a port that nobody listens on")
}
