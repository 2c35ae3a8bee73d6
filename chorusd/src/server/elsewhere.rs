//! Requests for agents that other nodes of a cluster have.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use chorus_base::error;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::dispatch::ToClient;
use super::reply::Frame;

/// The way of requests for agents that other nodes have. By default there is none, and the client learns which node to ask.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    pub(super) way: Option<Arc<dyn Forward>>,
}

/// Makes the way from clients to other nodes.
pub(super) trait Forward: Debug + Send + Sync {
    /// Makes that of a client. It ends when what is returned is dropped.
    fn of_client(&self, to_client: mpsc::Sender<Box<ToClient>>) -> Arc<dyn ForwardOfClient>;
}

/// The way from one client to other nodes.
pub(super) trait ForwardOfClient: Debug + Send + Sync {
    /// Lets a node carry out the request in `body`. What the node sends about it goes to the client. `refusal` is the reply
    /// if it cannot be asked.
    fn ask<'a>(&'a self, there: error::Elsewhere, body: &'a Bytes, refusal: Option<Frame>) -> BoxFuture<'a, Asked>;
}

/// Outcome of a request to another node. Only builds with the feature `cluster` ask one.
#[derive(Debug)]
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "no other node is asked"))]
pub(super) enum Asked {
    /// It is over; with the reply if the client does not have it yet.
    Done(Option<Frame>),
    /// That node does not have the agent any more. Nothing was done.
    Moved,
    /// The node could not be reached, and nothing was done; with the reply that says so.
    Unreachable(Option<Frame>),
}

impl Elsewhere {
    pub(super) fn of_client(&self, to_client: &mpsc::Sender<Box<ToClient>>) -> Option<Arc<dyn ForwardOfClient>> {
        self.way.as_ref().map(|way| way.of_client(to_client.clone()))
    }
}
