//! `events.*`: stored and new events.

use serde::{Deserialize, Serialize};

use super::method;
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

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListParams {
    /// Only those with a higher number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// At most so many; 1,000 unless given, at most 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListResult {
    pub events: Vec<Event>,
    /// Events after `after` that are no longer kept.
    pub lagged: u64,
    /// Give it as `after` for the next ones; null at the end.
    pub next: Option<u64>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscribeParams {
    /// First those with a higher number; left out, only what happens from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscribeResult {
    /// Number of the newest event.
    pub seq: u64,
}
