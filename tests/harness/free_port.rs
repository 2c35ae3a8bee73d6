//! Ports of 127.0.0.1 for servers that are started a moment later, or not at all.

use std::fs;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Number of ports that are given in turn.
const PORTS: u16 = 12_000;

/// Returns a port that nobody listens on. No other call of this process returns it soon, and the kernel gives it to no connection:
/// it lies below the ports that outgoing connections get.
#[must_use]
pub fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768).max(PORTS + 1024);
    let start = end - PORTS;
    // Two processes begin at different ones.
    let offset = u16::try_from(std::process::id() % u32::from(PORTS)).expect("a small number") / 100 * 100;
    (0..PORTS)
        .map(|_| start + (offset + GIVEN.fetch_add(1, Ordering::Relaxed) % PORTS) % PORTS)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a port that nobody listens on")
}
