//! Formats an approval for the person who decides about it.

use chorus_proto::approval_text::{describe_action, reach_line};
use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::permissions::{Decision, Part};
use chorus_proto::visible_text::make_visible;

use crate::commands::permissions::format_rule;
use crate::ui::time::Clock;
use crate::ui::units::pluralize;
use crate::ui::{sanitize, text};

/// Width for output that is not a terminal.
const DEFAULT_WIDTH: usize = 100;
/// Maximum number of parts that are listed; the action itself is always printed whole.
const MAX_PARTS: usize = 20;

/// Returns a heading and the lines below it: what runs, whole, each line behind a bar so that no part of it can pass for
/// text of Chorus; where, what it may reach, and why it is asked about.
#[must_use]
pub fn format_approval(approval: &Approval, width: Option<usize>, clock: &Clock) -> (String, Vec<String>) {
    let room = quoted_room(width);
    let agent = sanitize::one_line(&approval.agent);
    let state = match approval.status {
        Status::Open => format!("expires in {}", clock.until(approval.expires_at)),
        decided => {
            let by =
                approval.decided_by.as_deref().map(|by| format!(" by {}", sanitize::one_line(by))).unwrap_or_default();
            format!("{}{by}", decided.as_str())
        }
    };
    let on_behalf = match &*approval.requester {
        "owner" => String::new(),
        other => format!(" for {}", sanitize::one_line(other)),
    };
    let text = describe_action(&approval.action);
    let head = format!("{}  {agent} wants to {}{on_behalf} ({state})", sanitize::one_line(&approval.id), text.wish);
    let mut below = Vec::new();
    if !text.subject.is_empty() {
        push_quoted(text.subject, "  │ ", room, &mut below);
    }
    for detail in &approval.details {
        below.push(format!("  {}:", sanitize::one_line(&detail.name)));
        push_quoted(&detail.text, "  │   ", room, &mut below);
    }
    let directory = approval.directory.as_deref().map(sanitize::one_line);
    let reach = directory.and_then(|directory| reach_line(approval, &directory));
    let reason = approval.reason.as_deref().map(|reason| format!("asked because {}", sanitize::one_line(reason)));
    for line in reach.into_iter().chain(reason) {
        below.extend(text::wrap(&line, room).into_iter().map(|line| format!("  {line}")));
    }
    (head, below)
}

/// Returns the rule that asks, and the parts of a command that need approval, each with its rule.
#[must_use]
pub fn format_rules(approval: &Approval, width: Option<usize>) -> Vec<String> {
    let room = quoted_room(width);
    let mut lines = vec![format!("  rule: {}", format_rule(&approval.rule))];
    let asked: Vec<&Part> = approval.parts.iter().filter(|part| part.decision != Decision::Allow).collect();
    if matches!(approval.parts.as_slice(), [part] if part.action == approval.action) {
        return lines;
    }
    for part in asked.iter().take(MAX_PARTS) {
        push_quoted(describe_action(&part.action).subject, "  · ", room, &mut lines);
        lines.push(format!("      {}", format_rule(&part.rule)));
    }
    if let Some(more) = asked.len().checked_sub(MAX_PARTS).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more parts that need approval"));
    }
    lines
}

/// Returns the patterns of an approval as one text: `cargo test *, git status *`.
#[must_use]
pub fn format_patterns(approval: &Approval) -> String {
    approval.patterns.iter().map(|pattern| sanitize::one_line(pattern)).collect::<Vec<_>>().join(", ")
}

fn quoted_room(width: Option<usize>) -> usize {
    width.unwrap_or(DEFAULT_WIDTH).saturating_sub(4).max(16)
}

/// Tells that `actions` approvals are open, and how to list them.
#[must_use]
pub fn format_waiting(actions: u64) -> String {
    format!("{}: chorusctl approvals", pluralize(actions, "pending approval"))
}

/// Appends untrusted text with `bar` before each line, wrapped to `room` columns.
fn push_quoted(action: &str, bar: &str, room: usize, lines: &mut Vec<String>) {
    // `room` is beside a bar of four columns.
    let room = (room + 4).saturating_sub(text::width(bar));
    for line in make_visible(action).split('\n') {
        lines.extend(text::split_columns(line, room).into_iter().map(|piece| format!("{bar}{piece}")));
    }
}

#[cfg(test)]
pub mod tests {
    use chorus_proto::methods::permissions::Rule;
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;

    pub fn approval(action: &str) -> Approval {
        Approval {
            id: "k7mq2x".into(),
            agent: "notes".into(),
            turn_id: Uuid::nil(),
            call_id: "c".into(),
            action: action.into(),
            details: Vec::new(),
            hash: String::new(),
            rule: Rule::Default,
            parts: Vec::new(),
            requester: "owner".into(),
            asked_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH,
            status: Status::Open,
            not_always: None,
            patterns: Vec::new(),
            turn_allowed: false,
            reason: None,
            directory: None,
            reach: None,
            decided_at: None,
            decided_by: None,
        }
    }

    #[test]
    fn all_of_an_action_is_shown_and_nothing_of_it_passes_for_ours() {
        let command = format!("ls\nasked because of nothing\x1b[2K\u{202e}{}; rm x", "a ".repeat(500));
        let action = format!("tool:bash:{command}");
        let (_, below) = format_approval(&approval(&action), Some(60), &Clock::now());
        let barred: Vec<&str> = below.iter().filter_map(|line| line.strip_prefix("  │ ")).collect();
        assert_eq!(below.len(), barred.len(), "nothing else is there");
        assert_eq!(barred.concat(), make_visible(&command).replace('\n', ""));
        assert!(below.iter().all(|line| text::width(line) <= 60), "{below:?}");
        assert_eq!(barred[1].chars().take(5).collect::<String>(), "asked");
    }
}
