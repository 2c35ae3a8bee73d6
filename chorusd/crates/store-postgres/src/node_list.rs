//! The nodes of the cluster as people see them, and the database that they share.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use chorus_base::error::{Error, Result};
use chorus_journal::{DatabaseReport, NodeRow, NodeState};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PostgresJournal;
use crate::connection::MAX_CONNECTIONS;
use crate::errors::read_failed;
use crate::node::{STALE_AFTER, replaced};
use crate::route::Route;
use crate::rows::count;
use crate::statement::{call, run_alone};

impl PostgresJournal {
    /// Lists the nodes of the cluster by name.
    pub(crate) async fn list_nodes(&self) -> Result<Vec<NodeRow>> {
        let sql = "SELECT n.id, n.address, n.version, n.boot, n.stopped, n.draining,
                 extract(epoch FROM clock_timestamp() - n.heartbeat)::double precision, n.profiles,
                 coalesce(o.agents, 0), coalesce(o.contexts, 0), n.shares_workspaces, n.load_percent, n.lag_ms
             FROM nodes n LEFT JOIN (
                 SELECT h.owner_node, count(*) AS agents, sum(live.contexts)::bigint AS contexts
                 FROM heads h JOIN agents a ON a.id = h.agent_id AND a.status = 'active'
                 CROSS JOIN LATERAL (
                     SELECT count(*) AS contexts FROM contexts c WHERE c.agent_id = h.agent_id AND NOT c.ended) live
                 WHERE h.owner_node IS NOT NULL GROUP BY h.owner_node) o ON o.owner_node = n.id
             WHERE NOT (n.forgotten AND n.stopped)
             ORDER BY n.id";
        Ok(self.query(sql, &[]).await?.iter().map(read_node).collect())
    }

    /// Forgets a node that does not run. Returns the number of agents that it had; `None` if it runs.
    pub(crate) async fn forget_other(&self, node: String) -> Result<Option<u64>> {
        let forget = call!("SELECT forget_node($1, $2)", node, STALE_AFTER.as_secs_f64());
        let rows = run_alone(&**self.reader().await?, self.readers.route(), forget).await;
        let freed: Option<i64> = rows.map_err(|e| read_failed(&e))?.first().and_then(|row| row.get(0));
        Ok(freed.map(i64::cast_unsigned))
    }

    /// Stores whether this node claims agents.
    pub(crate) async fn store_draining(&self, draining: bool) -> Result<()> {
        // Before others read it, so that no claim comes behind it.
        let before = self.node.draining.swap(draining, Ordering::Relaxed);
        let sql = "UPDATE nodes SET draining = $3 WHERE id = $1 AND boot = $2 RETURNING id";
        let stored = self.change_node(call!(sql, self.node.id.clone(), self.node.boot, draining)).await;
        if stored.is_err() {
            self.node.draining.store(before, Ordering::Relaxed);
        }
        stored
    }

    /// Stores the hash of the permission profiles of this node.
    pub(crate) async fn store_profiles(&self, hash: String) -> Result<()> {
        let sql = "UPDATE nodes SET profiles = $3 WHERE id = $1 AND boot = $2 RETURNING id";
        self.change_node(call!(sql, self.node.id.clone(), self.node.boot, hash)).await
    }

    /// Returns the id of the cluster, and whether its bucket has been marked with it.
    ///
    /// # Errors
    /// `storage_unavailable`, `storage_failed`.
    pub async fn cluster_id(&self) -> Result<(Uuid, bool)> {
        let rows = self.query("SELECT id, has_bucket FROM cluster", &[]).await?;
        let row = rows.first().ok_or_else(no_row)?;
        Ok((row.get(0), row.get(1)))
    }

    /// Notes that the bucket of the cluster is marked with its id.
    ///
    /// # Errors
    /// As [`PostgresJournal::cluster_id`].
    pub async fn note_marked_bucket(&self) -> Result<()> {
        let note = call!("UPDATE cluster SET has_bucket = true WHERE NOT has_bucket");
        run_alone(&**self.reader().await?, self.readers.route(), note).await.map_err(|e| read_failed(&e))?;
        Ok(())
    }

    async fn change_node(&self, change: crate::statement::Call) -> Result<()> {
        let rows = run_alone(&**self.reader().await?, self.readers.route(), change).await;
        let is_there = !rows.map_err(|e| read_failed(&e))?.is_empty();
        if is_there { Ok(()) } else { Err(replaced(&self.node.id)) }
    }

    /// Describes the database.
    pub(crate) async fn describe_database(&self) -> Result<DatabaseReport> {
        // The first statement may have to connect.
        self.query("SELECT 1", &[]).await?;
        let (begun, before) = (Instant::now(), SystemTime::now());
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let rows = self.query(sql, &[]).await?;
        let took = begun.elapsed();
        let there: i64 = rows.first().ok_or_else(no_row)?.get(0);
        let here = before.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + took / 2;
        let sql = "SELECT current_setting('server_version'), current_setting('synchronous_commit'),
                 current_setting('synchronous_standby_names'), current_setting('wal_level'), current_setting('fsync'),
                 current_setting('full_page_writes'),
                 current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
                 (SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database)";
        let rows = self.query(sql, &[]).await?;
        let row = rows.first().ok_or_else(no_row)?;
        let number = |column| u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX);
        Ok(DatabaseReport {
            version: row.get(0),
            synchronous_commit: row.get(1),
            synchronous_standby_names: row.get(2),
            wal_level: row.get(3),
            fsync: row.get(4),
            full_page_writes: row.get(5),
            max_connections: number(6),
            connections: number(7),
            connections_per_node: MAX_CONNECTIONS,
            is_pooled: self.readers.route() == Route::Pooled,
            clock_ahead: nanos(here).saturating_sub(there.saturating_mul(1_000)),
            clock_precision: nanos(took),
        })
    }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

fn no_row() -> Error {
    Error::internal("PostgreSQL returned no row")
}

fn read_node(row: &Row) -> NodeRow {
    // Negative if the clock of the database was set back.
    let age = Duration::try_from_secs_f64(row.get::<_, f64>(6).max(0.0)).unwrap_or(Duration::MAX);
    let state = match (row.get(4), age >= STALE_AFTER, row.get(5)) {
        (true, ..) => NodeState::Stopped,
        (false, true, _) => NodeState::Silent,
        (false, false, true) => NodeState::Draining,
        (false, false, false) => NodeState::Running,
    };
    NodeRow {
        name: row.get(0),
        address: row.get(1),
        version: row.get(2),
        boot: row.get(3),
        state,
        heartbeat_age: age,
        agents: count(row, 8),
        contexts: count(row, 9),
        profiles: row.get(7),
        shares_workspaces: row.get(10),
        load_percent: row.get::<_, Option<i64>>(11).map(i64::unsigned_abs),
        lag: row.get::<_, Option<i64>>(12).map(|millis| Duration::from_millis(millis.unsigned_abs())),
    }
}
