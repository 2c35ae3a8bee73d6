//! `events.*`: stored and new events.

use super::{method, wire};
use crate::event::Event;

method!(
    /// Lists stored events, oldest first.
    List = "events.list", ListParams => ListResult
);
method!(
    /// Subscribes to `event` notifications, each with an event as `params`. If events were missed, a `lagged`
    /// notification comes first.
    Subscribe = "events.subscribe", SubscribeParams => SubscribeResult
);

#[wire(params)]
pub struct ListParams {
    /// Only those with a higher number.
    pub after: Option<u64>,
    /// At most so many; 1,000 unless given, at most 10,000.
    pub limit: Option<u64>,
}

#[wire(PartialEq)]
pub struct ListResult {
    pub events: Vec<Event>,
    /// Events after `after` that are no longer kept.
    pub lagged: u64,
    /// Give it as `after` for the next ones; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct SubscribeParams {
    /// First those with a higher number; left out, only what happens from now on.
    pub after: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct SubscribeResult {
    /// Number of the newest event.
    pub seq: u64,
}
