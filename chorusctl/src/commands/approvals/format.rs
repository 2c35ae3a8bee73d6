//! Formats an approval for the person who decides about it.

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

/// Returns a heading and the lines below it: the whole action, each line behind a bar so that no part of it can pass
/// for text of Chorus, and the rule that asks.
#[must_use]
pub fn format_approval(approval: &Approval, width: Option<usize>, clock: &Clock) -> (String, Vec<String>) {
    let room = width.unwrap_or(DEFAULT_WIDTH).saturating_sub(4).max(16);
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
    let wish = if approval.action.starts_with("tool:bash:") { "wants to run a command" } else { "asks for approval" };
    let head = format!("{}  {agent} {wish}{on_behalf} ({state})", sanitize::one_line(&approval.id));
    let mut below = Vec::new();
    push_quoted(&approval.action, "  │ ", room, &mut below);
    for detail in &approval.details {
        below.push(format!("  {}:", sanitize::one_line(&detail.name)));
        push_quoted(&detail.text, "  │   ", room, &mut below);
    }
    below.push(format!("  rule: {}", format_rule(&approval.rule)));
    let asked: Vec<&Part> = approval.parts.iter().filter(|part| part.decision != Decision::Allow).collect();
    let alone = matches!(approval.parts.as_slice(), [part] if part.action == approval.action);
    for part in asked.iter().filter(|_| !alone).take(MAX_PARTS) {
        push_quoted(&part.action, "  · ", room, &mut below);
        below.push(format!("      {}", format_rule(&part.rule)));
    }
    if let Some(more) = asked.len().checked_sub(MAX_PARTS).filter(|more| *more > 0 && !alone) {
        below.push(format!("  and {more} more parts that need approval"));
    }
    (head, below)
}

/// Tells that `actions` approvals are open, and how to list them.
#[must_use]
pub fn format_waiting(actions: u64) -> String {
    format!("{}: chorusctl approvals", pluralize(actions, "pending approval"))
}

/// Appends untrusted text with `bar` before each line, wrapped to `room` columns.
fn push_quoted(action: &str, bar: &str, room: usize, lines: &mut Vec<String>) {
    for line in make_visible(action).split('\n') {
        lines.extend(text::split_columns(line, room).into_iter().map(|piece| format!("{bar}{piece}")));
    }
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::permissions::Rule;
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn approval(action: &str) -> Approval {
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
            decided_at: None,
            decided_by: None,
        }
    }

    #[test]
    fn all_of_an_action_is_shown_and_nothing_of_it_passes_for_ours() {
        let action = format!("tool:bash:ls\nrule: harmless\x1b[2K\u{202e}{}; rm x", "a ".repeat(500));
        let (_, below) = format_approval(&approval(&action), Some(60), &Clock::now());
        let barred: Vec<&str> = below.iter().filter_map(|line| line.strip_prefix("  │ ")).collect();
        assert_eq!(below.len(), barred.len() + 1, "only the rule is ours");
        assert_eq!(barred.concat(), make_visible(&action).replace('\n', ""));
        assert!(below.iter().all(|line| text::width(line) <= 60), "{below:?}");
        assert_eq!(barred[1].chars().take(5).collect::<String>(), "rule:");
    }
}
