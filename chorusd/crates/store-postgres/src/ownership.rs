//! Which agents this process owns, in which epoch, and how it claims and releases them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use chorus_base::error::Result;
use chorus_base::sync::Mutex;
use chorus_journal::{Claim, Owner};
use chorus_session::stored_message::ContextNo;
use tokio::sync::Notify;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::errors::{overtaken, read_failed};
use crate::node::{Node, STALE_AFTER};
use crate::route::Route;
use crate::statement::{call, read_once, run_alone};

/// Ownership of an agent, from a claim until the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) agent: Uuid,
    pub(crate) epoch: i64,
}

/// The agents that this process owns.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    inner: Mutex<Inner>,
    /// Told when another node has taken an agent over.
    lost: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    agents: HashMap<Uuid, i64>,
    /// Each context with the ownership in which it was read or begun: a context that is still in memory after the
    /// agent was away must not be written to in the next epoch.
    contexts: HashMap<ContextNo, Grant>,
    /// The contexts of each agent.
    by_agent: HashMap<Uuid, HashSet<ContextNo>>,
    /// Agents that other nodes have taken over and that [`Grants::lost`] has not returned yet.
    lost: Vec<Uuid>,
}

impl Inner {
    fn insert_context(&mut self, context: ContextNo, grant: Grant) {
        self.contexts.insert(context, grant);
        self.by_agent.entry(grant.agent).or_default().insert(context);
    }

    fn remove_context(&mut self, context: ContextNo) {
        let Some(grant) = self.contexts.remove(&context) else { return };
        if let Some(contexts) = self.by_agent.get_mut(&grant.agent) {
            contexts.remove(&context);
            if contexts.is_empty() {
                self.by_agent.remove(&grant.agent);
            }
        }
    }
}

impl Grants {
    /// Returns the ownership of an agent.
    pub(crate) fn of_agent(&self, agent: Uuid) -> Result<Grant> {
        let epoch = self.inner.lock().agents.get(&agent).copied();
        epoch.map(|epoch| Grant { agent, epoch }).ok_or_else(overtaken)
    }

    /// Returns the ownership in which a context was read or begun.
    pub(crate) fn of_context(&self, context: ContextNo) -> Result<Grant> {
        self.inner.lock().contexts.get(&context).copied().ok_or_else(overtaken)
    }

    /// Returns the ownership for a record of a context. One with the number 0 begins the context, in the present
    /// ownership of the agent.
    pub(crate) fn of_append(&self, context: ContextNo, number: u32, agent: Uuid) -> Result<Grant> {
        let mut inner = self.inner.lock();
        if number > 0 || inner.contexts.contains_key(&context) {
            return inner.contexts.get(&context).copied().ok_or_else(overtaken);
        }
        let epoch = *inner.agents.get(&agent).ok_or_else(overtaken)?;
        let grant = Grant { agent, epoch };
        inner.insert_context(context, grant);
        Ok(grant)
    }

    /// Records a context that was read in an ownership.
    pub(crate) fn add_context(&self, context: ContextNo, grant: Grant) {
        self.inner.lock().insert_context(context, grant);
    }

    /// Forgets a context that is deleted.
    pub(crate) fn remove_context(&self, context: ContextNo) {
        self.inner.lock().remove_context(context);
    }

    /// Records an ownership, unless a later one is known: of two claims at once, the answers may come in any order.
    pub(crate) fn insert(&self, grant: Grant) {
        let mut inner = self.inner.lock();
        let epoch = inner.agents.entry(grant.agent).or_insert(grant.epoch);
        *epoch = grant.epoch.max(*epoch);
    }

    /// Forgets an ownership that has ended, and its contexts. Returns whether it was the present one.
    pub(crate) fn remove(&self, grant: Grant) -> bool {
        let mut inner = self.inner.lock();
        let is_present = inner.agents.get(&grant.agent) == Some(&grant.epoch);
        if is_present {
            inner.agents.remove(&grant.agent);
        }
        let ended = inner.by_agent.get(&grant.agent).into_iter().flatten();
        let ended: Vec<ContextNo> =
            ended.filter(|context| inner.contexts.get(context) == Some(&grant)).copied().collect();
        ended.into_iter().for_each(|context| inner.remove_context(context));
        is_present
    }

    /// As [`Grants::remove`], for an agent that another node has taken over.
    pub(crate) fn remove_lost(&self, grant: Grant) {
        if self.remove(grant) {
            self.inner.lock().lost.push(grant.agent);
            self.lost.notify_one();
        }
    }

    /// Waits until other nodes have taken agents over, and returns those.
    pub(crate) async fn lost(&self) -> Vec<Uuid> {
        loop {
            let lost = std::mem::take(&mut self.inner.lock().lost);
            if !lost.is_empty() {
                return lost;
            }
            self.lost.notified().await;
        }
    }

    /// Returns all agents that this process owns.
    pub(crate) fn agents(&self) -> Vec<Uuid> {
        self.inner.lock().agents.keys().copied().collect()
    }

    /// Returns all present ownerships.
    pub(crate) fn all(&self) -> Vec<Grant> {
        self.inner.lock().agents.iter().map(|(agent, epoch)| Grant { agent: *agent, epoch: *epoch }).collect()
    }
}

/// Claims an agent, unless this process owns it already, and tells who owns it if this process may not have it. A node that
/// drains leaves it to another one, unless the agent is new.
pub(crate) async fn claim(
    client: &Client,
    route: Route,
    node: &Arc<Node>,
    grants: &Grants,
    (agent, is_new): (Uuid, bool),
) -> Result<Claim> {
    let insert = "INSERT INTO heads (agent_id, epoch) VALUES ($1, 0) ON CONFLICT DO NOTHING";
    let claim = "UPDATE heads SET owner_node = $2, owner_boot = $3, epoch = epoch + 1, wanted_by = NULL,
             released_by = NULL
         WHERE agent_id = $1 AND (
             owner_node IS NULL
             OR (owner_node = $2 AND owner_boot <= $3)
             OR (owner_node <> $2 AND NOT EXISTS (
                 SELECT FROM nodes WHERE id = owner_node AND NOT stopped
                     AND heartbeat > clock_timestamp() - make_interval(secs => $4))))
         RETURNING epoch";
    let owner = "SELECT n.id, n.address FROM heads h JOIN nodes n ON n.id = h.owner_node WHERE h.agent_id = $1";
    // What is in memory belongs to this epoch; if it has passed, a write will say so.
    if let Ok(Grant { epoch, .. }) = grants.of_agent(agent) {
        return Ok(Claim::Granted { epoch });
    }
    if !is_new
        && node.draining.load(Ordering::Relaxed)
        && let Some(other) = find_successor(client, node, agent).await?
    {
        return Ok(Claim::OwnedBy(other));
    }
    loop {
        let stale = STALE_AFTER.as_secs_f64();
        let attempt = call!(claim, agent, node.id.clone(), node.boot, stale);
        if let Some(row) = run_alone(client, route, attempt).await.map_err(|e| read_failed(&e))?.first() {
            let epoch = row.get(0);
            grants.insert(Grant { agent, epoch });
            return Ok(Claim::Granted { epoch });
        }
        if let Some(row) = read_once(client, owner, &[&agent]).await.map_err(|e| read_failed(&e))?.first() {
            return Ok(Claim::OwnedBy(Owner { node: row.get(0), address: row.get(1) }));
        }
        // There is no row yet, or its owner has just released it.
        run_alone(client, route, call!(insert, agent)).await.map_err(|e| read_failed(&e))?;
    }
}

/// Returns the node that is to have an agent instead of a draining one: its owner if that is well, else the one that it was
/// given up to, else any that takes agents and was not found unreachable lately. `None` if there is none, or if the row still names the draining node.
pub(crate) async fn find_successor(client: &Client, node: &Node, agent: Uuid) -> Result<Option<Owner>> {
    find_other(client, node, agent, &node.unreached()).await
}

/// Returns the node that is to have an agent instead of a draining one, as [`find_successor`] does, without those in `except` unless one of
/// them owns it.
pub(crate) async fn find_other(client: &Client, node: &Node, agent: Uuid, except: &[String]) -> Result<Option<Owner>> {
    let sql = "SELECT n.id, n.address FROM nodes n LEFT JOIN heads h ON h.agent_id = $1
         WHERE n.id <> $2 AND NOT n.stopped AND n.heartbeat > clock_timestamp() - make_interval(secs => $3)
             AND (n.id IS NOT DISTINCT FROM h.owner_node
                 OR (n.address <> '' AND NOT n.draining AND n.id <> ALL ($4)))
             AND h.owner_node IS DISTINCT FROM $2
         ORDER BY (n.id IS NOT DISTINCT FROM h.owner_node) DESC, (n.id IS NOT DISTINCT FROM h.wanted_by) DESC, random()
         LIMIT 1";
    let stale = STALE_AFTER.as_secs_f64();
    let rows =
        read_once(client, sql, &[&agent, &node.id, &stale, &except.to_vec()]).await.map_err(|e| read_failed(&e))?;
    Ok(rows.first().map(|row| Owner { node: row.get(0), address: row.get(1) }))
}

/// Asks the owner of an agent to release it to this process.
pub(crate) async fn want(client: &Client, route: Route, node: &Node, agent: Uuid) -> Result<()> {
    let sql = "UPDATE heads SET wanted_by = $2 WHERE agent_id = $1 AND owner_node <> $2";
    run_alone(client, route, call!(sql, agent, node.id.clone())).await.map_err(|e| read_failed(&e))?;
    Ok(())
}
