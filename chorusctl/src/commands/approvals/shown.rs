//! What is asked, as a person reads it before they answer.

use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::permissions::{Decision, Part};
use chorus_proto::visible::visible;

use crate::commands::permissions::rule;
use crate::ui::time::Clock;
use crate::ui::words::count;
use crate::ui::{safe, text};

/// Where nobody says how wide it is.
const WIDTH: usize = 100;
/// Parts that are shown by themselves; the action itself has them all.
const PARTS: usize = 20;

/// A heading, and the lines below it: the whole action behind a bar, so that nothing in it passes for a line of ours, and why it
/// is asked about.
#[must_use]
pub fn lines(approval: &Approval, width: Option<usize>, clock: &Clock) -> (String, Vec<String>) {
    let room = width.unwrap_or(WIDTH).saturating_sub(4).max(16);
    let agent = safe::one_line(&approval.agent);
    let state = match approval.status {
        Status::Open => format!("{} left to answer", clock.until(approval.expires_at)),
        decided => {
            let by = approval.decided_by.as_deref().map(|by| format!(" by {}", safe::one_line(by))).unwrap_or_default();
            format!("{}{by}", decided.as_str())
        }
    };
    let on_behalf = match &*approval.requester {
        "owner" => String::new(),
        other => format!(" for {}", safe::one_line(other)),
    };
    let head = format!("{}  {agent} asks{on_behalf}; {state}", safe::one_line(&approval.id));
    let mut below = Vec::new();
    barred(&approval.action, "  │ ", room, &mut below);
    for detail in &approval.details {
        below.push(format!("  {}:", safe::one_line(&detail.name)));
        barred(&detail.text, "  │   ", room, &mut below);
    }
    below.push(format!("  because: {}", rule(&approval.rule)));
    let asked: Vec<&Part> = approval.parts.iter().filter(|part| part.decision != Decision::Allow).collect();
    let alone = matches!(approval.parts.as_slice(), [part] if part.action == approval.action);
    for part in asked.iter().filter(|_| !alone).take(PARTS) {
        barred(&part.action, "  · ", room, &mut below);
        below.push(format!("      {}", rule(&part.rule)));
    }
    if let Some(more) = asked.len().checked_sub(PARTS).filter(|more| *more > 0 && !alone) {
        below.push(format!("  and {more} more parts of it are asked about"));
    }
    (head, below)
}

/// That so many wait, and how to see them.
#[must_use]
pub fn waiting(actions: u64) -> String {
    let waits = if actions == 1 { "waits" } else { "wait" };
    format!("{} {waits} for an answer: chorusctl approvals", count(actions, "action"))
}

/// A text of others, whole, each line of it and each piece of a line behind `bar`.
fn barred(action: &str, bar: &str, room: usize, lines: &mut Vec<String>) {
    for line in visible(action).split('\n') {
        lines.extend(text::pieces(line, room).into_iter().map(|piece| format!("{bar}{piece}")));
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
        let action = format!("tool:bash:ls\nbecause: harmless\x1b[2K\u{202e}{}; rm x", "a ".repeat(500));
        let (_, below) = lines(&approval(&action), Some(60), &Clock::now());
        let barred: Vec<&str> = below.iter().filter_map(|line| line.strip_prefix("  │ ")).collect();
        assert_eq!(below.len(), barred.len() + 1, "only the reason is ours");
        assert_eq!(barred.concat(), visible(&action).replace('\n', ""));
        assert!(below.iter().all(|line| text::width(line) <= 60), "{below:?}");
        assert_eq!(barred[1].chars().take(8).collect::<String>(), "because:");
    }
}
