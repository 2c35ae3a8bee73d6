//! The trait [`Ownership`] for PostgreSQL: claims of one agent or of many, and releases.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chorus_base::error::Result;
use chorus_journal::{
    Claim, ContextRow, ConversationRow, DatabaseReport, JournalRead, LateNode, NodeRow, Owner, Ownership,
};
use chorus_proto::Event;
use futures_util::future::BoxFuture;
use tokio::sync::broadcast;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresJournal;
use crate::errors::read_failed;
use crate::node::STALE_AFTER;
use crate::ownership::{Grant, find_other, find_successor};
use crate::rows::{CONVERSATION_COLUMNS, count, read_conversation};
use crate::statement::{Call, call, run_alone};

impl PostgresJournal {
    /// Runs a statement that claims agents and returns their ids and epochs.
    async fn claim_by(&self, claim: Call) -> Result<Vec<Uuid>> {
        // Before the connection, which others may need meanwhile.
        let _no_other_claims = self.claims.write().await;
        let rows = run_alone(&**self.reader().await?, self.readers.route(), claim).await;
        let granted = |row: &Row| {
            let grant = Grant { agent: row.get(0), epoch: row.get(1) };
            self.grants.insert(grant);
            grant.agent
        };
        Ok(rows.map_err(|e| read_failed(&e))?.iter().map(granted).collect())
    }

    /// Returns whether this node leaves agents that nobody owns to others: it drains, and there are others.
    async fn leaves_to_others(&self) -> Result<bool> {
        // They claim for themselves: it does not matter if this node reaches them.
        Ok(self.is_draining() && find_other(&**self.reader().await?, &self.node, Uuid::nil(), &[]).await?.is_some())
    }

    /// Returns a node that takes agents, except this one: for an agent that it was given up to, that node first.
    async fn find_other(&self, agent: Uuid) -> Result<Option<Owner>> {
        find_successor(&**self.reader().await?, &self.node, agent).await
    }
}

impl Ownership for PostgresJournal {
    fn node(&self) -> &str {
        &self.node.id
    }

    fn boot(&self) -> i64 {
        self.node.boot
    }

    fn owns(&self, agent: Uuid) -> bool {
        self.grants.of_agent(agent).is_ok()
    }

    fn epoch(&self, agent: Uuid) -> Option<i64> {
        self.grants.of_agent(agent).ok().map(|grant| grant.epoch)
    }

    fn was_owned(&self, agent: Uuid) -> JournalRead<'_, bool> {
        Box::pin(async move {
            let sql = "SELECT FROM heads WHERE agent_id = $1 AND epoch > 0";
            Ok(!self.query(sql, &[&agent]).await?.is_empty())
        })
    }

    fn claim(&self, agent: Uuid) -> JournalRead<'_, Claim> {
        Box::pin(Self::claim(self, agent))
    }

    fn claim_new(&self, agent: Uuid) -> JournalRead<'_, Claim> {
        Box::pin(self.claim_as(agent, true))
    }

    fn find_successor(&self) -> JournalRead<'_, Option<Owner>> {
        Box::pin(self.find_other(Uuid::nil()))
    }

    fn note_reach(&self, node: &str, is_reached: bool) {
        self.node.note_reach(node, is_reached);
    }

    fn claim_former(&self) -> JournalRead<'_, Vec<Uuid>> {
        let sql =
            "UPDATE heads SET owner_node = $1, owner_boot = $2, epoch = epoch + 1, wanted_by = NULL, released_by = NULL
             WHERE (owner_node = $1 AND owner_boot < $2) OR (owner_node IS NULL AND released_by = $1)
             RETURNING agent_id, epoch";
        Box::pin(self.claim_by(call!(sql, self.node.id.clone(), self.node.boot)))
    }

    fn claim_due(&self, limit: u32) -> JournalRead<'_, Vec<Uuid>> {
        // The condition on the owner is that of a claim of one agent. Rows that another claim holds are left to it. The time of the
        // statement, which does not change during it, can be looked up in the index of slots.
        let sql =
            "UPDATE heads SET owner_node = $1, owner_boot = $2, epoch = epoch + 1, wanted_by = NULL, released_by = NULL
             WHERE agent_id IN (
                 SELECT h.agent_id FROM contexts c JOIN heads h ON h.agent_id = c.agent_id
                 LEFT JOIN nodes n ON n.id = h.owner_node
                 WHERE NOT c.ended
                     AND ((c.due_slot <= (extract(epoch FROM statement_timestamp()) / 300)::bigint
                             AND c.idle_deadline_at < (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint)
                         OR c.turn IS NOT NULL)
                     AND (h.owner_node IS NULL OR n.stopped
                         OR n.heartbeat <= clock_timestamp() - make_interval(secs => $3))
                     AND h.owner_node IS DISTINCT FROM $1
                 ORDER BY c.idle_deadline_at LIMIT $4
                 FOR UPDATE OF h SKIP LOCKED)
             RETURNING agent_id, epoch";
        let stale = STALE_AFTER.as_secs_f64();
        let claim = call!(sql, self.node.id.clone(), self.node.boot, stale, i64::from(limit));
        // Likewise for schedules; the agents that have none of both are never looked at.
        let scheduled =
            "UPDATE heads SET owner_node = $1, owner_boot = $2, epoch = epoch + 1, wanted_by = NULL, released_by = NULL
             WHERE agent_id IN (
                 SELECT h.agent_id FROM schedules s JOIN heads h ON h.agent_id = s.agent_id
                 JOIN agents a ON a.id = s.agent_id AND a.status = 'active'
                 LEFT JOIN nodes n ON n.id = h.owner_node
                 WHERE (s.next_at <= (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint
                         OR s.pending_at IS NOT NULL)
                     AND (h.owner_node IS NULL OR n.stopped
                         OR n.heartbeat <= clock_timestamp() - make_interval(secs => $3))
                     AND h.owner_node IS DISTINCT FROM $1
                 ORDER BY s.next_at LIMIT $4
                 FOR UPDATE OF h SKIP LOCKED)
             RETURNING agent_id, epoch";
        let claim_scheduled = call!(scheduled, self.node.id.clone(), self.node.boot, stale, i64::from(limit));
        Box::pin(async move {
            // The heartbeats ask for that anyway.
            let nobody_can_be_due = !self.node.unowned.load(Ordering::Relaxed);
            if nobody_can_be_due || self.leaves_to_others().await? {
                return Ok(Vec::new());
            }
            let mut claimed = self.claim_by(claim).await?;
            claimed.extend(self.claim_by(claim_scheduled).await?);
            Ok(claimed)
        })
    }

    fn release(&self, agent: Uuid) -> JournalRead<'_, Option<String>> {
        Box::pin(Self::release(self, agent))
    }

    fn hand_over(&self, agent: Uuid, to: String) -> JournalRead<'_, ()> {
        Box::pin(Self::hand_over(self, agent, to))
    }

    fn wanted(&self) -> JournalRead<'_, ()> {
        Box::pin(async move {
            self.node.wanted.notified().await;
            Ok(())
        })
    }

    fn claim_wanted(&self, limit: u32) -> JournalRead<'_, Vec<Uuid>> {
        let sql =
            "UPDATE heads SET owner_node = $1, owner_boot = $2, epoch = epoch + 1, wanted_by = NULL, released_by = NULL
             WHERE agent_id IN (
                 SELECT agent_id FROM heads WHERE wanted_by = $1 AND owner_node IS NULL LIMIT $3
                 FOR UPDATE SKIP LOCKED)
             RETURNING agent_id, epoch";
        let claim = call!(sql, self.node.id.clone(), self.node.boot, i64::from(limit));
        Box::pin(
            async move { if self.leaves_to_others().await? { Ok(Vec::new()) } else { self.claim_by(claim).await } },
        )
    }

    fn owned(&self) -> Vec<Uuid> {
        self.grants.agents()
    }

    fn is_draining(&self) -> bool {
        self.node.draining.load(Ordering::Relaxed)
    }

    fn late_nodes(&self, known: Vec<String>) -> JournalRead<'_, Vec<LateNode>> {
        Box::pin(async move { Ok(self.node.late_nodes(&known).await) })
    }

    fn presume_dead(&self, node: Owner) -> JournalRead<'_, bool> {
        Box::pin(self.make_stale(node))
    }

    fn set_draining(&self, draining: bool) -> JournalRead<'_, ()> {
        Box::pin(self.store_draining(draining))
    }

    fn forget_node(&self, node: String) -> JournalRead<'_, Option<u64>> {
        Box::pin(self.forget_other(node))
    }

    fn nodes(&self) -> JournalRead<'_, Vec<NodeRow>> {
        Box::pin(self.list_nodes())
    }

    fn owners(&self, agents: Vec<Uuid>) -> JournalRead<'_, HashMap<Uuid, String>> {
        Box::pin(async move {
            let sql = "SELECT agent_id, owner_node FROM heads WHERE agent_id = ANY ($1) AND owner_node IS NOT NULL";
            let rows = self.query(sql, &[&agents]).await?;
            Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
    }

    fn count_unclaimed(&self) -> JournalRead<'_, u64> {
        Box::pin(async move {
            // As many rows are read as are counted.
            let sql = "SELECT count(*) FROM (
                     SELECT agent_id FROM heads WHERE owner_node IS NULL
                     UNION ALL
                     SELECT h.agent_id FROM nodes n JOIN heads h ON h.owner_node = n.id
                     WHERE n.stopped OR n.heartbeat <= clock_timestamp() - make_interval(secs => $1)) unclaimed
                 JOIN agents a ON a.id = unclaimed.agent_id AND a.status = 'active'";
            let rows = self.query(sql, &[&STALE_AFTER.as_secs_f64()]).await?;
            Ok(rows.first().map_or(0, |row| count(row, 0)))
        })
    }

    fn publish_profiles(&self, hash: String) -> JournalRead<'_, ()> {
        Box::pin(self.store_profiles(hash))
    }

    fn database(&self) -> JournalRead<'_, DatabaseReport> {
        Box::pin(self.describe_database())
    }

    fn live_contexts_of(&self, agent: Uuid) -> JournalRead<'_, Vec<ContextRow>> {
        Box::pin(Self::live_contexts_of(self, agent))
    }

    fn conversations_of(&self, agent: Uuid) -> JournalRead<'_, Vec<ConversationRow>> {
        Box::pin(async move {
            let sql = format!("SELECT {CONVERSATION_COLUMNS} FROM conversations WHERE agent_id = $1");
            Ok(self.query(&sql, &[&agent]).await?.iter().map(read_conversation).collect())
        })
    }

    fn fallen_silent(&self) -> JournalRead<'_, Vec<String>> {
        Box::pin(async move { Ok(self.node.fallen_silent().await) })
    }

    fn other_nodes(&self) -> JournalRead<'_, Vec<Owner>> {
        Box::pin(async move {
            let sql = "SELECT id, address FROM nodes WHERE id <> $1 AND address <> '' AND NOT stopped
                 AND heartbeat > clock_timestamp() - make_interval(secs => $2) ORDER BY id";
            let rows = self.query(sql, &[&self.node.id, &STALE_AFTER.as_secs_f64()]).await?;
            Ok(rows.iter().map(|row| Owner { node: row.get(0), address: row.get(1) }).collect())
        })
    }

    fn subscribe_elsewhere(&self) -> JournalRead<'_, broadcast::Receiver<Arc<Event>>> {
        Box::pin(self.remote_events.subscribe(&self.readers, &self.node))
    }

    fn held(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.node.held())
    }

    fn hold_ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.node.hold_ended())
    }

    fn lost(&self) -> JournalRead<'_, Vec<Uuid>> {
        Box::pin(async move { Ok(self.grants.lost().await) })
    }
}
