//! The current section. In a section without comments, speaker labels separate the messages.

use chorus_proto::Role;
use jiff::Timestamp;

use crate::markdown::{Section, parse_speaker_label};

/// The section that is being read.
#[derive(Debug)]
pub(super) struct OpenSection {
    pub section: Section,
    pub at: Option<Timestamp>,
    /// Its messages have comments, so a name at the start of a line is part of the text.
    pub commented: bool,
    /// Its messages have records in the block of data.
    pub recorded: bool,
    /// Number of the line that says which session the conversation continues.
    pub resumed_from: Option<u64>,
}

/// The speakers in sections without comments.
#[derive(Debug, Default)]
pub(super) struct SpeakerNames {
    /// The agent's name, from the header or inferred.
    pub agent: Option<String>,
    /// The program that the header says some messages were imported from. An export writes its name before its replies.
    pub imported_from: Option<String>,
    /// `You` has written a message.
    has_user: bool,
    /// The agent has answered with its name.
    has_agent: bool,
}

impl SpeakerNames {
    /// Returns whether both names are known. Any other name at the start of a line is then part of the text.
    fn are_complete(&self) -> bool {
        self.has_user && self.has_agent
    }
}

/// The kind of a line in a section without comments.
pub(super) enum SectionLine<'a> {
    /// The first line of a message, with the role and the text after the label.
    Message(Role, &'a str),
    /// A line about the section itself.
    Metadata,
    Text,
}

impl OpenSection {
    /// Returns whether the line, before any message, says which session the conversation continues.
    pub(super) fn is_resumed_from(&mut self, line: &str, number: u64) -> bool {
        if self.section != Section::Restored {
            return false;
        }
        if self.resumed_from.is_none() && line.starts_with("**Context:** Resumed from ") {
            self.resumed_from = Some(number);
            return true;
        }
        self.resumed_from == Some(number - 1) && line.starts_with("**Previous Session:** ")
    }

    /// Classifies `line`. Infers the agent's name if neither the header nor an earlier line contains it. `before` is
    /// the role of the last message in the section.
    pub(super) fn classify_line<'a>(
        &self,
        line: &'a str,
        names: &mut SpeakerNames,
        before: Option<Role>,
    ) -> SectionLine<'a> {
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
            name if names.imported_from.as_deref() == Some(name) && names.agent.as_deref() != Some(name) => {
                return SectionLine::Message(Role::Assistant, text);
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

/// Returns the name of the tool in the label of a result.
pub(super) fn tool_result_name(line: &str) -> Option<&str> {
    parse_speaker_label(line)?.0.strip_prefix("Tool result (")?.strip_suffix(')')
}

/// Guesses the role of a message by its label.
pub(super) fn label_role(line: &str, agent: Option<&str>) -> Role {
    match parse_speaker_label(line).map(|(name, _)| name) {
        Some(name) if Some(name) == agent => Role::Assistant,
        Some("System") => Role::System,
        Some(name) if name.starts_with("Tool result") => Role::ToolResult,
        Some("You" | "User") | None => Role::User,
        Some(_) => Role::Assistant,
    }
}
