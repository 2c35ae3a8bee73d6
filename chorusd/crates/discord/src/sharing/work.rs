//! Looks for work that is in the database: claims of this node's agents, agents that nobody has, posts, and what other nodes
//! pass on.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::ops::discord::SharedDiscord;
use serenity::model::id::ChannelId;
use tokio::time::sleep;
use uuid::Uuid;

use super::handover;
use crate::app::DiscordApp;
use crate::inbound;

/// Time between two looks, each one statement, if nobody says that there is work.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Looks for work until the daemon stops.
pub(super) async fn run(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord) {
    let mut news = shared.news();
    let looking = async {
        loop {
            if let Err(failure) = look(app, shared).await {
                tracing::warn!(%failure, "cannot look for messages from Discord");
                sleep(LOOK_INTERVAL).await;
            }
            tokio::select! {
                () = sleep(LOOK_INTERVAL) => {}
                Ok(()) = news.changed() => {}
                () = app.inbound.claimed.notified() => {}
            }
        }
    };
    tokio::select! {
        () = looking => {}
        () = app.stop.cancelled() => {}
    }
}

async fn look(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord) -> Result<()> {
    if app.channels.allowlist.all().is_empty() {
        app.channels.allowlist.reload().await?;
    }
    let mut work = shared.waiting_work().await?;
    if work.is_handed {
        handover::take(app, shared).await?;
    }
    work.channels.iter().for_each(|channel| app.outbox.offer_sender(ChannelId::new((*channel).max(1))));
    let is_draining = app.ops.store.ownership.as_ref().is_some_and(|ownership| ownership.is_draining());
    let has_shard = (0..app.shards.count()).any(|shard| app.has_shard(shard));
    if has_shard && !is_draining && take_on(app, &work.unowned).await {
        work = shared.waiting_work().await?;
    }
    inbound::queue_claims(app, shared, work.claims).await
}

/// Takes on agents with open claims that nobody has. Returns whether there are some.
async fn take_on(app: &DiscordApp, agents: &[Uuid]) -> bool {
    for agent in agents {
        if let Err(failure) = app.ops.agent_resolver.claims.ensure(*agent, &agent.to_string()).await {
            tracing::info!(%agent, %failure, "cannot take on an agent with messages from Discord");
        }
    }
    !agents.is_empty()
}
