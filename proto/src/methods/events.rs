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
    /// Only events with a higher number.
    pub after: Option<u64>,
    /// Maximum number of events, by default 1,000, at most 10,000.
    pub limit: Option<u64>,
}

#[wire(PartialEq)]
pub struct ListResult {
    pub events: Vec<Event>,
    /// Number of events after `after` that are no longer kept.
    pub lagged: u64,
    /// The `after` of the next page; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct SubscribeParams {
    /// Start with events after this number; if missing, only new events.
    pub after: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct SubscribeResult {
    /// Number of the newest event.
    pub seq: u64,
}
