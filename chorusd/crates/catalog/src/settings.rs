//! Settings: named values.

use std::fmt::Debug;

use crate::{AuditDecision, CatalogRead, CatalogWrite};

/// Settings that concern one machine: what is captured there, and the agent that was chosen there.
const NODE_SETTINGS: [&str; 2] = ["capture", "chosen_agent"];

/// Returns true for a setting that concerns one node of a cluster. All nodes share the others.
#[must_use]
pub fn is_node_setting(key: &str) -> bool {
    NODE_SETTINGS.contains(&key)
}

/// The table of settings.
pub trait SettingTable: Debug + Send + Sync {
    /// Returns the value of `key`.
    fn get(&self, key: &'static str) -> CatalogRead<'_, Option<String>>;

    /// Sets `key`, or removes it if `value` is `None`.
    fn set(&self, key: &'static str, value: Option<String>) -> CatalogWrite<()>;

    /// Sets `key` to the `new` value of `row`, or removes it, and appends `row` to the audit log, redacted, in the same
    /// commit.
    fn set_audited(&self, key: &'static str, row: AuditDecision) -> CatalogWrite<()>;
}
