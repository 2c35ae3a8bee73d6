//! Questions in the channels of agents: posted with buttons, answered by them, and changed when they are decided.

mod sheet;

use chorus_proto::methods::approvals::{Approval, ApproveParams, DenyParams, Status};
use chorus_proto::{ErrorKind, Event};
pub use sheet::{person, sheet};

use super::bridge::Bridge;
use super::posts::{Body, Button, Post, Style};
use crate::approvals::beyond;
use crate::failure::{Failure, Result};
use crate::ops::approvals::{approve, deny, look};
use crate::ops::discord::NewPost;
use crate::who::{Answerer, Requester};

/// What posts of approvals are about.
const ABOUT: &str = "approval:";

/// Characters of an approval's hash that its buttons carry.
const HASH: usize = 8;

/// An answer, as its button begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Press {
    Once,
    Always,
    Deny,
}

impl Press {
    const ALL: [(Self, &str); 3] = [(Self::Once, "approve"), (Self::Always, "always"), (Self::Deny, "deny")];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(press, _)| *press == self).map_or("", |(_, word)| word)
    }

    fn id(self, approval: &Approval) -> String {
        let hash: String = approval.hash.chars().take(HASH).collect();
        format!("{}:{}:{hash}", self.word(), approval.id)
    }

    /// What a button says: the answer, the approval's id, and how its hash begins.
    fn parse(custom_id: &str) -> Option<(Self, &str, &str)> {
        let (word, rest) = custom_id.split_once(':')?;
        let (id, hash) = rest.split_once(':')?;
        let press = Self::ALL.iter().find(|(_, known)| *known == word)?.0;
        (!id.is_empty() && hash.len() == HASH).then_some((press, id, hash))
    }
}

/// The approval that an event tells of.
fn of(event: &Event) -> Option<Approval> {
    serde_json::from_value(event.data.clone()).ok()
}

/// The question that somebody is asked, as it is posted; `None`: its agent has no channel, or it is not open any more.
///
/// # Errors
/// A database that cannot be read.
pub async fn asked(bridge: &Bridge, event: &Event) -> Result<Option<NewPost>> {
    let Some(approval) = of(event) else { return Ok(None) };
    let agent = bridge.ops.directory.by_name(&approval.agent);
    let Some((channel, _)) = agent.and_then(|agent| bridge.rooms.channel_of(agent.facts.id)) else { return Ok(None) };
    // An event of the run before, or one that was answered at once.
    if look(&bridge.ops, &approval.id).await?.is_none_or(|now| now.status != Status::Open) {
        return Ok(None);
    }
    let button = |press: Press, label: &str, style| Button {
        custom_id: press.id(&approval),
        label: label.to_owned(),
        style,
        disabled: false,
        seen_whole: press != Press::Deny,
    };
    let mut buttons = vec![button(Press::Once, "Allow once", Style::Success)];
    if approval.not_always.is_none() {
        buttons.push(button(Press::Always, "Always this", Style::Secondary));
    }
    buttons.push(button(Press::Deny, "Deny", Style::Danger));
    let (content, file) = sheet::open(&approval);
    let body = Body { content, buttons, file };
    Post { channel, about: Some(format!("{ABOUT}{}", approval.id)), body, reply_to: None }.row().map(Some)
}

/// The buttons that `who` may press of a question, as ids with what they say. `whole`: they see all of the action; without that it can only be denied.
#[must_use]
pub fn answers(approval: &Approval, who: &Requester, approver: bool, whole: bool) -> Vec<(String, &'static str)> {
    let theirs = approval.requester == who.to_string() && !beyond(&approval.action);
    let buttons = [
        (Press::Once, "Allow once", whole),
        (Press::Always, "Always this", whole && approver && approval.not_always.is_none()),
        (Press::Deny, "Deny", true),
    ];
    let buttons = buttons.into_iter().filter(|(.., offered)| *offered && (theirs || approver));
    buttons.map(|(press, label, _)| (press.id(approval), label)).collect()
}

/// A question was decided: its post says so, and has no buttons any more. Done twice it is done once.
///
/// # Errors
/// What the outbox says.
pub async fn decided(bridge: &Bridge, event: &Event) -> Result<()> {
    match of(event) {
        Some(approval) => close(bridge, &approval).await,
        None => Ok(()),
    }
}

async fn close(bridge: &Bridge, approval: &Approval) -> Result<()> {
    let about = format!("{ABOUT}{}", approval.id);
    let (content, file) = sheet::closed(approval);
    let body = Body { content, file, ..Body::default() };
    if bridge.posts.change(&about, body).await? {
        bridge.posts.forget(&about).await?;
    }
    Ok(())
}

/// Closes the posts of questions that are not open any more and look as if they were: of the run before, for the most part.
///
/// # Errors
/// A database that cannot be read or written.
pub async fn close_left_open(bridge: &Bridge) -> Result<()> {
    for about in bridge.posts.about(ABOUT).await? {
        let approval = look(&bridge.ops, about.strip_prefix(ABOUT).unwrap_or_default()).await?;
        match approval {
            Some(approval) if approval.status == Status::Open => {}
            Some(approval) => close(bridge, &approval).await?,
            None => bridge.posts.forget(&about).await?,
        }
    }
    Ok(())
}

/// Somebody pressed a button of a question. Answers what they are told.
///
/// # Errors
/// `denied` for one who may not answer it, `conflict` where it is another action by now or was decided, `expired`, `not_found`; nothing
/// is done then.
pub async fn pressed(bridge: &Bridge, custom_id: &str, by: &Answerer) -> Result<String> {
    let unknown = || Failure::new(ErrorKind::NotFound, "nobody is asked that any more");
    let (press, id, prefix) = Press::parse(custom_id).ok_or_else(unknown)?;
    let asked = look(&bridge.ops, id).await?.ok_or_else(unknown)?;
    if !asked.hash.starts_with(prefix) {
        return Err(Failure::new(ErrorKind::Conflict, "that is another action than the one you were shown")
            .hint("nothing was done; look at the newest question"));
    }
    let (id, hash) = (asked.id.clone(), Some(asked.hash.clone()));
    let told = match press {
        Press::Once => {
            approve::approve_by(&bridge.ops, ApproveParams { id, always: false, hash }, by).await?;
            "Allowed, this once.".to_owned()
        }
        Press::Always => {
            let done = approve::approve_by(&bridge.ops, ApproveParams { id, always: true, hash }, by).await?;
            let mut told = if done.always { "Allowed, from now on." } else { "Allowed, this once." }.to_owned();
            done.warnings.iter().for_each(|warning| told.push_str(&format!("\n{warning}")));
            told
        }
        Press::Deny => {
            deny::deny_by(&bridge.ops, DenyParams { id }, by).await?;
            "Denied.".to_owned()
        }
    };
    Ok(bridge.clean(&told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::sample;

    #[test]
    fn a_button_says_which_answer_to_which_question() {
        let approval = Approval { hash: "0123456789abcdef".into(), ..sample::approval("k7mq2x") };
        for (press, _) in Press::ALL {
            let id = press.id(&approval);
            assert!(id.len() <= 100);
            assert_eq!(Press::parse(&id), Some((press, "k7mq2x", "01234567")));
        }
        for foreign in
            ["", "approve", "approve:", "approve:k7mq2x", "approve:k7mq2x:", "approve::01234567", "stop:k:01234567"]
        {
            assert_eq!(Press::parse(foreign), None, "{foreign}");
        }
    }
}
