//! The section that is being read, and the time it begins.

use chorus_proto::Role;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::session::markdown::{Section, labelled};

/// A section without comments tells its messages apart by who speaks.
#[derive(Debug)]
pub(super) struct Open {
    pub section: Section,
    pub at: Option<Timestamp>,
    /// Its messages have comments: a name at the start of a line is a part of what is said.
    pub commented: bool,
}

/// Who speaks in sections without comments.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Who answers, as the head says or as it was found out.
    pub agent: Option<String>,
    /// `You` asked something.
    asked: bool,
    /// The agent answered by its name.
    answered: bool,
}

impl Names {
    /// Whether the names are known: any other at the start of a line is a part of what is said.
    fn are_known(&self) -> bool {
        self.asked && self.answered
    }
}

/// What a line is in a section without comments.
pub(super) enum Line<'a> {
    /// A message begins.
    Speaks(Role, &'a str),
    /// A line about the section itself.
    Fact,
    Text,
}

impl Open {
    /// What `line` is; the name of who answers is found out where nothing has told it. `before`: who speaks so far.
    pub fn read<'a>(&self, line: &'a str, names: &mut Names, before: Option<Role>) -> Line<'a> {
        let Some((name, text)) = labelled(line) else {
            let fresh = before.is_none() && !line.trim().is_empty() && matches!(self.section, Section::Query(_));
            return if fresh && line.trim() != "---" { Line::Speaks(Role::User, line) } else { Line::Text };
        };
        match name {
            "You" => {
                names.asked = true;
                return Line::Speaks(Role::User, text);
            }
            "User" if !names.are_known() => return Line::Speaks(Role::User, text),
            "System" if !names.are_known() => return Line::Speaks(Role::System, text),
            "Assistant" | "Agent" if !names.are_known() => {
                names.answered |= names.agent.get_or_insert_with(|| name.to_owned()) == name;
                return Line::Speaks(Role::Assistant, text);
            }
            "Context" | "Previous Session" | "Resumed From" if before.is_none() => return Line::Fact,
            name if name == "Tool result" || name.starts_with("Tool result (") => {
                return Line::Speaks(Role::ToolResult, text);
            }
            _ => {}
        }
        let answers = match (&names.agent, self.section) {
            (Some(agent), _) => agent == name,
            (None, Section::Query(_)) => before == Some(Role::User),
            (None, _) => before.is_none(),
        };
        if !answers {
            return if before.is_none() { Line::Speaks(Role::User, line) } else { Line::Text };
        }
        names.agent.get_or_insert_with(|| name.to_owned());
        names.answered = true;
        Line::Speaks(Role::Assistant, text)
    }
}

/// The instant of a time of day: of the day of `after`, or of the next where it was past that already.
pub(super) fn following(time: Time, after: Timestamp) -> Option<Timestamp> {
    let day = after.to_zoned(TimeZone::UTC).date();
    let at = day.to_datetime(time).to_zoned(TimeZone::UTC).ok()?.timestamp();
    // The heading has no fractions of a second.
    let passed = at.checked_add(1.second()).is_ok_and(|end| end <= after);
    if passed { at.checked_add(24.hours()).ok() } else { Some(at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_of_this_day_or_of_the_next() {
        let at = |after: &str, time: &str| following(time.parse().unwrap(), after.parse().unwrap());
        assert_eq!(at("2025-12-30T23:59:50.5Z", "23:59:50"), "2025-12-30T23:59:50Z".parse().ok());
        assert_eq!(at("2025-12-30T23:59:50Z", "00:00:45"), "2025-12-31T00:00:45Z".parse().ok());
        // The last day there is has no next one; nor has its last second.
        assert_eq!(at("9999-12-30T22:00:00Z", "21:59:59"), None);
        assert_eq!(at("9999-12-30T21:59:59Z", "22:00:00"), "9999-12-30T22:00:00Z".parse().ok());
        for time in ["00:00:00", "22:00:00", "22:00:01", "23:59:59"] {
            at("9999-12-30T22:00:00.9Z", time);
        }
    }
}
