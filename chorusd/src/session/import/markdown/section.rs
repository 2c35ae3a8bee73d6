//! The section that is being read, and the time it begins.

use chorus_proto::Role;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use crate::session::markdown::{Section, parse_speaker_label};

/// A section without comments tells its messages apart by who speaks.
#[derive(Debug)]
pub(super) struct OpenSection {
    pub section: Section,
    pub at: Option<Timestamp>,
    /// Its messages have comments: a name at the start of a line is a part of what is said.
    pub commented: bool,
}

/// Who speaks in sections without comments.
#[derive(Debug, Default)]
pub(super) struct SpeakerNames {
    /// Who answers, as the head says or as it was found out.
    pub agent: Option<String>,
    /// `You` asked something.
    has_user: bool,
    /// The agent answered by its name.
    has_agent: bool,
}

impl SpeakerNames {
    /// Whether the names are known: any other at the start of a line is a part of what is said.
    fn are_complete(&self) -> bool {
        self.has_user && self.has_agent
    }
}

/// What a line is in a section without comments.
pub(super) enum SectionLine<'a> {
    /// A message begins.
    Message(Role, &'a str),
    /// A line about the section itself.
    Metadata,
    Text,
}

impl OpenSection {
    /// What `line` is; the name of who answers is found out where nothing has told it. `before`: who speaks so far.
    pub fn classify_line<'a>(&self, line: &'a str, names: &mut SpeakerNames, before: Option<Role>) -> SectionLine<'a> {
        let Some((name, text)) = parse_speaker_label(line) else {
            let fresh = before.is_none() && !line.trim().is_empty() && matches!(self.section, Section::Query(_));
            return if fresh && line.trim() != "---" {
                SectionLine::Message(Role::User, line)
            } else {
                SectionLine::Text
            };
        };
        match name {
            "You" => {
                names.has_user = true;
                return SectionLine::Message(Role::User, text);
            }
            "User" if !names.are_complete() => return SectionLine::Message(Role::User, text),
            "System" if !names.are_complete() => return SectionLine::Message(Role::System, text),
            "Assistant" | "Agent" if !names.are_complete() => {
                names.has_agent |= names.agent.get_or_insert_with(|| name.to_owned()) == name;
                return SectionLine::Message(Role::Assistant, text);
            }
            "Context" | "Previous Session" | "Resumed From" if before.is_none() => return SectionLine::Metadata,
            name if name == "Tool result" || name.starts_with("Tool result (") => {
                return SectionLine::Message(Role::ToolResult, text);
            }
            _ => {}
        }
        let answers = match (&names.agent, self.section) {
            (Some(agent), _) => agent == name,
            (None, Section::Query(_)) => before == Some(Role::User),
            (None, _) => before.is_none(),
        };
        if !answers {
            return if before.is_none() { SectionLine::Message(Role::User, line) } else { SectionLine::Text };
        }
        names.agent.get_or_insert_with(|| name.to_owned());
        names.has_agent = true;
        SectionLine::Message(Role::Assistant, text)
    }
}

/// The instant of a time of day: of the day of `after`, or of the next where it was past that already.
pub(super) fn next_time_of_day(time: Time, after: Timestamp) -> Option<Timestamp> {
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
        let at = |after: &str, time: &str| next_time_of_day(time.parse().unwrap(), after.parse().unwrap());
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
