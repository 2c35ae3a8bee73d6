//! The connections of one client to other nodes: one tunnel for each node, over which its requests go and their replies come
//! back in the order in which the node sends them.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use chorus_base::error::{Elsewhere, Error, MAYBE_STORED_HINT};
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_peers::{ConnectError, Origin, Outcome, PeerAddress, PeerPool, Tunnel};
use chorus_proto::ErrorKind;
use chorus_proto::frame::HEADER_BYTES;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::dispatch::ToClient;
use super::dispatch::request_check::find_id;
use super::elsewhere::{Asked, ForwardOfClient};
use super::reply::{Frame, error_frame, to_rpc_error};

/// Code of the error by which a node tells another one that it does not have the agent. No client sees it.
pub(super) const CODE_MOVED: i32 = -32050;

/// Limit of requests that wait to be sent to one node.
const MAX_QUEUED: usize = 64;

/// The tunnels of one client. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Links {
    pool: Arc<PeerPool>,
    to_client: mpsc::Sender<Box<ToClient>>,
    nodes: tokio::sync::Mutex<HashMap<String, mpsc::Sender<ForwardedRequest>>>,
}

/// A request on its way to another node.
#[derive(Debug)]
struct ForwardedRequest {
    /// The id as the client wrote it; `None` for a notification, which has no reply.
    id: Option<String>,
    body: Bytes,
    done: oneshot::Sender<Result<Relayed, NotAnswered>>,
}

/// Why a request has no answer, and whether it may have been carried out.
#[derive(Debug)]
struct NotAnswered {
    error: Error,
    outcome: Outcome,
}

/// Outcome of a request that a node has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relayed {
    /// The client has the reply.
    Answered,
    Moved,
}

/// The requests that a node has not answered yet, with the numbers of their frames.
type Unanswered = Mutex<HashMap<String, (Option<u64>, oneshot::Sender<Result<Relayed, NotAnswered>>)>>;

impl Links {
    pub(super) fn new(pool: Arc<PeerPool>, to_client: mpsc::Sender<Box<ToClient>>) -> Self {
        Self { pool, to_client, nodes: tokio::sync::Mutex::default() }
    }

    /// Returns the way to a node; opens a tunnel if there is none.
    async fn link(&self, there: &Elsewhere) -> Result<mpsc::Sender<ForwardedRequest>, ConnectError> {
        let mut nodes = self.nodes.lock().await;
        if let Some(link) = nodes.get(&there.node).filter(|link| !link.is_closed()) {
            return Ok(link.clone());
        }
        let target = PeerAddress { id: there.node.clone(), address: there.address.clone() };
        let tunnel = self.pool.connect(&target, &Origin::Client(Requester::Owner)).await?;
        let (link, requests) = mpsc::channel(MAX_QUEUED);
        chorus_runtime::spawn(run_link(tunnel, requests, self.to_client.clone(), there.node.clone()));
        nodes.insert(there.node.clone(), link.clone());
        Ok(link)
    }

    async fn send(&self, there: &Elsewhere, body: &Bytes) -> Result<Relayed, NotAnswered> {
        let link = self.link(there).await.map_err(|failure| cannot_connect(&failure))?;
        let id = find_id(body).map(|id| id.get().to_owned());
        let is_answered = id.is_some();
        let (done, outcome) = oneshot::channel();
        link.send(ForwardedRequest { id, body: body.clone(), done })
            .await
            .map_err(|_| lost(&there.node, Outcome::NotRun))?;
        if !is_answered {
            return Ok(Relayed::Answered);
        }
        outcome.await.unwrap_or_else(|_| Err(lost(&there.node, Outcome::Unknown)))
    }
}

impl ForwardOfClient for Links {
    fn ask<'a>(&'a self, there: Elsewhere, body: &'a Bytes, refusal: Option<Frame>) -> BoxFuture<'a, Asked> {
        Box::pin(async move {
            if there.address.is_empty() {
                return Asked::Done(refusal);
            }
            match self.send(&there, body).await {
                Ok(Relayed::Answered) => Asked::Done(None),
                Ok(Relayed::Moved) => Asked::Moved,
                Err(failure) => {
                    let reply = find_id(body).map(|id| error_frame(Some(id), &to_rpc_error(&failure.error)));
                    if failure.outcome == Outcome::NotRun { Asked::Unreachable(reply) } else { Asked::Done(reply) }
                }
            }
        })
    }
}

/// Carries requests to a node and its frames to the client, until the client has ended or the node ends the tunnel.
async fn run_link(
    mut tunnel: Tunnel,
    mut requests: mpsc::Receiver<ForwardedRequest>,
    to_client: mpsc::Sender<Box<ToClient>>,
    node: String,
) {
    let unanswered = Unanswered::default();
    let ended = {
        let (reader, writer) = tunnel.split();
        let send = async {
            while let Some(ForwardedRequest { id, body, done }) = requests.recv().await {
                if let Some(id) = &id {
                    unanswered.lock().insert(id.clone(), (None, done));
                }
                let number = writer.feed(body).await?;
                if let Some(id) = &id
                    && let Some((sent, _)) = unanswered.lock().get_mut(id)
                {
                    *sent = Some(number);
                }
                writer.flush().await?;
            }
            io::Result::Ok(())
        };
        let relay = async {
            while let Some(body) = reader.next().await? {
                relay_frame(&body, &unanswered, &to_client).await;
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
        let _ = done.send(Err(lost(&node, Outcome::NotRun)));
    }
    let left = std::mem::take(&mut *unanswered.lock());
    for (number, done) in left.into_values() {
        let outcome = number.map_or(Outcome::NotRun, |number| tunnel.outcome(number));
        let _ = done.send(Err(lost(&node, outcome)));
    }
    tunnel.finish().await;
}

/// Hands a frame of a node to the client, unless it says that the node does not have the agent.
async fn relay_frame(body: &[u8], unanswered: &Unanswered, to_client: &mpsc::Sender<Box<ToClient>>) {
    let Ok(read) = serde_json::from_slice::<ReplyFrame<'_>>(body) else { return };
    let asked = match (read.method, read.id) {
        (None, Some(id)) => unanswered.lock().remove(id.get()),
        _ => None,
    };
    let is_moved = read.error.is_some_and(|error| error.code == CODE_MOVED);
    if !is_moved {
        let mut frame = Vec::with_capacity(HEADER_BYTES + body.len());
        frame.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
        frame.extend_from_slice(body);
        // If it fails, the client is gone.
        let _ = to_client.send(Box::new(ToClient::Notification(frame))).await;
    }
    if let Some((_, done)) = asked {
        let _ = done.send(Ok(if is_moved { Relayed::Moved } else { Relayed::Answered }));
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

/// The error of a request that did not leave this node.
fn cannot_connect(failure: &ConnectError) -> NotAnswered {
    let hint = failure.hint.clone().unwrap_or_else(|| "try again in a moment".to_owned());
    let error = Error::new(ErrorKind::Busy, format!("the agent is on another node: {failure}")).hint(hint);
    NotAnswered { error, outcome: Outcome::NotRun }
}

/// The error of a request whose answer was lost.
fn lost(node: &str, outcome: Outcome) -> NotAnswered {
    let message = format!("the connection to the node {node} ended before it answered");
    let hint = if outcome == Outcome::NotRun { "it was not carried out; try again" } else { MAYBE_STORED_HINT };
    NotAnswered { error: Error::new(ErrorKind::Busy, message).hint(hint), outcome }
}
