//! Discord's ids (snowflakes): their upper bits are a time, so they grow.

use jiff::Timestamp;

/// The first second of 2015, in milliseconds since 1970.
const DISCORD_EPOCH_MS: i64 = 1_420_070_400_000;

/// Generates ids.
#[derive(Debug, Default)]
pub struct Snowflakes {
    last: u64,
}

impl Snowflakes {
    /// Returns an id that is larger than all before it.
    pub fn next(&mut self) -> u64 {
        self.last = from_time(Timestamp::now()).max(self.last + 1);
        self.last
    }
}

/// Returns the smallest id of a time.
#[must_use]
pub fn from_time(time: Timestamp) -> u64 {
    u64::try_from(time.as_millisecond() - DISCORD_EPOCH_MS).unwrap_or_default() << 22
}
