//! The connections of one client to other nodes: one tunnel for each node, over which its requests go and their replies come
//! back in the order in which the node sends them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use chorus_base::error::{Elsewhere, Error};
use chorus_base::requester::Requester;
use chorus_base::sync::Mutex;
use chorus_peers::{ConnectError, Origin, Outcome, PeerAddress, PeerPool};
use chorus_proto::ErrorKind;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::dispatch::ToClient;
use super::dispatch::request_check::find_id;
use super::elsewhere::{Asked, ForwardOfClient};
use super::link_task::{ForwardedRequest, LinkClient, NotAnswered, Relayed, ReplyTo, lost, run_link};
use super::remote_transfers::{RemoteTransfers, TransferKind};
use super::reply::{Frame, error_frame, to_rpc_error};

/// Limit of requests that wait to be sent to one node.
const MAX_QUEUED: usize = 64;

/// The tunnels of one client. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Links {
    pool: Arc<PeerPool>,
    to_client: mpsc::Sender<Box<ToClient>>,
    reading_ended: CancellationToken,
    nodes: Mutex<HashMap<String, Arc<Link>>>,
    transfers: Arc<RemoteTransfers>,
}

/// The parts of a request that say how to forward it.
#[derive(Deserialize)]
struct RequestHead<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
}

/// The way to one node: its queue, if there is a tunnel. Locked while the tunnel is opened.
type Link = tokio::sync::Mutex<Option<mpsc::Sender<ForwardedRequest>>>;

impl Links {
    pub(super) fn new(
        pool: Arc<PeerPool>,
        to_client: mpsc::Sender<Box<ToClient>>,
        reading_ended: CancellationToken,
    ) -> Self {
        Self { pool, to_client, reading_ended, nodes: Mutex::default(), transfers: Arc::default() }
    }

    /// Returns the way to a node; opens a tunnel if there is none.
    async fn link(&self, there: &Elsewhere) -> Result<mpsc::Sender<ForwardedRequest>, ConnectError> {
        let link = self.nodes.lock().entry(there.node.clone()).or_default().clone();
        let mut link = link.lock().await;
        if let Some(open) = link.as_ref().filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        let target = PeerAddress { id: there.node.clone(), address: there.address.clone() };
        let tunnel = self.pool.connect(&target, &Origin::Client(Requester::Owner)).await?;
        let (open, requests) = mpsc::channel(MAX_QUEUED);
        let client = LinkClient {
            to_client: self.to_client.clone(),
            reading_ended: self.reading_ended.clone(),
            transfers: self.transfers.clone(),
        };
        chorus_runtime::spawn(run_link(tunnel, requests, client, there.clone()));
        *link = Some(open.clone());
        Ok(open)
    }

    async fn send(&self, there: &Elsewhere, body: &Bytes, reply_to: ReplyTo) -> Result<Relayed, NotAnswered> {
        let link = self.link(there).await.map_err(|failure| cannot_connect(&failure))?;
        // It was parsed before.
        let head: Option<RequestHead<'_>> = serde_json::from_slice(body).ok();
        let begins = head.as_ref().and_then(|head| TransferKind::begun_by(&head.method));
        let id = head.and_then(|head| head.id).map(|id| id.get().to_owned());
        let is_answered = id.is_some();
        let (done, outcome) = oneshot::channel();
        link.send(ForwardedRequest { id, body: body.clone(), begins, reply_to, done })
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
            match self.send(&there, body, ReplyTo::Client).await {
                Ok(Relayed::Answered | Relayed::Collected(_)) => Asked::Done(None),
                Ok(Relayed::Moved) => Asked::Moved,
                Err(failure) => {
                    let reply = find_id(body).map(|id| error_frame(Some(id), &to_rpc_error(&failure.error)));
                    match failure.outcome {
                        Outcome::NotRun => Asked::Unreachable(reply),
                        _ => Asked::Lost(reply),
                    }
                }
            }
        })
    }

    fn find_transfer(&self, method: &str, params: Option<&RawValue>) -> Option<Elsewhere> {
        self.transfers.find(method, params)
    }

    fn reaches_others(&self) -> bool {
        true
    }

    fn collect(&self, there: Elsewhere, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        Box::pin(async move {
            match self.send(&there, &body, ReplyTo::Caller).await {
                Ok(Relayed::Collected(reply)) => Ok(reply),
                Ok(_) => Err(Error::busy()),
                Err(failure) => Err(failure.error),
            }
        })
    }

    fn may_call(&self, _method: &str) -> bool {
        true
    }
}

/// The error of a request that did not leave this node.
fn cannot_connect(failure: &ConnectError) -> NotAnswered {
    let hint = failure.hint.clone().unwrap_or_else(|| "try again in a moment".to_owned());
    let error = Error::new(ErrorKind::Busy, format!("the agent is on another node: {failure}")).hint(hint);
    NotAnswered { error, outcome: Outcome::NotRun }
}
