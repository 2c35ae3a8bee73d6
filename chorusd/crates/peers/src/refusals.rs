//! Connections that were refused: for the log, at most once a minute for each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_base::sync::Mutex;

/// Time between two lines about an address.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Limit of addresses that are remembered. Others are counted together.
const MAX_ADDRESSES: usize = 1024;

/// Refused connections of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `None` for all addresses that there was no space for.
    pub address: Option<IpAddr>,
    /// Why the last one was refused.
    pub reason: String,
    /// Number of refused connections.
    pub count: u64,
}

/// The connections that a port has refused.
#[derive(Debug, Clone, Default)]
pub struct Refusals {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    by_address: HashMap<Option<IpAddr>, Entry>,
    /// Last removal of old entries, which takes time in proportion to their number.
    pruned_at: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    reason: String,
    count: u64,
    logged_at: Instant,
}

impl Refusals {
    /// Records a refused connection, and logs it if the last line about the address is old.
    pub(crate) fn record(&self, address: IpAddr, reason: &str) {
        if let Some(count) = self.count(address, reason, Instant::now()) {
            tracing::warn!(%address, count, "refused a connection to the port of [cluster]: {reason}");
        }
    }

    /// Returns those so far, by address.
    #[must_use]
    pub fn list(&self) -> Vec<Refusal> {
        let state = self.state.lock();
        let all = state.by_address.iter();
        let mut list: Vec<_> = all
            .map(|(address, entry)| Refusal { address: *address, reason: entry.reason.clone(), count: entry.count })
            .collect();
        list.sort_by_key(|refusal| refusal.address);
        list
    }

    /// Counts it. Returns the number of refused connections if a line is due.
    fn count(&self, address: IpAddr, reason: &str, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        let State { by_address: all, pruned_at } = &mut *state;
        let mut key = Some(address);
        if !all.contains_key(&key) && all.len() >= MAX_ADDRESSES {
            if pruned_at.is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL) {
                *pruned_at = Some(now);
                all.retain(|_, entry| now.duration_since(entry.logged_at) < LOG_INTERVAL);
            }
            if all.len() >= MAX_ADDRESSES {
                key = None;
            }
        }
        let Some(entry) = all.get_mut(&key) else {
            all.insert(key, Entry { reason: reason.to_owned(), count: 1, logged_at: now });
            return Some(1);
        };
        entry.count += 1;
        reason.clone_into(&mut entry.reason);
        if now.duration_since(entry.logged_at) < LOG_INTERVAL {
            return None;
        }
        entry.logged_at = now;
        Some(entry.count)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_line_a_minute_for_each_address() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let [one, two] = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last)));
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(refusals.count(one, "a", at(0)), Some(1));
        assert_eq!(refusals.count(one, "a", at(1)), None);
        assert_eq!(refusals.count(two, "a", at(1)), Some(1));
        assert_eq!(refusals.count(one, "a", at(59)), None);
        assert_eq!(refusals.count(one, "a", at(60)), Some(4));
        assert_eq!(refusals.count(one, "b", at(62)), None);
        assert_eq!(refusals.list()[0], Refusal { address: Some(one), reason: "b".into(), count: 5 });
    }

    #[test]
    fn many_addresses_cost_little_memory_and_few_lines() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let lines = (0..100_000_u32).filter(|n| refusals.count(Ipv4Addr::from(*n).into(), "a", now).is_some()).count();
        assert_eq!(lines, MAX_ADDRESSES + 1);
        assert_eq!(refusals.list().len(), MAX_ADDRESSES + 1);
        assert_eq!(refusals.list().iter().map(|refusal| refusal.count).sum::<u64>(), 100_000);
    }
}
