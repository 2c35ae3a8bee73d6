//! Looks for work that is in the database: claims of this node's agents, agents that nobody has, posts, and what other nodes
//! pass on.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::ops::discord::{SharedDiscord, SharedWork};
use serenity::model::id::ChannelId;
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use super::handover;
use crate::app::DiscordApp;
use crate::inbound;

/// Time between two looks, each one statement, if nobody says that there is work.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Looks for work until the daemon stops. What people wait for, interactions and posts, does not wait for claims.
pub(super) async fn run(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord) {
    let mut news = shared.news();
    let (found, mut claims) = watch::channel(SharedWork::default());
    let looking = async {
        loop {
            match look(app, shared).await {
                Ok(work) => _ = found.send(work),
                Err(failure) => {
                    tracing::warn!(%failure, "cannot look for messages from Discord");
                    sleep(LOOK_INTERVAL).await;
                }
            }
            tokio::select! {
                () = sleep(LOOK_INTERVAL) => {}
                Ok(()) = news.changed() => {}
                () = app.inbound.claimed.notified() => {}
            }
        }
    };
    let working = async {
        while claims.changed().await.is_ok() {
            let work = claims.borrow_and_update().clone();
            if let Err(failure) = process_claims(app, shared, work).await {
                tracing::warn!(%failure, "cannot queue messages from Discord");
            }
        }
    };
    tokio::select! {
        () = async { tokio::join!(looking, working).1 } => {}
        () = app.stop.cancelled() => {}
    }
}

/// Looks for work, and does what is done at once.
async fn look(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord) -> Result<SharedWork> {
    app.channels.allowlist.load_if_empty().await?;
    let work = shared.waiting_work().await?;
    if work.is_handed {
        handover::take(app, shared).await?;
    }
    work.channels.iter().for_each(|channel| app.outbox.offer_sender(ChannelId::new((*channel).max(1))));
    Ok(work)
}

/// Takes on agents that nobody has, if this node receives messages, and queues the claims of this node's agents.
async fn process_claims(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord, work: SharedWork) -> Result<()> {
    let is_draining = app.ops.store.ownership.as_ref().is_some_and(|ownership| ownership.is_draining());
    if app.has_any_shard() && !is_draining && take_on(app, &work.unowned).await {
        // Their claims are found by another look.
        app.inbound.claimed.notify_one();
    }
    inbound::queue_claims(app, shared, work.claims).await
}

/// Takes on agents with open claims that nobody has. Returns whether it took on some.
async fn take_on(app: &DiscordApp, agents: &[Uuid]) -> bool {
    let mut has_taken = false;
    for agent in agents {
        match app.ops.agent_resolver.claims.ensure(*agent, &agent.to_string()).await {
            Ok(()) => has_taken = true,
            Err(failure) => {
                tracing::info!(%agent, %failure, "cannot take on an agent with messages from Discord");
            }
        }
    }
    has_taken
}
