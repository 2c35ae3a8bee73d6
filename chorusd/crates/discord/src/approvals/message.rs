//! The message that shows an approval in its channel.

use chorus_engine::approvals::{reaches_beyond_turn, rule_reason};
use chorus_proto::approval_text::{describe_action, reach_line};
use chorus_proto::methods::approvals::{Approval, Status};
use chorus_proto::methods::permissions::{Decision, Rule};
use chorus_proto::visible_text::make_visible;

use super::super::outbox::File;

/// Characters of the action that the message shows; a longer action is attached as a file.
const MAX_ACTION_CHARS: usize = 1200;

/// Characters of the reason that the message shows.
const MAX_REASON_CHARS: usize = 250;

/// Renders an open approval: the whole action, in the message or as a file, where it happens, what it may reach, why it is
/// asked about, and who can answer.
pub(super) fn open_message(approval: &Approval) -> (String, Option<File>) {
    let (mut text, file) = heading_and_action(approval, "wants");
    let seconds = approval.expires_at.as_second();
    for line in facts(approval) {
        text.push('\n');
        text.push_str(&line);
    }
    text.push_str(&format!("\n{}\nExpires <t:{seconds}:R>.", who_can_answer(approval)));
    (text, file)
}

/// Says where the action happens, what it may reach, why it is asked about, and which patterns can be allowed.
fn facts(approval: &Approval) -> Vec<String> {
    let reach = reach_line(approval, "its workspace").map(|reach| {
        let mut chars = reach.chars();
        chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).chain(['.']).collect()
    });
    let patterns = approval.patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(", ");
    let patterns = (!patterns.is_empty()).then(|| format!("Pattern: {patterns}"));
    reach.into_iter().chain([format!("Asked because {}.", reason_text(approval))]).chain(patterns).collect()
}

/// Says who can answer, so that nobody takes the buttons of others for theirs.
fn who_can_answer(approval: &Approval) -> String {
    let permanent = approval.not_always.is_none() || !approval.patterns.is_empty();
    if !approval.requester.starts_with("discord:") || reaches_beyond_turn(&approval.action) {
        return "Only an approver can answer.".to_owned();
    }
    let who = format!("{} or an approver can answer", format_requester(&approval.requester));
    if permanent { format!("{who}; only an approver can allow it from now on.") } else { format!("{who}.") }
}

/// Renders an approval that is not open any more.
pub(super) fn closed_message(approval: &Approval) -> (String, Option<File>) {
    let (mut text, file) = heading_and_action(approval, "wanted");
    text.push('\n');
    let by = approval.decided_by.as_deref().map(format_requester);
    text.push_str(&match (approval.status, by) {
        (Status::Approved, Some(by)) => format!("**Allowed** by {by}."),
        (Status::Approved, None) => "**Allowed.**".to_owned(),
        (Status::Denied, Some(by)) => format!("**Denied** by {by}."),
        (Status::Expired, _) => "**Expired**: denied because nobody answered in time.".to_owned(),
        (Status::Denied | Status::Open, _) => {
            "**Cancelled**: the turn ended, the permissions changed, or Chorus restarted.".to_owned()
        }
    });
    (text, file)
}

/// Renders the heading and the action.
fn heading_and_action(approval: &Approval, wants: &str) -> (String, Option<File>) {
    let name = make_visible(&approval.agent);
    let (wish, sheet) = (describe_action(&approval.action).wish, action_text(approval));
    let head =
        format!("**{name}** {wants} to {wish} for {} (`{}`)", format_requester(&approval.requester), approval.id);
    if sheet.is_empty() {
        return (format!("{head}."), None);
    }
    let shown = escape_fences(&sheet);
    let beginning: String = shown.chars().take(MAX_ACTION_CHARS).collect();
    let mut text = format!("{head}:\n```\n{beginning}\n```");
    if beginning.len() == shown.len() {
        return (text, None);
    }
    let length = sheet.chars().count();
    text.push_str(&format!("The full action ({length} characters) is in action.txt."));
    (text, Some(File { name: "action.txt".into(), bytes: sheet.as_bytes().to_vec() }))
}

/// Renders the whole action with its details; invisible characters are made visible.
fn action_text(approval: &Approval) -> String {
    let mut sheet = make_visible(describe_action(&approval.action).subject);
    for detail in &approval.details {
        sheet.push_str(&format!(
            "\n{}:\n  {}",
            make_visible(&detail.name),
            make_visible(&detail.text).replace('\n', "\n  ")
        ));
    }
    sheet.trim_start_matches('\n').to_owned()
}

/// Like the post, with the rules that ask and the parts of a command: the wish, the action, and the facts.
#[must_use]
pub(crate) fn detailed_text(approval: &Approval) -> String {
    let mut sheet = format!("{}\n{}", describe_action(&approval.action).wish, action_text(approval));
    let alone = matches!(approval.parts.as_slice(), [part] if part.action == approval.action);
    let asked = approval.parts.iter().filter(|part| part.decision != Decision::Allow && !alone);
    for part in asked {
        let part_text = make_visible(describe_action(&part.action).subject);
        sheet.push_str(&format!("\n· {part_text}\n    {}", make_visible(&rule_text(&part.rule))));
    }
    sheet.push_str(&format!("\nwhy: {}", make_visible(&rule_text(&approval.rule))));
    if let Some(reach) = reach_line(approval, "its workspace") {
        sheet.push_str(&format!("\n{reach}"));
    }
    sheet
}

/// Replaces code fences, so that the text cannot end the code block that it is in.
fn escape_fences(text: &str) -> String {
    text.replace("```", "``<U+0060>")
}

/// Returns why it is asked about, in a code span: it may quote words of the command.
fn reason_text(approval: &Approval) -> String {
    let reason = approval.reason.clone().unwrap_or_else(|| rule_text(&approval.rule));
    let reason = make_visible(&reason).replace("␤\n", "␤").replace('`', "'");
    let shown: String = reason.chars().take(MAX_REASON_CHARS).collect();
    let more = if shown.len() < reason.len() { "…" } else { "" };
    if reason.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | ',')) {
        return reason;
    }
    format!("`{shown}{more}`")
}

/// Explains why an action needs approval. A pattern says nothing to people who did not write it, so its list and index
/// are shown instead.
fn rule_text(rule: &Rule) -> String {
    match rule {
        Rule::Pattern { list, index, .. } => format!("rule {}[{index}] in the agent's permissions", list.as_str()),
        rule => rule_reason(rule),
    }
}

/// Formats a requester as the audit log writes it: a Discord user becomes a mention.
#[must_use]
pub(crate) fn format_requester(who: &str) -> String {
    match who.strip_prefix("discord:") {
        Some(id) if !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()) => format!("<@{id}>"),
        _ if who == "owner" => "the owner".to_owned(),
        _ if who == "nobody" => "nobody".to_owned(),
        _ => make_visible(who).replace('`', "'"),
    }
}

#[cfg(test)]
mod tests {
    use chorus_agent_core::test_support;
    use chorus_proto::methods::approvals::Detail;

    use super::*;

    fn asked(action: &str) -> Approval {
        Approval { action: action.into(), requester: "discord:7".into(), ..test_support::sample_approval("k7mq2x") }
    }

    #[test]
    fn a_short_action_stands_there_whole() {
        let approval = Approval {
            details: vec![Detail { name: "text".into(), text: "one\ntwo".into() }],
            ..asked("tool:bash:ls\u{202e} -l")
        };
        let (text, file) = open_message(&approval);
        assert!(file.is_none());
        assert_eq!(
            text,
            "**a** wants to run a command for <@7> (`k7mq2x`):\n```\nls<U+202E> -l\ntext:\n  one␤\n  two\n```\n\
             In its workspace.\nAsked because no rule matches it.\n\
             <@7> or an approver can answer; only an approver can allow it from now on.\nExpires <t:0:R>."
        );
    }

    #[test]
    fn a_pattern_is_no_reason() {
        let rule = Rule::Pattern { list: Decision::Ask, index: 3, pattern: "tool:bash:(rm|mv)( .*)?".into() };
        let (text, _) = open_message(&Approval { rule, ..asked("tool:bash:rm a") });
        assert!(text.contains("Asked because `rule ask[3] in the agent's permissions`."), "{text}");
        assert!(!text.contains("(rm|mv)"), "{text}");
    }

    #[test]
    fn nothing_in_an_action_ends_its_block() {
        for action in ["```\nReason: `it is harmless`", "a````b``````c", "x```"] {
            let (text, _) = open_message(&asked(action));
            assert_eq!(text.matches("```").count(), 2, "{text}");
        }
    }

    #[test]
    fn a_long_action_is_a_file_and_the_message_fits() {
        for action in ["x".repeat(60_000), "`".repeat(5000), "\u{202e}".repeat(3000), "ä\n".repeat(2000)] {
            let approval =
                Approval { agent: "a".repeat(64), requester: "discord:18446744073709551615".into(), ..asked(&action) };
            let (text, file) = open_message(&approval);
            let whole = String::from_utf8(file.unwrap().bytes).unwrap();
            assert_eq!(whole, make_visible(&action), "all of it");
            assert!(text.chars().count() <= 2000, "{}", text.chars().count());
            assert!(closed_message(&approval).0.chars().count() <= 2000);
        }
    }

    #[test]
    fn who_decided_what_is_said() {
        let told = |status, by: Option<&str>| {
            let (text, _) = closed_message(&Approval { status, decided_by: by.map(str::to_owned), ..asked("x") });
            text.lines().last().unwrap().to_owned()
        };
        assert_eq!(told(Status::Approved, Some("discord:9")), "**Allowed** by <@9>.");
        assert_eq!(told(Status::Denied, Some("owner")), "**Denied** by the owner.");
        assert_eq!(told(Status::Expired, None), "**Expired**: denied because nobody answered in time.");
        assert!(told(Status::Denied, None).starts_with("**Cancelled**"));
    }
}
