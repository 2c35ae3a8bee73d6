//! Approvals in the channels of agents: posted with buttons, answered by them, and edited when they are decided.

mod message;

use chorus_base::error::{Error, Result};
use chorus_base::requester::{Answerer, Requester};
use chorus_engine::approvals::reaches_beyond_turn;
use chorus_engine::ops::Ops;
use chorus_engine::ops::approvals::{approve, deny, get_approval};
use chorus_engine::ops::discord::NewPost;
use chorus_proto::methods::approvals::{Approval, ApproveParams, DenyParams, Status};
use chorus_proto::{ErrorKind, Event};

use super::outbox::{Button, MessageBody, Outbox, Post, Style};
use crate::channels::AgentChannels;
pub(crate) use message::{action_text, format_requester};

/// Prefix of the outbox keys of approval posts.
const KEY_PREFIX: &str = "approval:";

/// Characters of an approval's hash that its buttons carry.
const HASH_PREFIX_CHARS: usize = 8;

/// The answer that a button gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ApprovalButton {
    Once,
    Always,
    Deny,
}

impl ApprovalButton {
    const WORDS: [(Self, &str); 3] = [(Self::Once, "approve"), (Self::Always, "always"), (Self::Deny, "deny")];

    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(press, _)| *press == self).map_or("", |(_, word)| word)
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

/// Returns the approval that an event carries.
fn parse_approval(event: &Event) -> Option<Approval> {
    serde_json::from_value(event.data.clone()).ok()
}

/// Builds the post that asks about an approval. Returns `None` if the agent has no channel or the approval is not open
/// any more.
pub(crate) async fn question_post(ops: &Ops, channels: &AgentChannels, event: &Event) -> Result<Option<NewPost>> {
    let Some(approval) = parse_approval(event) else { return Ok(None) };
    let agent = ops.agents.by_name(&approval.agent);
    let Some((channel, _)) = agent.and_then(|agent| channels.channel_of(agent.settings.id)) else {
        return Ok(None);
    };
    // The event may be from the previous run, or the approval was decided at once.
    if get_approval(&ops.store.catalog.approvals, &approval.id).await?.is_none_or(|now| now.status != Status::Open) {
        return Ok(None);
    }
    let button = |press: ApprovalButton, label: &str, style| Button {
        custom_id: press.custom_id(&approval),
        label: label.to_owned(),
        style,
        disabled: false,
        seen_whole: press != ApprovalButton::Deny,
    };
    let mut buttons = vec![button(ApprovalButton::Once, "Allow once", Style::Success)];
    if approval.not_always.is_none() {
        buttons.push(button(ApprovalButton::Always, "Always allow this", Style::Secondary));
    }
    buttons.push(button(ApprovalButton::Deny, "Deny", Style::Danger));
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
) -> Vec<(String, &'static str)> {
    let theirs = approval.requester == who.to_string() && !reaches_beyond_turn(&approval.action);
    let buttons = [
        (ApprovalButton::Once, "Allow once", whole),
        (ApprovalButton::Always, "Always allow this", whole && approver && approval.not_always.is_none()),
        (ApprovalButton::Deny, "Deny", true),
    ];
    let buttons = buttons.into_iter().filter(|(.., offered)| *offered && (theirs || approver));
    buttons.map(|(press, label, _)| (press.custom_id(approval), label)).collect()
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
    let unknown = || Error::new(ErrorKind::NotFound, "This approval no longer exists");
    let (press, id, prefix) = ApprovalButton::parse(custom_id).ok_or_else(unknown)?;
    let asked = get_approval(&ops.store.catalog.approvals, id).await?.ok_or_else(unknown)?;
    if !asked.hash.starts_with(prefix) {
        return Err(Error::new(ErrorKind::Conflict, "The action has changed since this was posted")
            .hint("list pending approvals: `/approvals`"));
    }
    let (id, hash) = (asked.id.clone(), Some(asked.hash.clone()));
    let told = match press {
        ApprovalButton::Once => {
            approve::approve_as(&ops.agent_editor, &ops.approvals, ApproveParams { id, always: false, hash }, by)
                .await?;
            "Allowed once.".to_owned()
        }
        ApprovalButton::Always => {
            let done =
                approve::approve_as(&ops.agent_editor, &ops.approvals, ApproveParams { id, always: true, hash }, by)
                    .await?;
            let mut told = if done.always { "Always allowed from now on." } else { "Allowed once." }.to_owned();
            done.warnings.iter().for_each(|warning| told.push_str(&format!("\n{warning}")));
            told
        }
        ApprovalButton::Deny => {
            deny::deny_as(&ops.approvals, DenyParams { id }, by).await?;
            "Denied.".to_owned()
        }
    };
    Ok(ops.redactor.redact_text(&told).into_owned())
}

#[cfg(test)]
mod tests {
    use chorus_agent_core::test_support;

    use super::*;

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
