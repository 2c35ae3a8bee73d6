//! Notifications that a client receives while its request runs.

use std::sync::Arc;

use chorus_agent_core::turn_sink::TurnListener;
use chorus_engine::ops::session::import::OnProgress;
use chorus_proto::methods::send::{self, TurnEvent};
use chorus_proto::rpc::Progress;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::dispatch::ToClient;
use super::reply::{self, Frame};
use super::writer::ClientWriter;

/// Forwards the events of a turn to request `id` as `progress` notifications.
#[derive(Debug)]
struct ProgressListener {
    id: u64,
    writer: Arc<ClientWriter>,
}

impl ProgressListener {
    fn to_frame(&self, said: TurnEvent) -> Frame {
        reply::notification_frame("progress", send::Progress { id: self.id, said })
    }
}

impl TurnListener for ProgressListener {
    fn try_send(&self, said: &TurnEvent) -> bool {
        self.writer.offer(|| self.to_frame(said.clone()))
    }

    fn send_when_ready(&self, said: TurnEvent) {
        self.writer.enqueue(self.to_frame(said));
    }
}

/// Returns a listener that forwards to request `id`; `None` if notifications cannot name it.
pub(super) fn progress_listener(id: Option<&RawValue>, writer: Arc<ClientWriter>) -> Option<Arc<dyn TurnListener>> {
    let id: u64 = id.and_then(|id| id.get().parse().ok())?;
    Some(Arc::new(ProgressListener { id, writer }))
}

/// Returns the listener for the turn of request `id` if its parameters ask for a stream. Notifications can name only
/// numeric ids.
pub(super) fn turn_listener(
    id: Option<&RawValue>,
    params: Option<&RawValue>,
    line: Arc<ClientWriter>,
) -> Option<Arc<dyn TurnListener>> {
    #[derive(serde::Deserialize)]
    struct Carried {
        #[serde(default)]
        stream: bool,
    }
    let carried: Carried = serde_json::from_str(params?.get()).ok()?;
    if carried.stream { progress_listener(id, line) } else { None }
}

/// Returns a callback that sends `progress` notifications in `unit` for request `id`. They can name only numeric ids.
/// While the queue is full they are dropped.
pub(super) fn progress_callback(
    unit: &'static str,
    id: Option<&RawValue>,
    to_client: mpsc::Sender<Box<ToClient>>,
) -> OnProgress {
    let id: Option<u64> = id.and_then(|id| id.get().parse().ok());
    let mut told = 0;
    Box::new(move |done, total| {
        // One notification per percent is enough for a progress bar.
        if let Some(id) = id
            && done.saturating_sub(told) * 100 >= total
        {
            told = done;
            let progress = Progress { id, done, total, unit: unit.into() };
            let frame = reply::notification_frame("progress", progress);
            let _ = to_client.try_send(Box::new(ToClient::Notification(frame)));
        }
    })
}
