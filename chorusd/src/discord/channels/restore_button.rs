//! The button below an idle notice.

use chorus_proto::ErrorKind;
use chorus_proto::methods::context::RestoreParams;
use serenity::model::id::ChannelId;
use uuid::Uuid;

use super::super::app::DiscordApp;
use super::super::commands::rewrite_commands;
use crate::error::{Error, Result};
use crate::ops::context::restore as context;
use crate::ops::resolve::with_expected_agent;
use crate::requester::Requester;

/// What the button of a session is called.
#[must_use]
pub fn restore_button_id(session: Uuid) -> String {
    format!("restore:{session}")
}

/// Restores a session of the agent whose channel the button is in, on behalf of `by`, who may change a conversation. `session` is what
/// stands behind `restore:`. Answers what came of it.
///
/// # Errors
/// `not_found` where the channel is no agent's; else as `context restore`.
pub async fn restore_session(bridge: &DiscordApp, channel: ChannelId, session: &str, by: &Requester) -> Result<String> {
    let agent = bridge.channels.agent_of(channel).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "this channel is no agent's any more")
            .hint("`/agent list` shows which channel is whose")
    })?;
    let params = RestoreParams {
        agent: Some(agent.settings.name.clone()),
        session: session.to_owned(),
        // The agent is that of the channel: another one's sessions were not asked for.
        own: true,
        ..RestoreParams::default()
    };
    let restored = with_expected_agent(agent.settings.id, context::restore_as(&bridge.ops, params, by)).await?;
    let count = if restored.messages == 1 { "1 message".to_owned() } else { format!("{} messages", restored.messages) };
    let mut text = format!("Restored: {count} of {}. Go on here.", restored.session.header.session_id);
    if let Some(saved) = &restored.saved_first {
        text.push_str(&format!(" What was live is saved as {}.", saved.short_id));
    }
    for warning in &restored.warnings {
        text.push_str(&format!("\n{}", rewrite_commands(warning)));
    }
    Ok(bridge.redact(&text))
}
