//! Discord front end: runs agents in the channels of Discord guilds. It only translates between Discord and `ops`,
//! which does the work.

#![warn(unreachable_pub)]

mod announcements;
mod app;
mod approvals;
mod channels;
mod commands;
mod conversations;
mod direct;
mod event_router;
mod gateway;
mod gateway_event;
mod inbound;
mod member;
mod outbox;
mod render;
mod reply;
mod rest;
mod role_cache;
mod shards;
mod sharing;
mod threads;
mod url_checks;

use std::sync::Arc;

use chorus_engine::ops::Ops;
use chorus_runtime::SpawnTracked as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use app::DiscordApp;

/// Capacity of the queue of gateway events that wait to be routed.
const EVENT_QUEUE_LEN: usize = 4096;

/// Handle of the connection to Discord. Without a token it runs nothing.
#[derive(Debug)]
pub struct Discord {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Discord {
    /// Starts to connect in the background. Failures are reported in the state (`ops.discord`) and in the log, not
    /// here.
    #[must_use]
    pub fn start(ops: &Arc<Ops>) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn_tracked(run(ops.clone(), stop.clone(), tasks.clone()));
        tasks.close();
        Self { stop, tasks }
    }

    /// Stops the connection and waits for its tasks until `deadline`; what is not sent by then is not sent.
    pub async fn stop(self, deadline: Instant) {
        self.stop.cancel();
        if timeout_at(deadline, self.tasks.wait()).await.is_err() {
            tracing::warn!("the Discord connection did not stop in time");
        }
    }
}

async fn run(ops: Arc<Ops>, stop: CancellationToken, tasks: TaskTracker) {
    let Some(app) = DiscordApp::new(ops, stop, tasks).await else { return };
    let app = Arc::new(app);
    channels::DiscordChannels::install(&app);
    threads::load(&app).await;
    direct::load(&app).await;
    if let Some(shared) = app.tables.shared.clone() {
        return sharing::run(&app, &shared).await;
    }
    direct::skip_unserved(&app).await;
    app.outbox.resume().await;
    inbound::resume_claims(&app).await;
    tokio::join!(run_shards(&app), announcements::run(&app));
}

/// Connects all shards until the daemon stops or Discord refuses one permanently.
async fn run_shards(app: &Arc<DiscordApp>) {
    if !gateway::prepare_shards(app, None).await {
        return;
    }
    let terms: Vec<_> = (0..app.shards.count()).map(|shard| app.shards.begin_term(shard, &app.stop)).collect();
    let run = |shard: u32| {
        let (app, terms) = (app.clone(), terms.clone());
        async move {
            if run_shard(&app, shard).await {
                terms.iter().zip(0..).filter(|(_, other)| *other != shard).for_each(|(term, _)| term.cancel());
            }
        }
    };
    futures_util::future::join_all((0..app.shards.count()).map(run)).await;
}

/// Keeps a shard connected and handles its events. Returns true if Discord refuses it permanently.
pub(crate) async fn run_shard(app: &Arc<DiscordApp>, shard: u32) -> bool {
    let (tx, rx) = mpsc::channel(EVENT_QUEUE_LEN);
    tokio::join!(gateway::run(app, shard, tx), event_router::run(app, shard, rx)).0
}
