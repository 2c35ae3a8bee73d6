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

/// What a line is in a section without comments.
pub(super) enum Line<'a> {
    /// A message begins.
    Speaks(Role, &'a str),
    /// A line about the section itself.
    Fact,
    Text,
}

impl Open {
    /// What `line` is; `agent` is the name of who answers, which is found out where nothing has told it. `before`: who speaks so far.
    pub fn read<'a>(&self, line: &'a str, agent: &mut Option<String>, before: Option<Role>) -> Line<'a> {
        let Some((name, text)) = labelled(line) else {
            let fresh = before.is_none() && !line.trim().is_empty() && matches!(self.section, Section::Query(_));
            return if fresh && line.trim() != "---" { Line::Speaks(Role::User, line) } else { Line::Text };
        };
        match name {
            "You" | "User" => return Line::Speaks(Role::User, text),
            "System" => return Line::Speaks(Role::System, text),
            "Assistant" | "Agent" => return Line::Speaks(Role::Assistant, text),
            "Context" | "Previous Session" | "Resumed From" if before.is_none() => return Line::Fact,
            name if name == "Tool result" || name.starts_with("Tool result (") => {
                return Line::Speaks(Role::ToolResult, text);
            }
            _ => {}
        }
        let answers = match (&agent, self.section) {
            (Some(agent), _) => agent == name,
            (None, Section::Query(_)) => before == Some(Role::User),
            (None, _) => before.is_none(),
        };
        if !answers {
            return if before.is_none() { Line::Speaks(Role::User, line) } else { Line::Text };
        }
        agent.get_or_insert_with(|| name.to_owned());
        Line::Speaks(Role::Assistant, text)
    }
}

/// The instant of a time of day: of the day of `after`, or of the next where it was past that already.
pub(super) fn following(time: Time, after: Timestamp) -> Option<Timestamp> {
    let day = after.to_zoned(TimeZone::UTC).date();
    let at = day.to_datetime(time).to_zoned(TimeZone::UTC).ok()?.timestamp();
    // The heading has no fractions of a second.
    if at + 1.second() > after { Some(at) } else { at.checked_add(24.hours()).ok() }
}
