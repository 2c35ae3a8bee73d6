//! The bounded queue between the task that makes spans and the one that sends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::sync::mpsc;

use crate::drops::Drops;

/// Largest number of spans in the queue.
const MAX_SPANS: usize = 2048;

/// Largest size of all spans in the queue.
const MAX_BYTES: usize = 16 << 20;

/// A span with its size in bytes.
#[derive(Debug)]
pub(crate) struct QueuedSpan {
    pub(crate) span: Span,
    pub(crate) bytes: usize,
}

/// The level of the queue.
#[derive(Debug, Default)]
pub(crate) struct QueueLevel {
    bytes: AtomicUsize,
    /// Spans in the queue, and those that are being sent.
    pending: AtomicU64,
}

impl QueueLevel {
    /// Returns the number of spans that were neither accepted nor dropped yet.
    pub(crate) fn pending(&self) -> u64 {
        self.pending.load(Ordering::Relaxed)
    }

    /// Notes that spans were accepted or dropped.
    pub(crate) fn settle(&self, spans: u64) {
        self.pending.fetch_sub(spans, Ordering::Relaxed);
    }
}

/// Puts spans into the queue. Once it is gone, the receiver gets the rest and then the end.
#[derive(Debug)]
pub(crate) struct SpanSender {
    sender: mpsc::Sender<QueuedSpan>,
    level: Arc<QueueLevel>,
    drops: Arc<Drops>,
}

/// Takes spans out of the queue.
#[derive(Debug)]
pub(crate) struct SpanReceiver {
    receiver: mpsc::Receiver<QueuedSpan>,
    level: Arc<QueueLevel>,
}

/// Makes a queue. Spans that find it full are counted by `drops`.
pub(crate) fn span_queue(drops: Arc<Drops>) -> (SpanSender, SpanReceiver, Arc<QueueLevel>) {
    let (sender, receiver) = mpsc::channel(MAX_SPANS);
    let level = Arc::<QueueLevel>::default();
    (SpanSender { sender, level: level.clone(), drops }, SpanReceiver { receiver, level: level.clone() }, level)
}

impl SpanSender {
    /// Adds a span, or drops it if the queue is full. Never waits.
    pub(crate) fn push(&self, span: Span) {
        let bytes = span.encoded_len();
        if self.level.bytes.load(Ordering::Relaxed).saturating_add(bytes) > MAX_BYTES {
            return self.drops.count(1, "the queue is full");
        }
        // Before the receiver can subtract it.
        self.level.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.level.pending.fetch_add(1, Ordering::Relaxed);
        if self.sender.try_send(QueuedSpan { span, bytes }).is_err() {
            self.level.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.level.settle(1);
            self.drops.count(1, "the queue is full");
        }
    }

    /// Counts spans that cannot be made, because too much happened at once.
    pub(crate) fn count_missed(&self, spans: u64) {
        self.drops.count(spans, "too much happened at once");
    }
}

impl SpanReceiver {
    /// Returns the next span; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<QueuedSpan> {
        let span = self.receiver.recv().await?;
        self.level.bytes.fetch_sub(span.bytes, Ordering::Relaxed);
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use chorus_engine::traces::{ExportTotals, TraceFeed};

    use super::*;

    #[tokio::test]
    async fn what_does_not_fit_is_dropped_and_counted() {
        let feed = Arc::<TraceFeed>::default();
        let (sender, mut receiver, level) = span_queue(Arc::new(Drops::new(feed.clone())));
        for _ in 0..MAX_SPANS + 3 {
            sender.push(Span::default());
        }
        let large = Span { name: "x".repeat(MAX_BYTES + 1), ..Span::default() };
        assert_eq!(feed.export.totals(), ExportTotals { exported: 0, dropped: 3 });
        assert!(receiver.next().await.is_some());
        sender.push(large);
        assert_eq!((feed.export.totals().dropped, level.pending()), (4, MAX_SPANS as u64));
        drop(sender);
        let mut left = 0;
        while receiver.next().await.is_some() {
            left += 1;
        }
        assert_eq!(left, MAX_SPANS - 1);
    }
}
