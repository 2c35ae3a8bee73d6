//! Requests for agents that other nodes of a cluster have.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use chorus_base::error;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::dispatch::ToClient;
use super::reply::Frame;

/// The way of requests for agents that other nodes have. By default there is none, and the client learns which node to ask.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    pub(super) way: Option<Arc<dyn Forward>>,
}

/// Makes the way from clients to other nodes.
pub(super) trait Forward: Debug + Send + Sync {
    /// Makes that of a client. It ends when what is returned is dropped; once `reading_ended` is cancelled, the other nodes are
    /// told that the client sends no more.
    fn of_client(
        &self,
        to_client: mpsc::Sender<Box<ToClient>>,
        reading_ended: CancellationToken,
    ) -> Arc<dyn ForwardOfClient>;
}

/// The way from one client to other nodes.
pub(super) trait ForwardOfClient: Debug + Send + Sync {
    /// Lets a node carry out the request in `body`. What the node sends about it goes to the client. `refusal` is the reply
    /// if it cannot be asked.
    fn ask<'a>(&'a self, there: error::Elsewhere, body: &'a Bytes, refusal: Option<Frame>) -> BoxFuture<'a, Asked>;

    /// Returns the node that has the import or export that a request continues, if it is not this one.
    fn find_transfer(&self, method: &str, params: Option<&RawValue>) -> Option<error::Elsewhere>;

    /// Returns whether requests can be sent to other nodes.
    fn reaches_others(&self) -> bool;

    /// Sends a request to a node, and returns its reply instead of sending that to the client.
    fn collect(&self, there: error::Elsewhere, body: Bytes) -> BoxFuture<'_, error::Result<Bytes>>;

    /// Returns whether the client may call the method at all.
    fn may_call(&self, method: &str) -> bool;
}

/// Outcome of a request to another node. Only builds with the feature `cluster` ask one.
#[derive(Debug)]
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "no other node is asked"))]
pub(super) enum Asked {
    /// It is over; with the reply if the client does not have it yet.
    Done(Option<Frame>),
    /// That node does not have the agent any more. Nothing was done.
    Moved,
    /// The connection to that node ended before its answer: it may have done what was asked; with the reply that says so.
    Lost(Option<Frame>),
    /// The node could not be reached, and nothing was done; with the reply that says so.
    Unreachable(Option<Frame>),
}

impl Elsewhere {
    pub(super) fn of_client(
        &self,
        to_client: &mpsc::Sender<Box<ToClient>>,
        reading_ended: &CancellationToken,
    ) -> Option<Arc<dyn ForwardOfClient>> {
        self.way.as_ref().map(|way| way.of_client(to_client.clone(), reading_ended.clone()))
    }
}
