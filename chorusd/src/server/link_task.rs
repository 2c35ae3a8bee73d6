//! Carries the requests of a client over a tunnel to one node, and the frames of that node to the client.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chorus_base::error::{Elsewhere, Error, MAYBE_STORED_HINT};
use chorus_base::sync::Mutex;
use chorus_peers::{Outcome, Tunnel};
use chorus_proto::ErrorKind;
use chorus_proto::frame::HEADER_BYTES;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::dispatch::ToClient;
use super::remote_transfers::{RemoteTransfers, TransferKind};

/// Code of the error by which a node tells another one that it does not have the agent. No client sees it.
pub(super) const CODE_MOVED: i32 = -32050;

/// Time after the end of reading in which requests that were read before may come.
const LAST_REQUESTS: Duration = Duration::from_millis(50);

/// A request on its way to another node.
#[derive(Debug)]
pub(super) struct ForwardedRequest {
    /// The id as the client wrote it; `None` for a notification, which has no reply.
    pub(super) id: Option<String>,
    pub(super) body: Bytes,
    /// The import or export that it begins.
    pub(super) begins: Option<TransferKind>,
    pub(super) reply_to: ReplyTo,
    pub(super) done: oneshot::Sender<Result<Relayed, NotAnswered>>,
}

/// Who gets the reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyTo {
    Client,
    /// The caller that has sent the request: it is not one of the client.
    Caller,
}

/// Why a request has no answer, and whether it may have been carried out.
#[derive(Debug)]
pub(super) struct NotAnswered {
    pub(super) error: Error,
    pub(super) outcome: Outcome,
}

/// Outcome of a request that a node has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Relayed {
    /// The client has the reply.
    Answered,
    /// This is the reply.
    Collected(Bytes),
    Moved,
}

/// The client of a link.
#[derive(Debug)]
pub(super) struct LinkClient {
    pub(super) to_client: mpsc::Sender<Box<ToClient>>,
    /// Cancelled once the client sends no more.
    pub(super) reading_ended: CancellationToken,
    pub(super) transfers: Arc<RemoteTransfers>,
}

/// A request that the node has not answered yet.
#[derive(Debug)]
struct Waiting {
    /// Number of its frame, once it is queued.
    number: Option<u64>,
    begins: Option<TransferKind>,
    reply_to: ReplyTo,
    done: oneshot::Sender<Result<Relayed, NotAnswered>>,
}

/// The requests without an answer, by their ids. A client may use an id again before it has the answer.
#[derive(Debug, Default)]
struct Unanswered(Mutex<HashMap<String, Vec<Waiting>>>);

impl Unanswered {
    fn insert(&self, id: String, waiting: Waiting) {
        self.0.lock().entry(id).or_default().push(waiting);
    }

    /// Records the number of the frame of the request that was inserted last under this id.
    fn set_number(&self, id: &str, number: u64) {
        if let Some(waiting) = self.0.lock().get_mut(id).and_then(|all| all.last_mut()) {
            waiting.number = Some(number);
        }
    }

    /// Removes the oldest request with this id.
    fn remove(&self, id: &str) -> Option<Waiting> {
        let mut all = self.0.lock();
        let same = all.get_mut(id)?;
        let first = (!same.is_empty()).then(|| same.remove(0));
        if same.is_empty() {
            all.remove(id);
        }
        first
    }

    fn take_all(&self) -> Vec<Waiting> {
        std::mem::take(&mut *self.0.lock()).into_values().flatten().collect()
    }
}

/// Carries requests to a node and its frames to the client, until the client has ended or the node ends the tunnel.
pub(super) async fn run_link(
    mut tunnel: Tunnel,
    mut requests: mpsc::Receiver<ForwardedRequest>,
    client: LinkClient,
    there: Elsewhere,
) {
    let node = &there.node;
    let unanswered = Unanswered::default();
    let ended = {
        let (reader, writer) = tunnel.split();
        let send = async {
            // A link is opened for a request, so the first one comes in any case.
            let mut next = requests.recv().await;
            while let Some(ForwardedRequest { id, body, begins, reply_to, done }) = next {
                if let Some(id) = &id {
                    unanswered.insert(id.clone(), Waiting { number: None, begins, reply_to, done });
                }
                let number = writer.feed(body).await?;
                if let Some(id) = &id {
                    unanswered.set_number(id, number);
                }
                writer.flush().await?;
                next = tokio::select! {
                    biased;
                    next = requests.recv() => next,
                    // Some of those that were read may be on their way here.
                    () = client.reading_ended.cancelled() => timeout(LAST_REQUESTS, requests.recv()).await.unwrap_or_else(|_| {
                        // What was queued before this is still sent.
                        requests.close();
                        requests.try_recv().ok()
                    }),
                };
            }
            // The node learns that the client sends no more. It still answers what it was asked.
            writer.end().await?;
            std::future::pending().await
        };
        let relay = async {
            while let Some(body) = reader.next().await? {
                relay_frame(&body, &unanswered, &client, &there).await;
            }
            io::Result::Ok(())
        };
        tokio::select! {
            ended = send => ended,
            ended = relay => ended,
        }
    };
    if let Err(e) = ended {
        tracing::warn!(node, "the connection to another node ended: {e}");
    }
    requests.close();
    while let Ok(ForwardedRequest { done, .. }) = requests.try_recv() {
        let _ = done.send(Err(lost(node, Outcome::NotRun)));
    }
    for Waiting { number, done, .. } in unanswered.take_all() {
        let outcome = number.map_or(Outcome::NotRun, |number| tunnel.outcome(number));
        let _ = done.send(Err(lost(node, outcome)));
    }
    tunnel.finish().await;
}

/// Hands a frame of a node to the client, unless it says that the node does not have the agent.
async fn relay_frame(body: &[u8], unanswered: &Unanswered, client: &LinkClient, there: &Elsewhere) {
    let Ok(read) = serde_json::from_slice::<ReplyFrame<'_>>(body) else { return };
    let mut asked = match (read.method, read.id) {
        (None, Some(id)) => unanswered.remove(id.get()),
        _ => None,
    };
    let is_moved = read.error.is_some_and(|error| error.code == CODE_MOVED);
    if let Some(kind) = asked.as_ref().and_then(|asked| asked.begins) {
        client.transfers.note(kind, body, there);
    }
    if !is_moved && let Some(asked) = asked.take_if(|asked| asked.reply_to == ReplyTo::Caller) {
        let _ = asked.done.send(Ok(Relayed::Collected(Bytes::copy_from_slice(body))));
        return;
    }
    if !is_moved {
        let mut frame = Vec::with_capacity(HEADER_BYTES + body.len());
        frame.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
        frame.extend_from_slice(body);
        // If it fails, the client is gone.
        let _ = client.to_client.send(Box::new(ToClient::Notification(frame))).await;
    }
    if let Some(asked) = asked {
        let _ = asked.done.send(Ok(if is_moved { Relayed::Moved } else { Relayed::Answered }));
    }
}

/// The parts of a frame by which a reply is told from a notification.
#[derive(Deserialize)]
struct ReplyFrame<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<IgnoredAny>,
    error: Option<ErrorCode>,
}

#[derive(Deserialize)]
struct ErrorCode {
    code: i32,
}

/// The error of a request whose answer was lost.
pub(super) fn lost(node: &str, outcome: Outcome) -> NotAnswered {
    let message = format!("the connection to the node {node} ended before it answered");
    let hint = if outcome == Outcome::NotRun { "it was not carried out; try again" } else { MAYBE_STORED_HINT };
    NotAnswered { error: Error::new(ErrorKind::Busy, message).hint(hint), outcome }
}
