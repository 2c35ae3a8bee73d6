//! Registers the slash commands in guilds that do not have the current ones yet. If an agent answers direct messages, the
//! commands for these are registered globally, as only global commands are available there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use chorus_base::Backoff;
use chorus_engine::ops::Ops;
use chorus_engine::ops::discord::command_support::{registered_hashes, set_registered_hash};
use chorus_runtime::SpawnTracked as _;
use serde_json::Value;
use serenity::model::id::{ApplicationId, GuildId};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::command_definition::CommandContext;
use super::command_table::{COMMANDS, is_direct};
use crate::app::DiscordApp;
use crate::rest::RestError;

/// Waits before retries.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));

/// Registers the commands after a new session was opened, which names the application and its guilds.
pub(crate) fn on_ready(
    app: &Arc<DiscordApp>,
    shard: u32,
    application: ApplicationId,
    guilds: impl IntoIterator<Item = GuildId>,
) {
    app.commands.application_id.store(application.get(), Relaxed);
    register_in_guilds(app, application, guilds);
    if shard == 0 {
        register_for_direct_messages(app, application);
    }
}

/// Registers the commands in a guild that the application joined, or that became available again.
pub(crate) fn on_guild_joined(app: &Arc<DiscordApp>, guild: GuildId) {
    let app = app.clone();
    app.tasks.clone().spawn_tracked(async move {
        let named = app.commands.application_id.load(Relaxed);
        let application = match named {
            // A resumed session does not name the application, so take it from the record of the last registration.
            0 => registered_guilds(&app.ops).await.first().map(|(application, _)| *application),
            named => Some(ApplicationId::new(named)),
        };
        if let Some(application) = application {
            register_in_guilds(&app, application, [guild]);
        }
    });
}

/// Registers the commands in these guilds, in the background.
fn register_in_guilds(app: &Arc<DiscordApp>, application: ApplicationId, guilds: impl IntoIterator<Item = GuildId>) {
    for guild in guilds.into_iter().filter(|guild| app.channels.serves(*guild)) {
        spawn_registration(app, application, Some(guild));
    }
}

/// Registers the commands for direct messages, or removes them if no agent answers these any more, in the background.
fn register_for_direct_messages(app: &Arc<DiscordApp>, application: ApplicationId) {
    spawn_registration(app, application, None);
}

/// A task for each guild, so that one that refuses the commands does not delay the others.
fn spawn_registration(app: &Arc<DiscordApp>, application: ApplicationId, guild: Option<GuildId>) {
    let app = app.clone();
    app.tasks.clone().spawn_tracked(async move {
        tokio::select! {
            () = register_with_retries(&app, application, guild) => {}
            () = app.stop.cancelled() => {}
        }
    });
}

/// Registers the commands in all guilds that were registered before or are allowed now. A resumed session names no
/// guilds, unlike the one of [`on_ready`].
pub(crate) fn on_resumed(app: &Arc<DiscordApp>, shard: u32) {
    let app = app.clone();
    app.tasks.clone().spawn_tracked(async move {
        let told = registered_guilds(&app.ops).await;
        let Some((application, _)) = told.first().copied() else { return };
        let served = app.channels.allowlist.all().into_iter().map(|guild| (application, guild));
        let all: BTreeSet<_> = told.into_iter().chain(served).collect();
        for (application, guild) in all.into_iter().filter(|(_, guild)| app.shards.of(Some(*guild)) == shard) {
            register_in_guilds(&app, application, [guild]);
        }
        if shard == 0 {
            register_for_direct_messages(&app, application);
        }
    });
}

/// Returns the guilds that were registered before, each with its application.
async fn registered_guilds(ops: &Ops) -> Vec<(ApplicationId, GuildId)> {
    let ids = |key: &String| {
        let (application, guild) = key.split_once(':')?;
        let id = |text: &str| text.parse::<u64>().ok().filter(|id| *id != 0);
        Some((ApplicationId::new(id(application)?), GuildId::new(id(guild)?)))
    };
    match registered_hashes(ops).await {
        Ok(told) => told.keys().filter_map(ids).collect(),
        Err(failure) => {
            tracing::warn!(%failure, "cannot load the record of registered commands");
            Vec::new()
        }
    }
}

/// Forgets the registration of a guild that was left: if it is joined again, the commands are registered anew.
pub(crate) fn on_guild_left(app: &Arc<DiscordApp>, guild: GuildId) {
    let app = app.clone();
    app.tasks.clone().spawn_tracked(async move {
        let _one_at_a_time = app.commands.register_locks.lock(Some(guild)).await;
        let _noting = app.commands.registered_lock.lock().await;
        let Ok(told) = registered_hashes(&app.ops).await else { return };
        let ending = format!(":{guild}");
        for key in told.keys().filter(|key| key.ends_with(&ending)) {
            if let Err(failure) = set_registered_hash(&app.ops, key, None).await {
                tracing::warn!(%failure, %guild, "cannot delete the record of registered commands");
            }
        }
    });
}

async fn register_with_retries(app: &DiscordApp, application: ApplicationId, guild: Option<GuildId>) {
    let mut backoff = RETRY_BACKOFF;
    loop {
        match register(app, application, guild).await {
            Ok(()) => return,
            Err(error) if error.is_transient() => {
                let asked = if let RestError::RateLimited { after, .. } = error { after } else { Duration::ZERO };
                tracing::warn!(%error, ?guild, "cannot register the commands; retrying");
                sleep(backoff.next_wait().max(asked)).await;
            }
            Err(error) => return tracing::warn!(%error, ?guild, "Discord rejected the commands"),
        }
    }
}

/// Registers the commands of a guild, or those for direct messages.
async fn register(app: &DiscordApp, application: ApplicationId, guild: Option<GuildId>) -> Result<(), RestError> {
    let _one_at_a_time = app.commands.register_locks.lock(guild).await;
    let (key, bodies): (String, Vec<Value>) = match guild {
        Some(guild) => {
            let bodies = COMMANDS.iter().map(|command| command.to_json(CommandContext::Guild));
            (format!("{application}:{guild}"), bodies.collect())
        }
        None => {
            let is_served = app.ops.config.discord.dm_agent.is_some();
            let available = COMMANDS.iter().filter(|command| is_served && is_direct(command.name));
            let bodies = available.map(|command| command.to_json(CommandContext::DirectMessages));
            (format!("{application}:direct"), bodies.collect())
        }
    };
    let hash = hash_definitions(&bodies);
    let told = registered_hashes(&app.ops).await.unwrap_or_else(|failure| {
        tracing::warn!(%failure, "cannot load the record of registered commands");
        Default::default()
    });
    if told.get(&key) == Some(&hash) || (bodies.is_empty() && !told.contains_key(&key)) {
        return Ok(());
    }
    app.rest.set_commands(application, guild, &bodies).await?;
    tracing::info!(?guild, commands = bodies.len(), "registered the commands");
    let _noting = app.commands.registered_lock.lock().await;
    if let Err(failure) = set_registered_hash(&app.ops, &key, Some(hash)).await {
        tracing::warn!(%failure, "cannot record the registered commands; they are registered again at the next start");
    }
    Ok(())
}

fn hash_definitions(bodies: &[Value]) -> String {
    let text = Value::from(bodies.to_vec()).to_string();
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
