//! Times as databases store them.

use jiff::Timestamp;

/// Nanoseconds since 1970; works until 2262.
#[must_use]
pub fn to_nanos(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// Inverse of [`to_nanos`].
#[must_use]
pub fn from_nanos(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default()
}
