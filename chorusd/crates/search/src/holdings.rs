//! Which messages a source holds, in terms of groups.

use serde::{Deserialize, Serialize};

use crate::source::Source;

/// A run of messages of one group that a source holds at the same numbers. It starts with the first message of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holding {
    pub(crate) group: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Holding {
    pub(crate) fn contains(self, group: u64, number: u64) -> bool {
        self.group == group && (self.first..=self.last).contains(&number)
    }
}

/// A source as it is stored in its document.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredSource {
    pub(crate) source: Source,
    pub(crate) holdings: Vec<Holding>,
}

impl StoredSource {
    /// Returns the number of messages.
    pub(crate) fn messages(&self) -> u64 {
        self.holdings.last().map_or(0, |holding| holding.last)
    }

    /// Returns up to which number it holds a group; 0 if it does not.
    pub(crate) fn last_of(&self, group: u64) -> u64 {
        self.holdings.iter().filter(|holding| holding.group == group).map(|holding| holding.last).max().unwrap_or(0)
    }
}
