//! A front door: agents in the channels of Discord servers. It only translates; what is done, `ops` does.

mod address;
mod answer;
mod approvals;
mod bridge;
mod chance;
mod commands;
mod event;
mod gateway;
mod guilds;
mod inbound;
mod notices;
mod per_server;
mod person;
mod posts;
mod render;
mod rest;
mod rooms;
mod route;

use std::sync::Arc;

pub use bridge::Bridge;
use chance::chance;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ops::Ops;

/// Events of the gateway that wait to be looked at.
const EVENTS: usize = 4096;

/// The connection to Discord, or nothing where there is no token.
#[derive(Debug)]
pub struct Discord {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Discord {
    /// Connects in the background; whether that works disturbs nobody.
    #[must_use]
    pub fn start(ops: &Arc<Ops>) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(run(ops.clone(), stop.clone(), tasks.clone()));
        tasks.close();
        Self { stop, tasks }
    }

    /// Ends it; whatever cannot be said until `deadline` is not.
    pub async fn stop(self, deadline: Instant) {
        self.stop.cancel();
        if timeout_at(deadline, self.tasks.wait()).await.is_err() {
            tracing::warn!("Discord did not end in time");
        }
    }
}

async fn run(ops: Arc<Ops>, stop: CancellationToken, tasks: TaskTracker) {
    let Some(bridge) = Bridge::new(ops, stop, tasks).await else { return };
    let bridge = Arc::new(bridge);
    let (tx, rx) = mpsc::channel(EVENTS);
    rooms::Door::open(&bridge);
    bridge.posts.begin().await;
    inbound::begin(&bridge).await;
    tokio::join!(gateway::run(&bridge, tx), route::run(&bridge, rx), notices::run(&bridge));
}
