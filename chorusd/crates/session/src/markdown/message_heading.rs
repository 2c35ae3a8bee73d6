//! The simple form with a heading for each message: `## User`, or `## Assistant (sally) · 2026-03-02T14:58:03.117Z`.

use chorus_proto::Role;
use jiff::Timestamp;

const ROLES: [(&str, Role); 4] =
    [("System", Role::System), ("User", Role::User), ("Assistant", Role::Assistant), ("Tool result", Role::ToolResult)];

/// The heading of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heading {
    pub role: Role,
    pub at: Option<Timestamp>,
}

impl Heading {
    /// Parses a heading line.
    #[must_use]
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("## ")?.trim_end();
        let (who, at) = match rest.rsplit_once(" · ") {
            Some((who, at)) => (who, Some(at.parse().ok()?)),
            None => (rest, None),
        };
        let (name, role) = ROLES.into_iter().find(|(name, _)| who.starts_with(name))?;
        let whose = &who[name.len()..];
        (whose.is_empty() || whose.starts_with(" (") && whose.ends_with(')')).then_some(Self { role, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_read() {
        let at = "2026-03-02T14:58:03.117Z".parse().ok();
        for (line, role) in [
            ("## User · 2026-03-02T14:58:03.117Z", Role::User),
            ("## User (mara · b) · 2026-03-02T14:58:03.117Z", Role::User),
            ("## Tool result (view) · 2026-03-02T14:58:03.117Z", Role::ToolResult),
        ] {
            assert_eq!(Heading::parse(line), Some(Heading { role, at }), "{line}");
        }
        assert_eq!(Heading::parse("## Assistant").map(|heading| heading.at), Some(None));
        for line in ["# User", "## Users", "## User · noon", "## Userland · 2026-03-02T14:58:03Z", "text"] {
            assert_eq!(Heading::parse(line), None, "{line}");
        }
    }
}
