//! Turns what is said in a conversation that a chat is attached to into lines above the prompt.

use chorus_proto::Role;
use chorus_proto::methods::send::TurnEvent;

use super::start;
use crate::commands::approvals;
use crate::commands::send::tool_lines;
use crate::ui::sanitize;
use crate::ui::time::Clock;

/// The lines of a conversation, as far as they are complete.
#[derive(Debug)]
pub(super) struct AttachedLines {
    agent: String,
    width: usize,
    /// The last line of the reply, which has no end yet.
    open: String,
    /// A line of the running turn was shown, so that the next one needs no name.
    is_named: bool,
}

impl AttachedLines {
    pub(super) fn new(agent: &str, width: usize) -> Self {
        Self { agent: sanitize::one_line(agent), width, open: String::new(), is_named: false }
    }

    /// Adds an event. Returns the lines that are complete with it.
    pub(super) fn push(&mut self, event: &TurnEvent) -> Vec<String> {
        match event {
            TurnEvent::Text(text) => {
                self.open.push_str(text);
                match self.open.rfind('\n') {
                    Some(end) => {
                        let rest = self.open.split_off(end + 1);
                        let whole = std::mem::replace(&mut self.open, rest);
                        self.name_lines(whole.trim_end_matches('\n'))
                    }
                    None => Vec::new(),
                }
            }
            TurnEvent::Tool { name, gist, .. } => {
                let mut lines = self.end_line();
                lines.push(format!("  {}", tool_lines::call_line(name, gist.as_deref(), self.width.saturating_sub(2))));
                lines
            }
            TurnEvent::Ask { approval } => {
                let mut lines = self.end_line();
                let (head, below) = approvals::format::format_approval(approval, Some(self.width), &Clock::now());
                lines.push(head);
                lines.extend(below);
                let id = sanitize::one_line(&approval.id);
                lines.push(format!("answer: /approvals approve {id}, or: /approvals deny {id}"));
                lines
            }
            TurnEvent::Note(text) => vec![format!("  {}", sanitize::one_line(text))],
            TurnEvent::Message { role, text, author, .. } => match describe_message(*role, text, author.as_deref()) {
                Some((who, text)) => start::text_lines(&who, &text, self.width),
                None => Vec::new(),
            },
            TurnEvent::Started { .. } => {
                self.is_named = false;
                Vec::new()
            }
            TurnEvent::Ended { reason, .. } => {
                let mut lines = self.end_line();
                lines.extend(reason.as_deref().map(describe_reason));
                self.is_named = false;
                lines
            }
            _ => Vec::new(),
        }
    }

    fn end_line(&mut self) -> Vec<String> {
        let open = std::mem::take(&mut self.open);
        if open.is_empty() { Vec::new() } else { self.name_lines(&open) }
    }

    /// Puts the agent's name before the first line of a turn.
    fn name_lines(&mut self, text: &str) -> Vec<String> {
        let named = std::mem::replace(&mut self.is_named, true);
        let lead = if named { String::new() } else { format!("{}: ", self.agent) };
        format!("{lead}{text}").lines().map(|line| format!("  {line}")).collect()
    }
}

/// Returns who wrote a message and its text; `None` for what tools return.
pub(super) fn describe_message(role: Role, text: &str, author: Option<&str>) -> Option<(String, String)> {
    let who = match role {
        Role::ToolResult => return None,
        role => author.map_or_else(|| role.as_str().to_owned(), sanitize::one_line),
    };
    Some((who, text.to_owned()))
}

/// Says why a turn ended without a complete reply.
pub(super) fn describe_reason(reason: &str) -> String {
    format!("turn ended without a reply: {}", sanitize::one_line(reason))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_line_is_shown_once_it_is_complete() {
        let mut lines = AttachedLines::new("api", 80);
        let mut push = |event: TurnEvent| lines.push(&event).join("|");
        let text = |text: &str| TurnEvent::Text(text.into());
        assert_eq!(push(TurnEvent::Started { turn_id: Uuid::nil() }), "");
        assert_eq!(push(text("The loader ")), "");
        assert_eq!(push(text("skips them.\nSo")), "  api: The loader skips them.");
        let call = TurnEvent::Tool { id: "c".into(), name: "bash".into(), gist: Some("cargo test".into()) };
        assert_eq!(push(call), "  So|  → bash  cargo test");
        assert_eq!(push(text("Done.")), "");
        let message = |role, author: Option<&str>| TurnEvent::Message {
            id: String::new(),
            role,
            text: "and now?".into(),
            author: author.map(Into::into),
        };
        assert_eq!(push(message(Role::User, Some("mara"))), "  mara: and now?");
        assert_eq!(push(message(Role::ToolResult, None)), "");
        let ended = TurnEvent::Ended { turn_id: Uuid::nil(), reason: Some("cancelled".into()) };
        assert_eq!(push(ended), "  Done.|turn ended without a reply: cancelled");
        assert_eq!(push(text("Next.\n")), "  api: Next.");
    }
}
