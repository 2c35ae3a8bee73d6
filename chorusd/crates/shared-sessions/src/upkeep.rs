//! Upkeep from time to time: the sweep of the bucket, files of deleted sessions, and the limit of the copies.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::Result;
use chorus_catalog::{SessionTable, WorkspaceBundleTable};
use chorus_session_objects::{
    Comparison, ListedBodies, NamedBodies, SweepReport, compare_bodies, compare_bundles, sweep, sweep_bundles,
};
use futures_util::future::BoxFuture;

use crate::SharedSessions;

/// Time between two looks at the copies.
const EVICTION_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Time between two sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Time from a start to the first sweep: not every restart sweeps.
const FIRST_SWEEP: Duration = Duration::from_secs(60 * 60);

/// The rows that the sweep asks.
struct Rows<'a>(&'a Arc<dyn SessionTable>);

impl NamedBodies for Rows<'_> {
    fn named<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<HashSet<String>>> {
        self.0.named_bodies(keys.to_vec())
    }
}

impl ListedBodies for Rows<'_> {
    fn page(&self, after: Option<String>, limit: usize) -> BoxFuture<'_, Result<Vec<String>>> {
        self.0.body_keys(after, limit as u64)
    }
}

/// The rows of bundles that the sweep asks.
struct BundleRows<'a>(&'a Arc<dyn WorkspaceBundleTable>);

impl NamedBodies for BundleRows<'_> {
    fn named<'a>(&'a self, keys: &'a [String]) -> BoxFuture<'a, Result<HashSet<String>>> {
        self.0.named(keys.to_vec())
    }
}

impl ListedBodies for BundleRows<'_> {
    fn page(&self, after: Option<String>, limit: usize) -> BoxFuture<'_, Result<Vec<String>>> {
        self.0.keys(after, limit as u64)
    }
}

impl SharedSessions {
    /// Compares rows and bodies, as [`compare_bodies`] does.
    pub(crate) async fn compare_sessions(&self, found: &mut Comparison) -> Result<()> {
        compare_bodies(&*self.bucket, &self.prefix, &Rows(&self.sessions), found).await
    }

    /// Compares rows and bundles, as [`compare_bundles`] does.
    pub(crate) async fn compare_workspaces(&self, found: &mut Comparison) -> Result<()> {
        compare_bundles(&*self.bucket, &self.prefix, &BundleRows(&self.workspaces), found).await
    }

    /// Deletes bodies that no row names and that are a day old. Several nodes may do it at once.
    ///
    /// # Errors
    /// As [`sweep`].
    pub async fn sweep(&self) -> Result<SweepReport> {
        sweep(&*self.bucket, &self.prefix, &Rows(&self.sessions)).await
    }

    /// Does the same with the bundles of workspaces.
    ///
    /// # Errors
    /// As [`sweep`].
    pub async fn sweep_workspaces(&self) -> Result<SweepReport> {
        sweep_bundles(&*self.bucket, &self.prefix, &BundleRows(&self.workspaces)).await
    }

    pub(crate) async fn keep_up(&self) {
        let mut next_sweep = self.clock.ticks().after(FIRST_SWEEP);
        loop {
            match self.delete_leftovers().await {
                Ok(0) => {}
                Ok(deleted) => tracing::info!(deleted, "deleted the files of sessions that were deleted elsewhere"),
                Err(failure) => tracing::warn!(%failure, "cannot delete the files of deleted sessions; retrying"),
            }
            match self.evict().await {
                Ok(report) if report.deleted > 0 => {
                    tracing::info!(deleted = report.deleted, bytes = report.bytes, "deleted copies of sessions");
                }
                Ok(_) => {}
                Err(failure) => tracing::warn!(%failure, "cannot delete copies of sessions"),
            }
            if self.clock.ticks() >= next_sweep {
                next_sweep = self.clock.ticks().after(SWEEP_INTERVAL);
                match self.sweep().await {
                    Ok(report) => tracing::info!(?report, "swept the bodies of sessions"),
                    Err(failure) => tracing::warn!(%failure, "cannot sweep the bodies of sessions; retrying tomorrow"),
                }
                match self.sweep_workspaces().await {
                    Ok(report) => tracing::info!(?report, "swept the bundles of workspaces"),
                    Err(failure) => {
                        tracing::warn!(%failure, "cannot sweep the bundles of workspaces; retrying tomorrow")
                    }
                }
            }
            self.clock.sleep_until(self.clock.ticks().after(EVICTION_INTERVAL)).await;
        }
    }
}
