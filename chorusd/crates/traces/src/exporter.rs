//! Sends spans in batches, and repeats what may succeed later.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::attributes::Attributes;
use crate::drops::Drops;
use crate::queue::{QueueLevel, SpanReceiver};
use crate::transport::{Answer, Transport};

/// Time that a span waits for others.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Largest number of spans in a batch.
const MAX_BATCH_SPANS: usize = 512;

/// Size of the spans from which on a batch gets no more.
const MAX_BATCH_BYTES: usize = 2 << 20;

/// Wait before the second attempt. It doubles up to [`MAX_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_secs(1);

/// Longest wait between two attempts, unless the collector names one.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Time after which a batch is given up.
const MAX_AGE: Duration = Duration::from_secs(120);

/// Version of the conventions.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

/// Sends spans.
#[derive(Debug)]
pub(crate) struct Exporter {
    pub(crate) transport: Arc<Transport>,
    pub(crate) spans: SpanReceiver,
    pub(crate) level: Arc<QueueLevel>,
    pub(crate) drops: Arc<Drops>,
    /// Cancelled when nothing is repeated any more.
    pub(crate) closing: CancellationToken,
    pub(crate) resource: Resource,
}

/// Describes this daemon.
pub(crate) fn build_resource(service_name: &str) -> Resource {
    let mut attributes = Attributes::default();
    attributes.text("service.name", service_name);
    attributes.text("service.version", env!("CARGO_PKG_VERSION"));
    attributes.text("service.instance.id", chorus_base::new_id().to_string());
    Resource { attributes: attributes.into_inner(), ..Resource::default() }
}

impl Exporter {
    /// Sends spans until the queue ends.
    pub(crate) async fn run(mut self) {
        while let Some(batch) = self.next_batch().await {
            let count = batch.len() as u64;
            self.send(batch).await;
            self.level.settle(count);
        }
    }

    /// Waits for a span, and then a moment for others.
    async fn next_batch(&mut self) -> Option<Vec<Span>> {
        let first = self.spans.next().await?;
        let until = Instant::now() + BATCH_DELAY;
        let (mut bytes, mut batch) = (first.bytes, vec![first.span]);
        while batch.len() < MAX_BATCH_SPANS && bytes < MAX_BATCH_BYTES {
            let Ok(Some(next)) = timeout_at(until, self.spans.next()).await else { break };
            bytes += next.bytes;
            batch.push(next.span);
        }
        Some(batch)
    }

    /// Sends a batch until it is accepted or given up.
    async fn send(&self, batch: Vec<Span>) {
        let (count, give_up) = (batch.len() as u64, Instant::now() + MAX_AGE);
        let body = self.encode(batch);
        let mut backoff = FIRST_BACKOFF;
        loop {
            let is_last = self.closing.is_cancelled();
            let (after, why) = match self.transport.send(body.clone()).await {
                Answer::Accepted { rejected, why } => {
                    let rejected = rejected.min(count);
                    self.drops.count_exported(count - rejected);
                    return self.drops.count(rejected, &why);
                }
                Answer::Refused { why } => {
                    self.drops.set_error(&why);
                    return self.drops.count(count, &why);
                }
                Answer::Later { after, why } => (after, why),
            };
            self.drops.set_error(&why);
            // Between the half and the whole, so that many daemons do not come back at once.
            // A collector may name any time at all.
            let wait = after.unwrap_or(backoff.mul_f64(0.5 + fastrand::f64() / 2.0)).min(MAX_AGE * 2);
            if is_last || Instant::now() + wait > give_up {
                return self.drops.count(count, &why);
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
            tokio::select! {
                () = sleep(wait) => {}
                () = self.closing.cancelled() => {}
            }
        }
    }

    fn encode(&self, spans: Vec<Span>) -> Vec<u8> {
        let scope = InstrumentationScope {
            name: "chorus".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let scope_spans = ScopeSpans { scope: Some(scope), spans, schema_url: SCHEMA_URL.to_owned() };
        let resource_spans = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![scope_spans],
            schema_url: SCHEMA_URL.to_owned(),
        };
        ExportTraceServiceRequest { resource_spans: vec![resource_spans] }.encode_to_vec()
    }
}
