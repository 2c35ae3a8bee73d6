//! Approvals in the channels of agents: posted with buttons, answered by them, and edited when they are decided.

mod message;

use chorus_base::error::{Error, Result};
use chorus_base::requester::{Answerer, Requester};
use chorus_engine::approvals::reaches_beyond_turn;
use chorus_engine::ops::Ops;
use chorus_engine::ops::approvals::{approve, deny, get_approval};
use chorus_engine::ops::discord::NewPost;
use chorus_proto::approval_text::describe_action;
use chorus_proto::methods::approvals::{Approval, ApproveParams, DenyParams, Status};
use chorus_proto::{ErrorKind, Event};

use super::outbox::{Button, MessageBody, Outbox, Post, Style};
use crate::channels::AgentChannels;
use crate::commands::rewrite_message;
use crate::conversations;
pub(crate) use message::{detailed_text, format_requester};

/// Prefix of the outbox keys of approval posts.
const KEY_PREFIX: &str = "approval:";

/// Characters of an approval's hash that its buttons carry.
const HASH_PREFIX_CHARS: usize = 8;

/// The answer that a button gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ApprovalButton {
    Once,
    Turn,
    Action,
    Pattern,
    Deny,
    /// Asks for a reason first.
    DenyBecause,
}

/// Limit on the label of a button, in characters.
const MAX_LABEL_CHARS: usize = 80;

impl ApprovalButton {
    const WORDS: [(Self, &str); 6] = [
        (Self::Once, "approve"),
        (Self::Turn, "turn"),
        (Self::Action, "always"),
        (Self::Pattern, "pattern"),
        (Self::Deny, "deny"),
        (Self::DenyBecause, "because"),
    ];

    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(press, _)| *press == self).map_or("", |(_, word)| word)
    }

    /// Whether the answer is possible for this approval.
    fn is_possible(self, approval: &Approval) -> bool {
        match self {
            Self::Once | Self::Deny | Self::DenyBecause => true,
            Self::Turn => approval.turn_allowed,
            Self::Action => approval.not_always.is_none(),
            Self::Pattern => !approval.patterns.is_empty(),
        }
    }

    /// Whether only approvers may give the answer.
    fn needs_approver(self) -> bool {
        matches!(self, Self::Action | Self::Pattern)
    }

    /// Whether somebody who has not seen all of the action may give the answer.
    fn is_denial(self) -> bool {
        matches!(self, Self::Deny | Self::DenyBecause)
    }

    fn label(self, approval: &Approval) -> String {
        match self {
            Self::Once => "Allow once".to_owned(),
            Self::Turn => "All of this turn".to_owned(),
            Self::Action if describe_action(&approval.action).is_command => "This exact command".to_owned(),
            Self::Action => "This exact action".to_owned(),
            Self::Pattern => {
                let patterns = approval.patterns.join(", ");
                let fits = patterns.chars().count() <= MAX_LABEL_CHARS - APPROVERS_ONLY.len();
                if fits { patterns } else { format!("{} patterns", approval.patterns.len()) }
            }
            Self::Deny => "No".to_owned(),
            Self::DenyBecause => "No, because …".to_owned(),
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Once => Style::Success,
            Self::Deny => Style::Danger,
            _ => Style::Secondary,
        }
    }

    fn custom_id(self, approval: &Approval) -> String {
        let hash: String = approval.hash.chars().take(HASH_PREFIX_CHARS).collect();
        format!("{}:{}:{hash}", self.word(), approval.id)
    }

    /// Parses the custom id of a button: the answer, the approval's id, and the beginning of its hash.
    fn parse(custom_id: &str) -> Option<(Self, &str, &str)> {
        let (word, rest) = custom_id.split_once(':')?;
        let (id, hash) = rest.split_once(':')?;
        let press = Self::WORDS.iter().find(|(_, known)| *known == word)?.0;
        (!id.is_empty() && hash.len() == HASH_PREFIX_CHARS).then_some((press, id, hash))
    }
}

/// Marks a button of a post in a channel that most of its readers may not press.
const APPROVERS_ONLY: &str = " (approvers)";

/// Returns the approval that an event carries.
fn parse_approval(event: &Event) -> Option<Approval> {
    serde_json::from_value(event.data.clone()).ok()
}

/// Builds the post that asks about an approval. Returns `None` if the agent has no channel or the approval is not open
/// any more.
pub(crate) async fn question_post(ops: &Ops, channels: &AgentChannels, event: &Event) -> Result<Option<NewPost>> {
    let Some(approval) = parse_approval(event) else { return Ok(None) };
    let agent = ops.agents.by_name(&approval.agent);
    let asks = approval.conversation.as_deref();
    let channel = agent.and_then(|agent| conversations::approval_channel(ops, channels, agent.settings.id, asks));
    let Some(channel) = channel else {
        return Ok(None);
    };
    // The event may be from the previous run, or the approval was decided at once.
    if get_approval(&ops.store.catalog.approvals, &approval.id).await?.is_none_or(|now| now.status != Status::Open) {
        return Ok(None);
    }
    let possible = ApprovalButton::WORDS.iter().map(|(press, _)| *press).filter(|press| press.is_possible(&approval));
    let button = |press: ApprovalButton| Button {
        custom_id: press.custom_id(&approval),
        label: press.label(&approval) + if press.needs_approver() { APPROVERS_ONLY } else { "" },
        style: press.style(),
        disabled: false,
        seen_whole: !press.is_denial(),
    };
    let buttons = possible.map(button).collect();
    let (content, file) = message::open_message(&approval);
    let body = MessageBody { content, buttons, file };
    Post { channel, about: Some(format!("{KEY_PREFIX}{}", approval.id)), body, reply_to: None }.into_row().map(Some)
}

/// Returns the buttons of an approval that `who` may press, as custom ids with labels. `whole`: they see all of the
/// action; if not, they can only deny it.
#[must_use]
pub(crate) fn allowed_buttons(
    approval: &Approval,
    who: &Requester,
    approver: bool,
    whole: bool,
) -> Vec<(String, String)> {
    let theirs = approval.requester == who.to_string() && !reaches_beyond_turn(&approval.action);
    let possible = ApprovalButton::WORDS.iter().map(|(press, _)| *press).filter(|press| {
        let may = if press.needs_approver() { approver } else { theirs || approver };
        may && press.is_possible(approval) && (whole || press.is_denial())
    });
    possible.map(|press| (press.custom_id(approval), press.label(approval))).collect()
}

/// Edits the post of a decided approval: it shows the decision and has no buttons any more. Calling it twice does no
/// harm.
pub(crate) async fn on_decided(outbox: &Outbox, event: &Event) -> Result<()> {
    match parse_approval(event) {
        Some(approval) => close_question(outbox, &approval).await,
        None => Ok(()),
    }
}

async fn close_question(outbox: &Outbox, approval: &Approval) -> Result<()> {
    let about = format!("{KEY_PREFIX}{}", approval.id);
    let (content, file) = message::closed_message(approval);
    let body = MessageBody { content, file, ..MessageBody::default() };
    if outbox.update(&about, body).await? {
        outbox.forget_key(&about).await?;
    }
    Ok(())
}

/// Closes the posts of approvals that are not open any more but still look open, most of them from the previous run.
pub(crate) async fn close_stale(ops: &Ops, outbox: &Outbox) -> Result<()> {
    for about in outbox.keys_with_prefix(KEY_PREFIX).await? {
        let approval =
            get_approval(&ops.store.catalog.approvals, about.strip_prefix(KEY_PREFIX).unwrap_or_default()).await?;
        match approval {
            Some(approval) if approval.status == Status::Open => {}
            Some(approval) => close_question(outbox, &approval).await?,
            None => outbox.forget_key(&about).await?,
        }
    }
    Ok(())
}

/// Handles a press of a button of an approval. Returns the text for the person who pressed it.
///
/// # Errors
/// `denied` if the person may not answer it, `conflict` if the action is another one by now or the approval was
/// decided, `expired`, `not_found`. Nothing is done then.
pub(crate) async fn on_button(ops: &Ops, custom_id: &str, by: &Answerer) -> Result<String> {
    let (press, asked) = find_asked(ops, custom_id).await?;
    if press.is_denial() {
        return deny_asked(ops, asked, None, by).await;
    }
    let params = ApproveParams {
        id: asked.id,
        always: press == ApprovalButton::Action,
        pattern: press == ApprovalButton::Pattern,
        turn: press == ApprovalButton::Turn,
        hash: Some(asked.hash),
    };
    let done = approve::approve_as(&ops.agent_editor, &ops.approvals, params, by).await?;
    let mut told = match (done.turn, done.always) {
        (true, _) => "Allowed. The agent does not ask again in this turn.".to_owned(),
        (_, true) => "Allowed from now on. `/permissions show` lists it.".to_owned(),
        (_, false) => "Allowed once.".to_owned(),
    };
    done.warnings.iter().for_each(|warning| told.push_str(&format!("\nNote: {}", rewrite_message(warning))));
    Ok(ops.redactor.redact_text(&told).into_owned())
}

/// Checks, before a form asks `by` for a reason, that they may deny the approval of a button.
///
/// # Errors
/// As [`on_button`].
pub(crate) async fn ensure_may_deny(ops: &Ops, custom_id: &str, by: &Answerer) -> Result<()> {
    let (_, asked) = find_asked(ops, custom_id).await?;
    ops.approvals.ensure_answerable(&asked.id, by).await
}

/// Denies the approval of a form's custom id, with the reason that was typed. Returns the text for the person.
///
/// # Errors
/// As [`on_button`].
pub(crate) async fn deny_with_reason(
    ops: &Ops,
    custom_id: &str,
    reason: Option<String>,
    by: &Answerer,
) -> Result<String> {
    let (_, asked) = find_asked(ops, custom_id).await?;
    deny_asked(ops, asked, reason, by).await
}

async fn deny_asked(ops: &Ops, asked: Approval, reason: Option<String>, by: &Answerer) -> Result<String> {
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let told = if reason.is_some() { "Denied. The agent gets the reason." } else { "Denied." };
    deny::deny_as(&ops.approvals, DenyParams { id: asked.id, reason }, by).await?;
    Ok(told.to_owned())
}

/// Finds the approval that a custom id names, and checks that its action is the one that was shown.
async fn find_asked(ops: &Ops, custom_id: &str) -> Result<(ApprovalButton, Approval)> {
    let unknown = || Error::new(ErrorKind::NotFound, "This approval no longer exists");
    let (press, id, prefix) = ApprovalButton::parse(custom_id).ok_or_else(unknown)?;
    let asked = get_approval(&ops.store.catalog.approvals, id).await?.ok_or_else(unknown)?;
    if !asked.hash.starts_with(prefix) {
        return Err(Error::new(ErrorKind::Conflict, "The action has changed since this was posted")
            .hint("list pending approvals: `/approvals`"));
    }
    Ok((press, asked))
}

#[cfg(test)]
mod tests {
    use chorus_agent_core::test_support;

    use super::*;

    #[test]
    fn each_person_gets_the_buttons_that_they_may_press() {
        let labels = |approval: &Approval, who: &str, approver: bool, whole: bool| {
            let who = Requester::Person { id: who.into(), name: String::new(), roles: Vec::new() };
            let buttons = allowed_buttons(approval, &who, approver, whole).into_iter().map(|(_, label)| label);
            buttons.collect::<Vec<_>>().join(" | ")
        };
        let asked = Approval {
            requester: "discord:7".into(),
            action: "tool:bash:git status -s".into(),
            patterns: vec!["git status *".into()],
            turn_allowed: true,
            ..test_support::sample_approval("k7mq2x")
        };
        let all = "Allow once | All of this turn | This exact command | git status * | No | No, because …";
        assert_eq!(labels(&asked, "9", true, true), all);
        assert_eq!(labels(&asked, "7", false, true), "Allow once | All of this turn | No | No, because …");
        assert_eq!(labels(&asked, "7", false, false), "No | No, because …");
        assert_eq!(labels(&asked, "9", false, true), "");
        let push = Approval {
            action: "tool:git:push origin main".into(),
            not_always: Some("x".into()),
            patterns: Vec::new(),
            turn_allowed: false,
            ..asked.clone()
        };
        assert_eq!(labels(&push, "9", true, true), "Allow once | No | No, because …");
        let long = Approval { patterns: vec!["cargo test *".into(); 9], ..asked };
        assert!(labels(&long, "9", true, true).contains("| 9 patterns |"));
    }

    #[test]
    fn a_button_says_which_answer_to_which_question() {
        let approval = Approval { hash: "0123456789abcdef".into(), ..test_support::sample_approval("k7mq2x") };
        for (press, _) in ApprovalButton::WORDS {
            let id = press.custom_id(&approval);
            assert!(id.len() <= 100);
            assert_eq!(ApprovalButton::parse(&id), Some((press, "k7mq2x", "01234567")));
        }
        for foreign in
            ["", "approve", "approve:", "approve:k7mq2x", "approve:k7mq2x:", "approve::01234567", "stop:k:01234567"]
        {
            assert_eq!(ApprovalButton::parse(foreign), None, "{foreign}");
        }
    }
}
