//! Formats an approval for the person who decides about it.

use chorus_proto::approval_text::{describe_action, reach_line};
use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::permissions::{Decision, Rule};
use chorus_proto::visible_text::make_visible;
use serde_json::Value;

use crate::commands::permissions::format_rule;
use crate::ui::time::Clock;
use crate::ui::units::pluralize;
use crate::ui::{sanitize, text};

/// Width for output that is not a terminal.
const DEFAULT_WIDTH: usize = 100;
/// Patterns that match every command.
const EVERY_COMMAND: [&str; 3] = ["tool:bash:.*", "tool:.*", ".*"];
/// Maximum number of parts that are listed; the action itself is always printed whole.
const MAX_PARTS: usize = 20;

/// Returns a heading and the lines below it: what runs, whole, each line behind a bar so that no part of it can pass for
/// text of Chorus; where, what it may reach, and why it is asked about.
#[must_use]
pub fn format_approval(approval: &Approval, width: Option<usize>, clock: &Clock) -> (String, Vec<String>) {
    let room = quoted_room(width);
    let agent = crate::commands::format::who(&approval.agent, approval.conversation.as_deref());
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

/// Says in words which rule asks and of which profile, lists the parts of a command, each with its decision, and says how to
/// change that. `permissions` is the agent's setting, if it is known.
#[must_use]
pub fn format_rules(approval: &Approval, permissions: Option<&Value>, width: Option<usize>) -> Vec<String> {
    let room = quoted_room(width);
    let name = permissions.and_then(Value::as_str).map(sanitize::one_line);
    let profile = name.as_deref().map_or_else(|| "its profile".to_owned(), |name| format!("the profile {name}"));
    let mut lines = Vec::new();
    let push = |indent: usize, line: &str, lines: &mut Vec<String>| {
        let wrapped = text::wrap_sentence(line, (room + 2).saturating_sub(indent));
        lines.extend(wrapped.lines().map(|line| format!("{}{line}", " ".repeat(indent))));
    };
    push(2, &format!("why: {}", explain_rule(&approval.rule, &profile, &approval.action)), &mut lines);
    let is_whole = matches!(approval.parts.as_slice(), [part] if part.action == approval.action);
    if !is_whole && !approval.parts.is_empty() {
        push(2, "parts of the command:", &mut lines);
        for part in approval.parts.iter().take(MAX_PARTS) {
            push_quoted(describe_action(&part.action).subject, "  · ", room, &mut lines);
            let verdict = match part.decision {
                Decision::Allow => "allowed",
                Decision::Ask => "needs approval",
                Decision::Deny => "denied",
            };
            push(6, &format!("{verdict}: {}", explain_rule(&part.rule, &profile, &part.action)), &mut lines);
        }
        if let Some(more) = approval.parts.len().checked_sub(MAX_PARTS).filter(|more| *more > 0) {
            push(2, &format!("and {}", pluralize(more as u64, "more part")), &mut lines);
        }
    }
    if let Some(name) = &name {
        push(2, &format!("see its rules: `chorusctl permissions show {name}`"), &mut lines);
    }
    let agent = sanitize::one_line(&approval.agent);
    push(2, &format!("use another profile: `chorusctl agent config {agent} permissions PROFILE`"), &mut lines);
    lines
}

/// Says in words what a rule does; `profile` is whose pattern it is.
fn explain_rule(rule: &Rule, profile: &str, action: &str) -> String {
    let shown = format_rule(rule);
    match rule {
        Rule::Pattern { list, pattern, .. } => {
            let what = match describe_action(action) {
                text if text.is_command && EVERY_COMMAND.contains(&&**pattern) => "every command",
                text if text.is_command => "this kind of command",
                _ => "this kind of action",
            };
            let verb = match list {
                Decision::Allow => "allows",
                Decision::Ask => "asks before",
                Decision::Deny => "denies",
            };
            format!("{profile} {verb} {what} (rule {shown})")
        }
        Rule::Default => format!("{profile} has no rule for it"),
        Rule::Always { .. } => "it was approved permanently".to_owned(),
        Rule::Agent { number, rule } => format!("rule {number} of the agent: {}", sanitize::one_line(rule)),
        Rule::Shell { reason } => sanitize::one_line(reason),
    }
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
    use chorus_proto::methods::permissions::Part;
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;

    pub fn approval(action: &str) -> Approval {
        Approval {
            id: "k7mq2x".into(),
            agent: "notes".into(),
            conversation: None,
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
    fn an_explanation_names_the_profile_and_every_part_with_its_rule() {
        let rule = Rule::Pattern { list: Decision::Ask, index: 0, pattern: "tool:bash:.*".into() };
        let part = |action: &str, decision, rule: &Rule| Part { action: action.into(), decision, rule: rule.clone() };
        let of_agent = Rule::Agent { number: 1, rule: "cargo test *".into() };
        let asked = Approval {
            rule: rule.clone(),
            parts: vec![
                part("tool:bash:cargo test", Decision::Allow, &of_agent),
                part("tool:bash:git status", Decision::Ask, &rule),
            ],
            ..approval("tool:bash:cargo test && git status")
        };
        assert_eq!(
            format_rules(&asked, Some(&"standard".into()), Some(80)),
            [
                "  why: the profile standard asks before every command (rule ask[0]",
                "  tool:bash:.*)",
                "  parts of the command:",
                "  · cargo test",
                "      allowed: rule 1 of the agent: cargo test *",
                "  · git status",
                "      needs approval: the profile standard asks before every command (rule",
                "      ask[0] tool:bash:.*)",
                "  see its rules: `chorusctl permissions show standard`",
                "  use another profile: `chorusctl agent config notes permissions PROFILE`",
            ]
        );
        let plain = approval("tool:list_models:");
        let lines = format_rules(&plain, None, None);
        assert_eq!(lines[0], "  why: its profile has no rule for it");
        assert_eq!(lines.len(), 2, "{lines:?}");
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
