//! Formats durations.

/// Formats a duration in its largest unit, rounded down.
#[must_use]
pub fn format_rounded(seconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (count, unit) = match seconds {
        ..MINUTE => (seconds, "s"),
        MINUTE..HOUR => (seconds / MINUTE, "min"),
        HOUR..DAY => (seconds / HOUR, "h"),
        DAY.. if seconds < 60 * DAY => (seconds / DAY, if seconds < 2 * DAY { "day" } else { "days" }),
        _ if seconds < 730 * DAY => (seconds / (30 * DAY), "months"),
        _ => (seconds / (365 * DAY), "years"),
    };
    format!("{count} {unit}")
}

/// Formats a duration in its two largest units, for example `3 h 12 min`.
#[must_use]
pub fn format_two_units(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let first = units.iter().position(|(_, size)| seconds >= *size).unwrap_or(units.len() - 1);
    let (name, size) = units[first];
    let mut text = format!("{} {name}", seconds / size);
    if let Some((name, smaller)) = units.get(first + 1) {
        let rest = seconds % size / smaller;
        if rest > 0 {
            text.push_str(&format!(" {rest} {name}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_grow_their_units() {
        let shown = [0, 59, 60, 3_599, 3_600, 86_399, 86_400, 172_800, 5_184_000, 63_072_000].map(format_rounded);
        assert_eq!(shown, ["0 s", "59 s", "1 min", "59 min", "1 h", "23 h", "1 day", "2 days", "2 months", "2 years"]);
    }

    #[test]
    fn uptime_has_two_units() {
        assert_eq!(
            [0, 59, 61, 3_600, 11_520, 90_000].map(format_two_units),
            ["0 s", "59 s", "1 min 1 s", "1 h", "3 h 12 min", "1 d 1 h"]
        );
    }
}
