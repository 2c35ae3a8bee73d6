//! The lease of the gateway: this node connects only while it has it.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_engine::ops::discord::{ConnectionState, DiscordLease, LeaseClaim, SharedDiscord};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::app::DiscordApp;
use crate::{EVENT_QUEUE_LEN, direct, event_router, gateway, inbound, threads};

/// Time between two attempts to get the lease, if nobody says that it is free.
const CLAIM_INTERVAL: Duration = Duration::from_secs(5);

/// Time between two looks whether this node still has the lease.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Time between two attempts to read what the gateway needs.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Takes the gateway whenever it is free, until the daemon stops or Discord refuses this node's connection permanently.
pub(super) async fn run(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord) {
    let mut news = shared.news();
    while !app.stop.is_cancelled() {
        // Without the database, or just after it was away, a claim is answered from memory and would be lost at once.
        let held = async {
            if let Some(ownership) = &app.ops.store.ownership {
                ownership.held().await;
            }
        };
        tokio::select! {
            () = held => {}
            () = app.stop.cancelled() => return,
        }
        match shared.claim(DiscordLease::Gateway).await {
            Ok(LeaseClaim::Granted { .. }) => match hold(app, shared).await {
                TermEnd::Over => return,
                TermEnd::Lost => pause(app, RETRY_INTERVAL).await,
            },
            Ok(LeaseClaim::OwnedBy(owner)) => {
                app.ops.discord.set_state(ConnectionState::Elsewhere { node: owner.node });
                wait_until_free(app, &mut news).await;
            }
            Err(failure) => {
                tracing::warn!(%failure, "cannot ask which node is connected to Discord");
                pause(app, CLAIM_INTERVAL).await;
            }
        }
    }
}

async fn pause(app: &DiscordApp, time: Duration) {
    tokio::select! {
        () = sleep(time) => {}
        () = app.stop.cancelled() => {}
    }
}

/// Waits until the node that has the gateway may have ended.
async fn wait_until_free(app: &DiscordApp, news: &mut tokio::sync::watch::Receiver<u64>) {
    let told = async {
        if news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let silent = async {
        match &app.ops.store.ownership {
            Some(ownership) if ownership.fallen_silent().await.is_ok() => {}
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        () = sleep(CLAIM_INTERVAL) => {}
        () = told => {}
        () = silent => {}
        () = app.stop.cancelled() => {}
    }
}

/// Why this node does not have the gateway any more.
enum TermEnd {
    /// The daemon stops, or Discord refuses the connection permanently.
    Over,
    /// Another node may have it.
    Lost,
}

/// Keeps the connection up as long as this node has the lease, and releases it if it still has it.
async fn hold(app: &Arc<DiscordApp>, shared: &dyn SharedDiscord) -> TermEnd {
    tracing::info!("this node has the connection to Discord");
    app.ops.discord.set_state(ConnectionState::Connecting);
    let term = app.begin_term();
    let connected = async {
        if !prepare(app, &term).await {
            return false;
        }
        let (tx, rx) = mpsc::channel(EVENT_QUEUE_LEN);
        tokio::join!(gateway::run(app, tx), event_router::run(app, rx)).0
    };
    let watch = async {
        while shared.holds(DiscordLease::Gateway) {
            sleep(CHECK_INTERVAL).await;
        }
        term.cancel();
        std::future::pending::<()>().await;
    };
    let is_refused = tokio::select! {
        is_refused = connected => is_refused,
        () = watch => false,
    };
    term.cancel();
    inbound::end_term(app);
    if !shared.holds(DiscordLease::Gateway) {
        tracing::warn!("another node may have the connection to Discord now");
    } else if let Err(failure) = shared.release(DiscordLease::Gateway).await {
        tracing::warn!(%failure, "cannot release the connection to Discord");
    }
    if is_refused || app.stop.is_cancelled() { TermEnd::Over } else { TermEnd::Lost }
}

/// Reads what other nodes have changed since this one had the gateway, with retries. Returns false if the term ends before.
async fn prepare(app: &DiscordApp, term: &CancellationToken) -> bool {
    while let Err(failure) = load(app).await {
        tracing::warn!(%failure, "cannot prepare the connection to Discord; retrying");
        tokio::select! {
            () = sleep(RETRY_INTERVAL) => {}
            () = term.cancelled() => return false,
        }
    }
    !term.is_cancelled()
}

async fn load(app: &DiscordApp) -> Result<()> {
    app.channels.allowlist.reload().await?;
    app.channels.others.load(&app.ops).await?;
    threads::load(app).await;
    direct::load(app).await;
    direct::skip_unserved(app).await;
    Ok(())
}
