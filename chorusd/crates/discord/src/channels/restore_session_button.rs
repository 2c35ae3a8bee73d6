//! The Restore button below an idle notice.

use chorus_base::error::{Error, Result};
use chorus_base::requester::Requester;
use chorus_engine::ops::Ops;
use chorus_engine::ops::context::restore as context;
use chorus_engine::ops::resolve_agent::with_expected_agent;
use chorus_proto::ErrorKind;
use chorus_proto::methods::context::RestoreParams;
use chorus_proto::pluralize::pluralize;
use serenity::model::id::ChannelId;
use uuid::Uuid;

use super::super::commands::rewrite_message;
use crate::channels::AgentChannels;
use crate::conversations;

/// Returns the custom id of the button for a session.
#[must_use]
pub(crate) fn restore_button_id(session: Uuid) -> String {
    format!("restore:{session}")
}

/// Restores a session of the agent that the channel belongs to, in the conversation of the channel, on behalf of `by`, who may change conversations.
/// `session` is the part of the custom id behind `restore:`. Returns the text that reports the outcome.
///
/// # Errors
/// `not_found` if the channel belongs to no agent; otherwise those of `context restore`.
pub(crate) async fn restore_session(
    ops: &Ops,
    channels: &AgentChannels,
    channel: ChannelId,
    session: &str,
    by: &Requester,
) -> Result<String> {
    let target = channels.target_of(channel).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "This channel no longer has an agent")
            .hint("list agents and their channels: `/agent list`")
    })?;
    let agent = target.agent;
    let key = conversations::find_conversation(ops, channels, agent.settings.id, channel)
        .ok_or_else(conversations::no_conversation_error)?;
    let params = RestoreParams {
        conversation: conversations::conversation_param(key),
        agent: Some(agent.settings.name.clone()),
        session: session.to_owned(),
        // Only sessions of the channel's own agent.
        own: true,
        ..RestoreParams::default()
    };
    let restoring = context::restore_as(
        &ops.agent_resolver,
        &ops.sessions,
        &ops.sessions_lock,
        &ops.registry,
        &ops.clock,
        params,
        by,
    );
    let restored = with_expected_agent(agent.settings.id, restoring).await?;
    let count = pluralize(restored.messages, "message");
    let mut text =
        format!("Restored {} ({count}). The conversation continues here.", restored.session.header.session_id);
    if let Some(saved) = &restored.saved_first {
        text.push_str(&format!(" The previous conversation was saved as {}.", saved.short_id));
    }
    for warning in &restored.warnings {
        text.push_str(&format!("\nNote: {}", rewrite_message(warning)));
    }
    Ok(ops.redactor.redact_text(&text).into_owned())
}
