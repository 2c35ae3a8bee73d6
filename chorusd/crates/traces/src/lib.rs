//! Spans of turns, model calls and tool calls, sent to a collector of OpenTelemetry (OTLP over HTTP) in the words of the GenAI
//! conventions.
//!
//! A turn is the root (`invoke_agent`); its model calls (`chat`) and tool calls (`execute_tool`) are its children. The ids follow
//! from the id of the turn, so that a child needs not wait for its parent. Nobody waits for the collector: spans go through a
//! bounded queue, and those that find it full are dropped and counted.

#![warn(unreachable_pub)]

mod attributes;
mod collector;
mod drops;
mod exporter;
mod headers;
mod messages;
mod provider;
mod queue;
mod spans;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use chorus_engine::ops::Ops;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use collector::Collector;
use drops::Drops;
use exporter::{Exporter, build_resource};
use queue::{QueueLevel, span_queue};
use spans::SpanBuilder;
use transport::Transport;

/// Time that a stop waits for the collector.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The tasks that make spans and send them.
#[derive(Debug)]
pub struct Traces {
    closing: CancellationToken,
    exporter: JoinHandle<()>,
    level: Arc<QueueLevel>,
    drops: Arc<Drops>,
}

/// Makes spans of what happens from this call on, and sends them. `None` if no collector is configured.
#[must_use]
pub fn start(ops: &Arc<Ops>) -> Option<Traces> {
    ops.traces.export.set_built();
    let config = &ops.config.traces;
    let endpoint = config.endpoint.as_deref()?;
    tracing::info!(endpoint, content = config.content, "sending traces");
    let closing = CancellationToken::new();
    let drops = Arc::new(Drops::new(ops.traces.clone()));
    let (sender, spans, level) = span_queue(drops.clone());
    let collector = Collector::new(ops, SpanBuilder::new(ops), sender);
    let (events, records) = (ops.store.journal.subscribe(), ops.traces.subscribe(config.content));
    chorus_runtime::spawn(collector.run(events, records, closing.clone()));
    let exporter = Exporter {
        transport: Arc::new(Transport::new(ops, endpoint)),
        spans,
        level: level.clone(),
        drops: drops.clone(),
        closing: closing.clone(),
        resource: build_resource(&config.service_name),
    };
    let exporter = chorus_runtime::spawn(exporter.run());
    Some(Traces { closing, exporter, level, drops })
}

impl Traces {
    /// Sends what is left. Waits two seconds at most, and not longer than `until`.
    pub async fn stop(mut self, until: Instant) {
        self.closing.cancel();
        let limit = until.min(Instant::now() + FLUSH_TIMEOUT);
        if timeout_at(limit, &mut self.exporter).await.is_err() {
            self.exporter.abort();
            self.drops.count(self.level.pending(), "the collector did not answer before the stop");
        }
        self.drops.report();
    }
}
