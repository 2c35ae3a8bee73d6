//! Telling servers which commands there are: only those that do not know it yet.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde_json::Value;
use serenity::model::id::{ApplicationId, GuildId};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::definitions::Command;
use super::table::COMMANDS;
use crate::discord::bridge::Bridge;
use crate::discord::rest::RestError;
use crate::ops::discord::commands::{note_registered, registered};

/// The first wait before it is tried again, and the longest.
const WAIT: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(300);

/// A new connection names the application and its servers.
pub fn ready(bridge: &Arc<Bridge>, application: ApplicationId, guilds: impl IntoIterator<Item = GuildId>) {
    bridge.slash.application.store(application.get(), Relaxed);
    register(bridge, application, guilds);
}

/// The application was invited to a server, or hears of one again.
pub fn joined(bridge: &Arc<Bridge>, guild: GuildId) {
    let bridge = bridge.clone();
    bridge.tasks.clone().spawn(async move {
        let named = bridge.slash.application.load(Relaxed);
        let application = match named {
            // A connection that was taken up again did not name it, the one before did.
            0 => told(&bridge).await.first().map(|(application, _)| *application),
            named => Some(ApplicationId::new(named)),
        };
        if let Some(application) = application {
            register(&bridge, application, [guild]);
        }
    });
}

/// Sees to it that these servers know the commands, in the background.
fn register(bridge: &Arc<Bridge>, application: ApplicationId, guilds: impl IntoIterator<Item = GuildId>) {
    for guild in guilds.into_iter().filter(|guild| bridge.rooms.serves(*guild)) {
        let bridge = bridge.clone();
        // One that does not take them keeps no other from having them.
        bridge.tasks.clone().spawn(async move {
            tokio::select! {
                () = until_known(&bridge, application, guild) => {}
                () = bridge.stop.cancelled() => {}
            }
        });
    }
}

/// As [`ready`], for all servers that were told something before, or are served now: a connection that is taken up again names none.
pub fn look_over(bridge: &Arc<Bridge>) {
    let bridge = bridge.clone();
    bridge.tasks.clone().spawn(async move {
        let told = told(&bridge).await;
        let Some((application, _)) = told.first().copied() else { return };
        let served = bridge.rooms.served.all().into_iter().map(|guild| (application, guild));
        let all: BTreeSet<_> = told.into_iter().chain(served).collect();
        for (application, guild) in all {
            register(&bridge, application, [guild]);
        }
    });
}

/// Servers that were told something before, with the application whose commands those are.
async fn told(bridge: &Bridge) -> Vec<(ApplicationId, GuildId)> {
    let ids = |key: &String| {
        let (application, guild) = key.split_once(':')?;
        let id = |text: &str| text.parse::<u64>().ok().filter(|id| *id != 0);
        Some((ApplicationId::new(id(application)?), GuildId::new(id(guild)?)))
    };
    match registered(&bridge.ops).await {
        Ok(told) => told.keys().filter_map(ids).collect(),
        Err(failure) => {
            tracing::warn!(%failure, "cannot tell which servers know the commands");
            Vec::new()
        }
    }
}

/// The server is left: should it come back, it is told anew.
pub fn forget(bridge: &Arc<Bridge>, guild: GuildId) {
    let bridge = bridge.clone();
    bridge.tasks.clone().spawn(async move {
        let registering = bridge.slash.registering.of(guild);
        let _one_at_a_time = registering.lock().await;
        let _noting = bridge.slash.noting.lock().await;
        let Ok(told) = registered(&bridge.ops).await else { return };
        let ending = format!(":{guild}");
        for key in told.keys().filter(|key| key.ends_with(&ending)) {
            if let Err(failure) = note_registered(&bridge.ops, key, None).await {
                tracing::warn!(%failure, %guild, "cannot forget what a server was told");
            }
        }
    });
}

async fn until_known(bridge: &Bridge, application: ApplicationId, guild: GuildId) {
    let mut wait = WAIT;
    loop {
        match tell(bridge, application, guild).await {
            Ok(()) => return,
            Err(error) if error.may_pass() => {
                let asked = if let RestError::Limited { after, .. } = error { after } else { Duration::ZERO };
                tracing::warn!(%error, %guild, "the server cannot be told the commands; it is tried again");
                sleep(wait.max(asked)).await;
                wait = (wait * 2).min(LONGEST);
            }
            Err(error) => return tracing::warn!(%error, %guild, "the server does not take the commands"),
        }
    }
}

async fn tell(bridge: &Bridge, application: ApplicationId, guild: GuildId) -> Result<(), RestError> {
    let registering = bridge.slash.registering.of(guild);
    let _one_at_a_time = registering.lock().await;
    let bodies: Vec<Value> = COMMANDS.iter().map(Command::body).collect();
    let (key, hash) = (format!("{application}:{guild}"), hash(&bodies));
    let told = registered(&bridge.ops).await.unwrap_or_else(|failure| {
        tracing::warn!(%failure, "cannot tell whether a server knows the commands");
        Default::default()
    });
    if told.get(&key) == Some(&hash) {
        return Ok(());
    }
    bridge.rest.put_commands(application, guild, &bodies).await?;
    tracing::info!(%guild, commands = bodies.len(), "the server was told the commands");
    let _noting = bridge.slash.noting.lock().await;
    if let Err(failure) = note_registered(&bridge.ops, &key, Some(hash)).await {
        tracing::warn!(%failure, "it is told again after the next start");
    }
    Ok(())
}

fn hash(bodies: &[Value]) -> String {
    let text = Value::from(bodies.to_vec()).to_string();
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
