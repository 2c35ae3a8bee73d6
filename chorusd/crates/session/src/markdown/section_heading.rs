//! Section headings: one for each query, and one for the messages before the first query.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

/// The kind of section that a heading opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// A user's message and everything up to the next one. The number counts from 1.
    Query(u64),
    /// The start of a context that continues another session.
    Restored,
    /// Messages before the first query.
    Opening,
}

impl Section {
    /// Formats the heading, for example `## Query 3 (14:58:03)`, with the time in UTC.
    #[must_use]
    pub(crate) fn heading(self, at: Timestamp) -> String {
        let time = at.to_zoned(TimeZone::UTC).strftime("%H:%M:%S").to_string();
        match self {
            Self::Query(number) => format!("## Query {number} ({time})"),
            Self::Restored => format!("## Session Restored ({time})"),
            Self::Opening => format!("## Opening ({time})"),
        }
    }

    /// Parses a heading line. Returns the time of day if the line has one.
    #[must_use]
    pub(crate) fn parse(line: &str) -> Option<(Self, Option<Time>)> {
        let rest = line.strip_prefix("## ")?.trim_end();
        let (name, at) = match rest.rsplit_once(" (") {
            Some((name, at)) => (name, Some(at.strip_suffix(')')?.parse().ok()?)),
            None => (rest, None),
        };
        let section = match name {
            "Session Restored" => Self::Restored,
            "Opening" => Self::Opening,
            name => Self::Query(name.strip_prefix("Query ")?.parse().ok()?),
        };
        Some((section, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_read_as_they_are_written() {
        let at: Timestamp = "2026-03-02T14:58:03.117Z".parse().unwrap();
        for section in [Section::Query(12), Section::Restored, Section::Opening] {
            let line = section.heading(at);
            assert_eq!(Section::parse(&line), Some((section, "14:58:03".parse().ok())), "{line}");
        }
        assert_eq!(Section::parse("## Query 1"), Some((Section::Query(1), None)));
        for line in ["## Query", "## Query one", "## Query 1 (noon)", "# Query 1", "## Openings"] {
            assert_eq!(Section::parse(line), None, "{line}");
        }
    }
}
