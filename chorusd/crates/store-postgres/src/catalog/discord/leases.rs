//! Leases of the parts of the connection to Discord. They follow the rules of the ownership of agents
//! (docs/design/ownership.md): the heartbeat of the node renews all of them, and each claim raises the epoch.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use chorus_catalog::CatalogWrite;

use super::CatalogDb;
use super::news::News;
use crate::errors::{lease_lost, read_failed};
use crate::node::STALE_AFTER;
use crate::statement::{Call, call, read_once, run_alone};
use chorus_catalog::discord::DiscordLease;
use chorus_journal::{Claim, Owner};

/// The kind and the id of a lease's row.
fn key(lease: DiscordLease) -> (String, i64) {
    match lease {
        // Without shards the id is 0, as before there were any.
        DiscordLease::Gateway { of: 0 | 1, .. } => (GATEWAY.to_owned(), 0),
        DiscordLease::Gateway { shard, of } => (GATEWAY.to_owned(), i64::from(of) << SHARD_BITS | i64::from(shard)),
        DiscordLease::Channel(channel) => ("channel".to_owned(), channel.cast_signed()),
        DiscordLease::Identify(bucket) => ("identify".to_owned(), i64::from(bucket)),
    }
}

/// Reads the shard and the number of shards from the id of a lease's row.
pub(super) fn read_shard(id: i64) -> (u32, u32) {
    let number = |id: i64| u32::try_from(id).unwrap_or_default();
    (number(id & ((1 << SHARD_BITS) - 1)), number(id >> SHARD_BITS).max(1))
}

/// The kind of the leases of shards.
const GATEWAY: &str = "gateway";

/// Bits of the id of a lease's row below the number of shards.
const SHARD_BITS: u32 = 16;

/// The leases of this process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct DiscordLeases {
    pub(super) db: CatalogDb,
    /// The leases that were granted and not refused or released since.
    held: Arc<Mutex<HashMap<DiscordLease, Held>>>,
    pub(super) news: Arc<News>,
}

/// A lease that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    epoch: i64,
    /// How often this node had been silent: afterwards another one may have the lease.
    silences: u64,
}

impl DiscordLeases {
    pub(super) fn new(db: &CatalogDb) -> Self {
        Self { db: db.clone(), held: Arc::default(), news: Arc::default() }
    }

    /// Claims a lease for this process, unless it has it already, and tells who has it if this process may not.
    ///
    /// # Errors
    /// Fails if the database cannot be reached.
    pub async fn claim(&self, lease: DiscordLease) -> Result<Claim> {
        let claim = "INSERT INTO discord_leases AS l (kind, id, owner_node, owner_boot, epoch)
             VALUES ($1, $2, $3, $4, nextval('discord_lease_epochs'))
             ON CONFLICT (kind, id) DO UPDATE
                 SET owner_node = $3, owner_boot = $4, epoch = nextval('discord_lease_epochs')
                 WHERE (l.owner_node = $3 AND l.owner_boot <= $4)
                     OR (l.owner_node <> $3 AND NOT EXISTS (
                         SELECT FROM nodes WHERE nodes.id = l.owner_node AND NOT stopped
                             AND heartbeat > clock_timestamp() - make_interval(secs => $5)))
             RETURNING epoch";
        let owner = "SELECT n.id, n.address FROM discord_leases l JOIN nodes n ON n.id = l.owner_node
             WHERE l.kind = $1 AND l.id = $2";
        if let Some(epoch) = self.epoch(lease) {
            return Ok(Claim::Granted { epoch });
        }
        let client = self.db.readers.get().await?;
        let ((kind, id), (node, boot)) = (key(lease), self.db.node());
        loop {
            let silences = self.db.node.silences();
            let attempt = call!(claim, kind.clone(), id, node.clone(), boot, STALE_AFTER.as_secs_f64());
            let granted = run_alone(&client, self.db.readers.route(), attempt).await.map_err(|e| read_failed(&e))?;
            if let Some(row) = granted.first() {
                let epoch = row.get(0);
                self.held.lock().insert(lease, Held { epoch, silences });
                return Ok(Claim::Granted { epoch });
            }
            let owners = read_once(&client, owner, &[&kind, &id]).await.map_err(|e| read_failed(&e))?;
            if let Some(row) = owners.first() {
                return Ok(Claim::OwnedBy(Owner { node: row.get(0), address: row.get(1) }));
            }
            // Its owner has just released it.
        }
    }

    /// Asks the database if this process still has a lease, after all its writes so far. For what is to be done outside of
    /// the database.
    ///
    /// # Errors
    /// Fails with `busy` if it does not have it, or if it may begin nothing because its heartbeat is late.
    pub async fn ensure_held(&self, lease: DiscordLease) -> Result<()> {
        self.write(lease, Ok(()), Vec::new()).await
    }

    /// Gives a lease up after all writes so far. Another node is notified if it is the gateway.
    ///
    /// # Errors
    /// Fails with `busy` if this process does not have it.
    pub async fn release(&self, lease: DiscordLease) -> Result<()> {
        let (kind, id) = key(lease);
        let mut calls = vec![call!("DELETE FROM discord_leases WHERE kind = $1 AND id = $2", kind, id)];
        if matches!(lease, DiscordLease::Gateway { .. }) {
            calls.push(call!("SELECT pg_notify('released', 'discord')"));
        }
        let (fence, epoch) = self.fence(lease)?;
        calls.insert(0, fence);
        let released = self.db.write(Ok(None), calls);
        // Writes from now on do without it, and those before are before this one.
        self.forget(lease, epoch);
        released.await
    }

    /// The epoch in which this process has a lease, as far as it knows.
    pub(super) fn epoch(&self, lease: DiscordLease) -> Option<i64> {
        let held = self.held.lock().get(&lease).copied()?;
        (held.silences == self.db.node.silences()).then_some(held.epoch)
    }

    /// The fence of a lease: the call that fails unless this process has it, with its epoch.
    pub(super) fn fence(&self, lease: DiscordLease) -> Result<(Call, i64)> {
        let ((kind, id), epoch) = (key(lease), self.epoch(lease).ok_or_else(lease_lost)?);
        Ok((call!("SELECT require_lease($1, $2, $3)", kind, id, epoch), epoch))
    }

    /// Queues calls that need a lease, if `checked` refuses none of their parameters.
    pub(super) fn write(&self, lease: DiscordLease, checked: Result<()>, mut calls: Vec<Call>) -> CatalogWrite<()> {
        match checked.and_then(|()| self.fence(lease)) {
            Ok((fence, epoch)) => {
                calls.insert(0, fence);
                self.watch(vec![(lease, epoch)], self.db.write(Ok(None), calls))
            }
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }

    /// The epochs in which this process has shards of the gateway, as far as it knows.
    fn shards(&self) -> Vec<(DiscordLease, i64)> {
        let silences = self.db.node.silences();
        let held = self.held.lock();
        let is_shard = |lease: &DiscordLease, held: &Held| {
            matches!(lease, DiscordLease::Gateway { .. }) && held.silences == silences
        };
        held.iter().filter(|(lease, held)| is_shard(lease, held)).map(|(lease, held)| (*lease, held.epoch)).collect()
    }

    /// The epoch of one of these.
    pub(super) fn shard_epoch(&self) -> Option<i64> {
        self.shards().first().map(|(_, epoch)| *epoch)
    }

    /// The fence of the gateway: the call that fails unless this process has each shard that it believes to have, and at
    /// least one. A process that lost one was silent, and may have lost all.
    pub(super) fn gateway_fence(&self) -> Result<(Call, Vec<(DiscordLease, i64)>)> {
        let shards = self.shards();
        if shards.is_empty() {
            return Err(lease_lost());
        }
        let ids: Vec<i64> = shards.iter().map(|(lease, _)| key(*lease).1).collect();
        let epochs: Vec<i64> = shards.iter().map(|(_, epoch)| *epoch).collect();
        Ok((call!("SELECT require_shards($1, $2)", ids, epochs), shards))
    }

    /// Queues calls that need the gateway, if `checked` refuses none of their parameters.
    pub(super) fn write_gateway(&self, checked: Result<()>, mut calls: Vec<Call>) -> CatalogWrite<()> {
        match checked.and_then(|()| self.gateway_fence()) {
            Ok((fence, shards)) => {
                calls.insert(0, fence);
                self.watch(shards, self.db.write(Ok(None), calls))
            }
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }

    /// Forgets leases if a write finds that another process has one of them.
    pub(super) fn watch<T: Send + 'static>(
        &self,
        used: Vec<(DiscordLease, i64)>,
        write: CatalogWrite<T>,
    ) -> CatalogWrite<T> {
        let leases = self.clone();
        Box::pin(async move {
            let result = write.await;
            if result.as_ref().is_err_and(|failure| *failure == lease_lost()) {
                used.iter().for_each(|(lease, epoch)| leases.forget(*lease, *epoch));
            }
            result
        })
    }

    fn forget(&self, lease: DiscordLease, epoch: i64) {
        let mut held = self.held.lock();
        if held.get(&lease).is_some_and(|held| held.epoch == epoch) {
            held.remove(&lease);
        }
    }
}
