//! The events of other nodes, which are read from the database while somebody subscribes to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use chorus_proto::Event;
use tokio::sync::broadcast;

use crate::connection::Readers;
use crate::errors::read_failed;
use crate::node::Node;
use crate::rows::read_event;
use crate::statement::read;

/// Time between two looks, so an event of another node is this late at most.
const INTERVAL: Duration = Duration::from_millis(500);

/// Limit of the events of a node that are read at a look. The next one reads further.
const MAX_EVENTS: i64 = 1_000;

/// Capacity of the channel; a subscriber that lags further behind misses events.
const CAPACITY: usize = 4096;

/// Publishes the events of other nodes.
#[derive(Debug, Clone)]
pub(crate) struct RemoteEvents {
    events: broadcast::Sender<Arc<Event>>,
    is_reading: Arc<Mutex<bool>>,
}

impl RemoteEvents {
    pub(crate) fn new() -> Self {
        Self { events: broadcast::Sender::new(CAPACITY), is_reading: Arc::default() }
    }

    /// Subscribes to the events of other nodes from now on.
    pub(crate) async fn subscribe(
        &self,
        readers: &Readers,
        node: &Arc<Node>,
    ) -> Result<broadcast::Receiver<Arc<Event>>> {
        let subscription = self.events.subscribe();
        if *self.is_reading.lock() {
            return Ok(subscription);
        }
        let sql = "SELECT node, event FROM writers WHERE node <> $1";
        let rows = read(&*readers.get().await?, readers.route(), sql, &[&node.id]).await;
        let last: HashMap<String, i64> =
            rows.map_err(|e| read_failed(&e))?.iter().map(|row| (row.get(0), row.get(1))).collect();
        if !std::mem::replace(&mut *self.is_reading.lock(), true) {
            chorus_runtime::spawn(self.clone().read_all(readers.clone(), node.clone(), last));
        }
        Ok(subscription)
    }

    /// Reads and publishes events until nobody is subscribed. `last` has the number of the last event of each node.
    async fn read_all(self, readers: Readers, node: Arc<Node>, mut last: HashMap<String, i64>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            {
                // Under the lock, so that no subscriber comes between the question and the end.
                let mut is_reading = self.is_reading.lock();
                if self.events.receiver_count() == 0 {
                    *is_reading = false;
                    return;
                }
            }
            // The next look may succeed.
            if let Err(failure) = self.read_new(&readers, &node, &mut last).await {
                tracing::debug!(%failure, "cannot read the events of other nodes");
            }
        }
    }

    async fn read_new(&self, readers: &Readers, node: &Node, last: &mut HashMap<String, i64>) -> Result<()> {
        // Those of a node that has come since are read from its first one.
        let sql = "SELECT e.seq, e.at, e.type, e.agent, e.conversation, e.data, w.node FROM writers w
             LEFT JOIN unnest($2::text[], $3::bigint[]) AS known (node, seq) ON known.node = w.node
             CROSS JOIN LATERAL (
                 SELECT * FROM events WHERE events.node = w.node AND events.seq > coalesce(known.seq, 0)
                 ORDER BY events.seq LIMIT $4) AS e
             WHERE w.node <> $1 ORDER BY e.at, w.node, e.seq";
        let (nodes, seqs): (Vec<String>, Vec<i64>) = last.iter().map(|(node, seq)| (node.clone(), *seq)).unzip();
        let rows = read(&*readers.get().await?, readers.route(), sql, &[&node.id, &nodes, &seqs, &MAX_EVENTS]).await;
        for row in rows.map_err(|e| read_failed(&e))? {
            let (seq, of): (i64, String) = (row.get(0), row.get(6));
            let newest = last.entry(of.clone()).or_default();
            *newest = seq.max(*newest);
            let _ = self.events.send(Arc::new(Event { node: Some(of), ..read_event(&row) }));
        }
        Ok(())
    }
}
