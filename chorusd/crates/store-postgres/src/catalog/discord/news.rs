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

/// A number that changes with each notification.
#[derive(Debug, Default)]
pub(super) struct News {
    number: watch::Sender<u64>,
    started: OnceLock<()>,
}

impl News {
    pub(super) fn subscribe(self: &Arc<Self>, db: &CatalogDb) -> watch::Receiver<u64> {
        let receiver = self.number.subscribe();
        self.started.get_or_init(|| {
            let (news, db) = (self.clone(), db.clone());
            chorus_runtime::spawn(async move {
                tokio::select! {
                    () = news.listen(&db) => {}
                    () = news.number.closed() => {}
                }
            });
        });
        receiver
    }

    fn note(&self) {
        self.number.send_modify(|number| *number += 1);
    }

    /// Listens for as long as the way to the database allows it.
    async fn listen(self: &Arc<Self>, db: &CatalogDb) {
        loop {
            let (news, node) = (self.clone(), db.node.id.clone());
            let told = move |channel: &str, payload: &str| {
                if (channel == WORK_CHANNEL && payload == node) || payload == GATEWAY_RELEASED {
                    news.note();
                }
            };
            match db.readers.listen(LISTEN, Arc::new(told)).await {
                Ok(true) => {}
                // Over a pooler nobody can listen: whoever waits looks from time to time.
                Ok(false) => return,
                Err(failure) => tracing::debug!(%failure, "cannot listen for other nodes"),
            }
            tokio::time::sleep(RETRY_DELAY).await;
            // Something may have been missed.
            self.note();
        }
    }
}
