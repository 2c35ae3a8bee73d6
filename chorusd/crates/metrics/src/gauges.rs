//! Figures that are read when somebody asks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use chorus_base::error::Result;
use chorus_engine::ops::{Ops, daemon};
use chorus_proto::methods::daemon::StatusParams;
use chorus_runtime::run_blocking;
use chorus_store::DB_DIR;

use crate::families::{Families, FileLabels, OutcomeLabels, StateLabels};

/// Files of the databases; those that do not exist are left out.
const FILES: [&str; 4] = ["live.db", "live.db-wal", "chorus.db", "chorus.db-wal"];

/// Sets the gauges to what is true now.
pub(crate) async fn refresh(families: &Families, ops: &Arc<Ops>) -> Result<()> {
    // Without the agents themselves.
    let status = daemon::status(ops, StatusParams { limit: Some(0), ..StatusParams::default() }).await?;
    let totals = status.totals.unwrap_or_default();
    let state = |state: &str| families.agents.get_or_create(&StateLabels { state: state.to_owned() }).clone();
    state("active").set(signed(totals.active));
    state("idle").set(signed(totals.idle));
    families.pending_approvals.set(signed(totals.approvals));
    families.running_tasks.set(signed(status.tasks.running));
    families.connections.set(signed(status.daemon.connections));
    families.discord_connected.set(i64::from(status.discord.connected));
    families.discord_servers.set(signed(status.discord.guilds));
    let spans = ops.traces.export.totals();
    for (outcome, count) in [("exported", spans.exported), ("dropped", spans.dropped)] {
        let counter = families.trace_spans.get_or_create(&OutcomeLabels { outcome: outcome.to_owned() }).clone();
        counter.inner().store(count, Ordering::Relaxed);
    }
    families.resident_memory.set(signed(status.daemon.rss_bytes));
    families.start_time.set(status.daemon.started_at.as_duration().as_secs_f64());
    let directory = ops.home.join(DB_DIR);
    let size = move |file| std::fs::metadata(directory.join(file)).ok().map(|metadata| metadata.len());
    let sizes = run_blocking(move || Ok(FILES.map(size))).await?;
    for (file, size) in FILES.iter().zip(sizes) {
        let labels = FileLabels { file: (*file).to_owned() };
        if let Some(size) = size {
            families.file_bytes.get_or_create(&labels).set(signed(size));
        } else {
            families.file_bytes.remove(&labels);
        }
    }
    Ok(())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
