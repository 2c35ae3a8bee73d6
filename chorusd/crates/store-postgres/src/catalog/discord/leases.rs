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
        DiscordLease::Gateway => ("gateway".to_owned(), 0),
        DiscordLease::Channel(channel) => ("channel".to_owned(), channel.cast_signed()),
    }
}

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
        if lease == DiscordLease::Gateway {
            calls.push(call!("SELECT pg_notify('released', 'discord')"));
        }
        let epoch = self.epoch(lease);
        let released = self.write(lease, Ok(()), calls).await;
        epoch.inspect(|epoch| self.forget(lease, *epoch));
        released
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
                self.watch(lease, epoch, self.db.write(Ok(None), calls))
            }
            Err(failure) => Box::pin(async move { Err(failure) }),
        }
    }

    /// Forgets a lease if a write finds that another process has it.
    pub(super) fn watch<T: Send + 'static>(
        &self,
        lease: DiscordLease,
        epoch: i64,
        write: CatalogWrite<T>,
    ) -> CatalogWrite<T> {
        let leases = self.clone();
        Box::pin(async move {
            let result = write.await;
            if result.as_ref().is_err_and(|failure| *failure == lease_lost()) {
                leases.forget(lease, epoch);
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
