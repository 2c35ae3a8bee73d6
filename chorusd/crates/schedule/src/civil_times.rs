//! Times of day around transitions of a time zone.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// Longer than any transition that a zone has had: one has left out a whole day.
const MAX_TRANSITION_HOURS: i64 = 26;

/// Returns a time of day before all those that may stand for a time after `after`: the local time, or an earlier one if there was a
/// transition shortly before, because times that it left out are made up for.
pub(crate) fn search_start(after: Timestamp, zone: &TimeZone) -> Option<DateTime> {
    let earlier = after.checked_sub(MAX_TRANSITION_HOURS.hours()).ok()?;
    let has_transition = zone.preceding(after).next().is_some_and(|change| change.timestamp() > earlier)
        || zone.to_offset(earlier) != zone.to_offset(after);
    let start = if has_transition { earlier } else { after };
    Some(zone.to_datetime(start))
}
