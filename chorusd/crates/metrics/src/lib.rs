//! Figures of the daemon for Prometheus: read over HTTP at a loopback port or a Unix socket, in the format OpenMetrics.
//!
//! Counters follow the events of the daemon and its model calls from its start on; gauges are read when somebody asks. No label
//! has the name of an agent or anything that was said: their number is bounded by the configuration.

mod counters;
mod families;
mod gauges;
mod http;
mod listener;

use std::sync::Arc;

use chorus_config::MetricsListen;
use chorus_engine::ops::Ops;
use tokio_util::sync::CancellationToken;

use families::Families;

/// Counts what happens from this call on. The future answers those who ask, until `stop`.
pub fn start(
    ops: Arc<Ops>,
    listen: MetricsListen,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send + 'static {
    let families = Arc::new(Families::default());
    let (events, calls) = (ops.store.journal.subscribe(), ops.usage.subscribe());
    chorus_runtime::spawn(counters::count_events(families.clone(), events, stop.clone()));
    chorus_runtime::spawn(counters::count_calls(families.clone(), calls, stop.clone()));
    async move {
        let Some(listener) = listener::bind_when_free(&listen, &stop).await else { return };
        http::serve(listener, ops, families, stop).await;
    }
}
