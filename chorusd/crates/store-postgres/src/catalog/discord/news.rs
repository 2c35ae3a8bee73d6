//! Notifications of other nodes: work for this one, or a free lease. This node listens on a connection for this only, from the first
//! time that somebody asks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use super::CatalogDb;

/// Channel on which a node is told by its name that there is work for it.
pub(super) const WORK_CHANNEL: &str = "discord";

/// Payload of the channel `released` that says that nobody has the gateway.
pub(super) const GATEWAY_RELEASED: &str = "discord";

const LISTEN: &str = "LISTEN discord; LISTEN released";

/// Time between two attempts to listen.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Numbers that change with each notification.
#[derive(Debug, Default)]
pub(super) struct News {
    work: watch::Sender<u64>,
    releases: watch::Sender<u64>,
    started: OnceLock<()>,
}

impl News {
    /// Subscribes to work for this node.
    pub(super) fn subscribe_work(self: &Arc<Self>, db: &CatalogDb) -> watch::Receiver<u64> {
        self.start(db);
        self.work.subscribe()
    }

    /// Subscribes to shards that were released.
    pub(super) fn subscribe_releases(self: &Arc<Self>, db: &CatalogDb) -> watch::Receiver<u64> {
        self.start(db);
        self.releases.subscribe()
    }

    fn start(self: &Arc<Self>, db: &CatalogDb) {
        self.started.get_or_init(|| {
            let (news, db) = (self.clone(), db.clone());
            // Both are subscribed to for as long as the daemon runs.
            let subscribed = self.work.subscribe();
            chorus_runtime::spawn(async move {
                let closed = async {
                    drop(subscribed);
                    news.work.closed().await;
                    news.releases.closed().await;
                };
                tokio::select! {
                    () = news.listen(&db) => {}
                    () = closed => {}
                }
            });
        });
    }

    /// Listens for as long as the way to the database allows it.
    async fn listen(self: &Arc<Self>, db: &CatalogDb) {
        loop {
            let (news, node) = (self.clone(), db.node.id.clone());
            let told = move |channel: &str, payload: &str| match channel == WORK_CHANNEL {
                true if payload == node => note(&news.work),
                false if payload == GATEWAY_RELEASED => note(&news.releases),
                _ => {}
            };
            match db.readers.listen(LISTEN, Arc::new(told)).await {
                Ok(true) => {}
                // Over a pooler nobody can listen: whoever waits looks from time to time.
                Ok(false) => return,
                Err(failure) => tracing::debug!(%failure, "cannot listen for other nodes"),
            }
            tokio::time::sleep(RETRY_DELAY).await;
            // Something may have been missed.
            note(&self.work);
            note(&self.releases);
        }
    }
}

fn note(number: &watch::Sender<u64>) {
    number.send_modify(|number| *number += 1);
}
