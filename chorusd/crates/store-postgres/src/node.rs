//! This process as a node of the cluster: its boot number and its heartbeat.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use tokio::sync::{Notify, watch};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::OnFatal;
use crate::connection::{DatabaseUrl, OnNotification};
use crate::errors::read_failed;
use crate::late_nodes::{self, OtherNode};
use crate::ownership::Grants;
use crate::route::Route;
use crate::statement::{call, read_once, run_alone};
use crate::writer::RECONNECT_DELAY;

/// Time between two heartbeats of a node.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// Age of a heartbeat, by the clock of the database, from which others may claim the agents of a node.
pub const STALE_AFTER: Duration = Duration::from_secs(8);

/// Time after the start of its last good heartbeat in which a node begins writes, by its monotonic clock.
pub const HOLD_LIMIT: Duration = Duration::from_secs(6);

/// Time for which a node that was not reached gets no requests for agents that nobody owns.
const UNREACHED_FOR: Duration = Duration::from_secs(10);

/// Name of a node, unique in the cluster, the address at which other nodes reach it, and what they have to know before it does anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeName {
    pub id: String,
    pub address: String,
    /// It has the workspaces of agents in a directory that all nodes share.
    pub shares_workspaces: bool,
    /// Id of its home. Without one, it takes the place of any other process that runs as this node.
    pub home: Option<Uuid>,
}

/// This process: the node and its boot number.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) boot: i64,
    /// Start of the last heartbeat that the database accepted.
    last_heartbeat: Mutex<Instant>,
    /// Milliseconds that it took.
    lag: AtomicI64,
    /// Told of each such heartbeat.
    beats: watch::Sender<()>,
    /// By the database's clock its heartbeat was stale, and nobody has asked since what it still owns.
    was_silent: AtomicBool,
    /// How often its heartbeat was found stale.
    silences: AtomicU64,
    /// The nodes whose heartbeat was stale at that time.
    silent: watch::Sender<Vec<String>>,
    /// The other nodes that were not, and when each sent its last heartbeat.
    pub(crate) others: watch::Sender<Vec<OtherNode>>,
    /// There may be agents that no running node has.
    pub(crate) unowned: AtomicBool,
    /// Told when an agent was given up to this node, or may have been.
    pub(crate) wanted: Arc<Notify>,
    /// It claims no agents.
    pub(crate) draining: AtomicBool,
    /// Nodes that this one did not reach, and when.
    unreached: Mutex<HashMap<String, Instant>>,
}

impl Node {
    /// Registers this process. Writes that an earlier process of the node has sent are refused from here on.
    /// The client receives notifications for `wanted` from here on.
    ///
    /// # Errors
    /// Fails with `conflict` if a node of this name runs with another home; nothing has changed then.
    pub(crate) async fn start(
        client: &Client,
        route: Route,
        name: &NodeName,
        version: &str,
        wanted: Arc<Notify>,
    ) -> Result<Arc<Self>> {
        let begun = Instant::now();
        let sql = "INSERT INTO nodes (id, boot, address, version, heartbeat, stopped, shares_workspaces, home)
                 VALUES ($1, 1, $2, $3, clock_timestamp(), false, $4, $5)
             ON CONFLICT (id) DO UPDATE SET boot = nodes.boot + 1, address = $2, version = $3,
                 heartbeat = clock_timestamp(), stopped = false, draining = false, forgotten = false,
                 shares_workspaces = $4, home = $5, load_percent = NULL, lag_ms = NULL
             WHERE $5 IS NULL OR nodes.home IS NULL OR nodes.home = $5 OR nodes.stopped
                 OR nodes.heartbeat <= clock_timestamp() - make_interval(secs => $6)
             RETURNING boot";
        let register = call!(
            sql,
            name.id.clone(),
            name.address.clone(),
            version.to_owned(),
            name.shares_workspaces,
            name.home,
            STALE_AFTER.as_secs_f64()
        );
        let rows = run_alone(client, route, register).await.map_err(|e| read_failed(&e))?;
        let boot: i64 = rows.first().ok_or_else(|| runs_elsewhere(&name.id))?.get(0);
        let sql = "INSERT INTO writers VALUES ($1, $2, 0, 0, 0) ON CONFLICT (node) DO UPDATE SET boot = $2
             WHERE writers.boot < $2 RETURNING boot";
        let write = call!(sql, name.id.clone(), boot);
        if run_alone(client, route, write).await.map_err(|e| read_failed(&e))?.is_empty() {
            return Err(replaced(&name.id));
        }
        listen(client, route).await?;
        Ok(Arc::new(Self {
            id: name.id.clone(),
            boot,
            last_heartbeat: Mutex::new(begun),
            lag: AtomicI64::new(millis(begun.elapsed())),
            beats: watch::Sender::default(),
            was_silent: AtomicBool::new(false),
            silences: AtomicU64::new(0),
            silent: watch::Sender::default(),
            others: watch::Sender::default(),
            unowned: AtomicBool::new(true),
            wanted,
            draining: AtomicBool::new(false),
            unreached: Mutex::default(),
        }))
    }

    /// Notes if this node has reached another one.
    pub(crate) fn note_reach(&self, node: &str, is_reached: bool) {
        let mut unreached = self.unreached.lock();
        if is_reached {
            unreached.remove(node);
        } else {
            unreached.insert(node.to_owned(), Instant::now());
        }
    }

    /// Returns the nodes that this one did not reach lately.
    pub(crate) fn unreached(&self) -> Vec<String> {
        let mut unreached = self.unreached.lock();
        unreached.retain(|_, since| since.elapsed() < UNREACHED_FOR);
        unreached.keys().cloned().collect()
    }

    /// Renews the heartbeat.
    ///
    /// # Errors
    /// Fails with `conflict` if another process has started as this node, which must end this one.
    pub(crate) async fn send_heartbeat(&self, client: &Client, route: Route) -> Result<()> {
        let begun = Instant::now();
        // With the nodes that are silent, whether agents were given up to this one, and whether no running node has some, so that
        // nobody has to ask for that.
        let sql = "UPDATE nodes SET heartbeat = clock_timestamp(), load_percent = $4, lag_ms = $5
             FROM (SELECT heartbeat FROM nodes WHERE id = $1 FOR UPDATE) AS last,
                 (SELECT coalesce(array_agg(other.id), '{}') AS ids, coalesce(array_agg(other.address), '{}') AS addresses,
                         coalesce(array_agg(extract(epoch FROM clock_timestamp() - other.heartbeat)::float8), '{}') AS ages
                     FROM nodes other WHERE other.id <> $1 AND NOT other.stopped AND other.address <> ''
                         AND other.heartbeat > clock_timestamp() - make_interval(secs => $3)) AS others
             WHERE nodes.id = $1 AND nodes.boot = $2 AND NOT nodes.stopped
             RETURNING last.heartbeat <= clock_timestamp() - make_interval(secs => $3), ARRAY(SELECT other.id FROM nodes other WHERE other.id <> $1 AND NOT other.stopped
                 AND other.heartbeat <= clock_timestamp() - make_interval(secs => $3) ORDER BY other.id),
                 EXISTS (SELECT FROM heads WHERE wanted_by = $1 AND owner_node IS NULL),
                 EXISTS (SELECT FROM heads WHERE owner_node IS NULL)
                     OR EXISTS (SELECT FROM nodes other WHERE other.id <> $1
                         AND (other.stopped OR other.heartbeat <= clock_timestamp() - make_interval(secs => $3))
                         AND EXISTS (SELECT FROM heads WHERE owner_node = other.id)),
                 others.ids, others.addresses, others.ages";
        let lag = self.lag.load(Ordering::Relaxed);
        let renew = call!(sql, self.id.clone(), self.boot, STALE_AFTER.as_secs_f64(), load_percent(), lag);
        let rows = run_alone(client, route, renew).await.map_err(|e| read_failed(&e))?;
        let Some(row) = rows.first() else { return Err(self.why_refused(client).await) };
        // An answer that came too late was lost, and the row is fresh since.
        if row.get(0) || self.heartbeat_age() >= HOLD_LIMIT {
            self.was_silent.store(true, Ordering::Relaxed);
            self.silences.fetch_add(1, Ordering::Relaxed);
        }
        let silent: Vec<String> = row.get(1);
        if row.get(2) {
            self.wanted.notify_one();
        }
        self.unowned.store(row.get(3), Ordering::Relaxed);
        self.others.send_replace(late_nodes::read_others(row.get(4), row.get(5), row.get(6)));
        *self.last_heartbeat.lock() = begun;
        self.lag.store(millis(begun.elapsed()), Ordering::Relaxed);
        self.beats.send_replace(());
        self.silent.send_if_modified(|known| {
            let is_new = *known != silent;
            *known = silent;
            is_new
        });
        Ok(())
    }

    /// Returns the reason why this process may not be the node any more.
    pub(crate) async fn why_refused(&self, client: &Client) -> Error {
        let sql = "SELECT FROM nodes WHERE id = $1 AND forgotten";
        match read_once(client, sql, &[&self.id]).await {
            Ok(rows) if !rows.is_empty() => {
                Error::new(ErrorKind::Conflict, format!("the node {:?} was forgotten while it was silent", self.id))
                    .hint("start it again, if it is to be a node of the cluster")
            }
            _ => replaced(&self.id),
        }
    }

    /// Waits until other nodes have fallen silent, and returns those.
    pub(crate) async fn fallen_silent(&self) -> Vec<String> {
        let mut silent = self.silent.subscribe();
        let mut known = silent.borrow_and_update().clone();
        // An error is impossible: this node has the sender.
        while silent.changed().await.is_ok() {
            let now = silent.borrow_and_update().clone();
            let new: Vec<String> = now.iter().filter(|node| !known.contains(node)).cloned().collect();
            if !new.is_empty() {
                return new;
            }
            known = now;
        }
        Vec::new()
    }

    /// Ends the heartbeat: others may claim what this process owns. The last statement of a process.
    pub(crate) async fn stop(&self, client: &Client, route: Route) -> Result<()> {
        let sql = "UPDATE nodes SET stopped = true WHERE id = $1 AND boot = $2";
        run_alone(client, route, call!(sql, self.id.clone(), self.boot)).await.map_err(|e| read_failed(&e))?;
        Ok(())
    }

    /// Waits until the last good heartbeat is recent enough to begin something.
    pub(crate) async fn held(&self) {
        let mut beats = self.beats.subscribe();
        // An error is impossible: this node has the sender.
        while !self.may_begin() && beats.changed().await.is_ok() {}
    }

    /// Waits until it is not recent enough any more.
    pub(crate) async fn hold_ended(&self) {
        loop {
            let age = self.heartbeat_age();
            if age >= HOLD_LIMIT {
                return;
            }
            tokio::time::sleep(HOLD_LIMIT.saturating_sub(age)).await;
        }
    }

    /// Returns how often this node's heartbeat was stale by the database's clock, so that others may have claimed what it had.
    pub(crate) fn silences(&self) -> u64 {
        self.silences.load(Ordering::Relaxed)
    }

    /// Returns whether the last good heartbeat is recent enough to begin something.
    pub(crate) fn may_begin(&self) -> bool {
        self.heartbeat_age() < HOLD_LIMIT
    }

    /// Returns the time since the start of the last good heartbeat.
    pub(crate) fn heartbeat_age(&self) -> Duration {
        self.last_heartbeat.lock().elapsed()
    }
}

/// The channel of notifications about agents that were given up. The payload is the node that is to claim.
pub(crate) const RELEASED: &str = "released";

/// Returns what a connection does with notifications for a node.
pub(crate) fn notify_wanted(node: &str, wanted: &Arc<Notify>) -> OnNotification {
    let (node, wanted) = (node.to_owned(), wanted.clone());
    Box::new(move |payload| {
        if payload == node {
            wanted.notify_one();
        }
    })
}

/// Makes a connection receive the notifications. Over a pooler, another client might get them: then only the heartbeat
/// asks.
async fn listen(client: &Client, route: Route) -> Result<()> {
    if route == Route::Pooled {
        return Ok(());
    }
    client.batch_execute(&format!("LISTEN {RELEASED}")).await.map_err(|e| read_failed(&e))
}

/// Renews the heartbeat until the task is aborted, or another process has started as this node.
pub(crate) async fn send_heartbeats(
    url: DatabaseUrl,
    node: Arc<Node>,
    grants: Arc<Grants>,
    client: Client,
    on_fatal: OnFatal,
) {
    let mut client = Some(client);
    loop {
        tokio::time::sleep(if client.is_some() { HEARTBEAT_INTERVAL } else { RECONNECT_DELAY }).await;
        let renew = async {
            let connected = match client.take() {
                Some(connected) => connected,
                None => {
                    let connected = url.connect_and_listen(notify_wanted(&node.id, &node.wanted)).await?;
                    listen(&connected, url.route()).await?;
                    connected
                }
            };
            node.send_heartbeat(&connected, url.route()).await?;
            if node.was_silent.load(Ordering::Relaxed) {
                // Others may have taken agents over, and no write has told so yet.
                forget_lost_agents(&connected, &node, &grants).await?;
                node.was_silent.store(false, Ordering::Relaxed);
            }
            Ok::<_, Error>(connected)
        };
        match tokio::time::timeout(HEARTBEAT_INTERVAL, renew).await {
            Ok(Ok(connected)) => client = Some(connected),
            Ok(Err(failure)) if failure.kind == ErrorKind::Conflict => {
                on_fatal(failure);
                return;
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Forgets the ownerships that have ended while this node was silent.
async fn forget_lost_agents(client: &Client, node: &Node, grants: &Grants) -> Result<()> {
    // Before the answer is read: what is granted later is not in it.
    let held = grants.all();
    let sql = "SELECT agent_id, epoch FROM heads WHERE owner_node = $1 AND owner_boot = $2";
    let rows = read_once(client, sql, &[&node.id, &node.boot]).await.map_err(|e| read_failed(&e))?;
    let owned: HashSet<(Uuid, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    held.into_iter()
        .filter(|grant| !owned.contains(&(grant.agent, grant.epoch)))
        .for_each(|grant| grants.remove_lost(grant));
    Ok(())
}

/// The error of a process as whose node another one has started.
pub(crate) fn replaced(node: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("another chorusd has started as the node {node:?}"))
        .hint("each daemon of a cluster needs a different name")
}

/// The error of a daemon whose name another one has.
fn runs_elsewhere(node: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("the node {node:?} runs already, with another home"))
        .hint("give this daemon another name: node in the table [cluster]; if the other one has ended, wait 10 seconds")
}

/// Load average of the machine over the last minute, in percent of its processors.
fn load_percent() -> i64 {
    // In units of 1/65536.
    let load = rustix::system::sysinfo().loads[0];
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    i64::try_from((load as u64).saturating_mul(100) / (65_536 * processors)).unwrap_or(i64::MAX)
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// The error while the heartbeat is late.
pub(crate) fn heartbeat_is_late() -> Error {
    Error::new(ErrorKind::Busy, "this node has lost its connection to PostgreSQL").hint("try again in a moment")
}
