//! Interactions in the channels of agents that other nodes have: the owner of the agent carries them out and answers them.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_engine::ops::discord::SharedDiscord;
use chorus_runtime::SpawnTracked as _;
use serde_json::{Value, json};
use serenity::model::application::{Interaction, InteractionType};
use serenity::model::id::ChannelId;

use crate::app::DiscordApp;
use crate::{commands, direct};

/// Handles an interaction, here or at the node that has the agent of its channel.
pub(crate) fn route_interaction(app: &Arc<DiscordApp>, interaction: Interaction) {
    let Some(shared) = app.tables.shared.clone() else { return commands::handle_interaction(app, interaction) };
    let app = app.clone();
    app.tasks.clone().spawn_tracked(async move {
        match hand_over(&app, &*shared, &interaction).await {
            Ok(true) => {}
            Ok(false) => commands::handle_interaction(&app, interaction),
            Err(failure) => {
                tracing::warn!(%failure, "cannot pass a command to the node that has the agent");
                commands::handle_interaction(&app, interaction);
            }
        }
    });
}

/// Hands an interaction over if another node has the agent. Returns whether it did.
async fn hand_over(app: &DiscordApp, shared: &dyn SharedDiscord, interaction: &Interaction) -> Result<bool> {
    let (channel, id, guild, user) = match interaction {
        Interaction::Command(of) | Interaction::Autocomplete(of) => (of.channel_id, of.id, of.guild_id, &of.user),
        Interaction::Component(of) => (of.channel_id, of.id, of.guild_id, &of.user),
        Interaction::Modal(of) => (of.channel_id, of.id, of.guild_id, &of.user),
        _ => return Ok(false),
    };
    if guild.is_none() {
        app.channels.refresh_direct_agent(app).await?;
        // Nothing was written there yet, perhaps.
        direct::register(app, channel, user);
    }
    let Some(agent) = owner_of(app, channel).await? else { return Ok(false) };
    shared.hand_over(agent, id.get(), encode(interaction)?).await
}

/// Returns the agent of a channel if another node has it.
async fn owner_of(app: &DiscordApp, channel: ChannelId) -> Result<Option<uuid::Uuid>> {
    app.channels.refresh_other(app, channel).await?;
    let Some(target) = app.channels.target_of(channel) else { return Ok(None) };
    let (id, name) = (target.agent.settings.id, &target.agent.settings.name);
    match app.ops.agent_resolver.claims.ensure(id, name).await {
        Ok(()) => Ok(None),
        Err(failure) if failure.elsewhere.is_some() => Ok(Some(id)),
        Err(failure) => Err(failure),
    }
}

/// Encodes an interaction with its type, which its own form does not have.
fn encode(interaction: &Interaction) -> Result<String> {
    let internal = |e: serde_json::Error| Error::internal(format!("cannot encode an interaction: {e}"));
    let mut value = serde_json::to_value(interaction).map_err(internal)?;
    let kind = match interaction {
        Interaction::Command(_) => InteractionType::Command,
        Interaction::Autocomplete(_) => InteractionType::Autocomplete,
        Interaction::Component(_) => InteractionType::Component,
        Interaction::Modal(_) => InteractionType::Modal,
        _ => InteractionType::Ping,
    };
    if let Value::Object(fields) = &mut value {
        // In direct messages it has a null, which is not read again; nothing here needs it.
        fields.remove("authorizing_integration_owners");
        fields.insert("type".to_owned(), json!(kind));
    }
    serde_json::to_string(&value).map_err(internal)
}

/// Handles the interactions that other nodes have passed to this one.
pub(super) async fn take(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord) -> Result<()> {
    for body in shared.take_handed().await? {
        match serde_json::from_str(&body) {
            Ok(interaction) => commands::handle_interaction(app, interaction),
            Err(failure) => tracing::error!(%failure, "cannot read a command from another node"),
        }
    }
    Ok(())
}
