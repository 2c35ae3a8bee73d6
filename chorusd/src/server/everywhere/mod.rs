//! Requests that concern the agents of all nodes: the others are asked, too, and what each knows best is put together.

mod agents;
mod search;

use std::time::Duration;

use bytes::Bytes;
use chorus_base::error::{Elsewhere, Error, Result};
use chorus_engine::ops::Ops;
use chorus_proto::RpcError;
use chorus_proto::methods::Method;
use futures_util::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;

use super::elsewhere::ForwardOfClient;

pub(super) use self::agents::{list, status};
pub(super) use self::search::search;

/// Sends the same request to several nodes at once. Returns what each answers, with its name; the error `busy` of one that does not
/// within `limit`.
async fn ask_each<M: Method>(
    way: &dyn ForwardOfClient,
    nodes: Vec<Elsewhere>,
    limit: Duration,
    params: impl Fn(&str) -> M::Params,
) -> Vec<(String, Result<M::Result>)>
where
    M::Result: Send,
{
    let asked = nodes.into_iter().map(|there| {
        let node = there.node.clone();
        let request = json!({"jsonrpc": "2.0", "id": Uuid::new_v4(), "method": M::NAME, "params": params(&node)});
        async move {
            let answer = timeout(limit, ask(way, there, request.to_string())).await;
            (node, answer.unwrap_or_else(|_| Err(Error::busy())))
        }
    });
    join_all(asked).await
}

/// Returns the other nodes that run, and the way to them; `None` if this daemon is alone, or if a node asks it.
async fn others<'a>(
    ops: &Ops,
    way: Option<&'a dyn ForwardOfClient>,
) -> Result<Option<(&'a dyn ForwardOfClient, Vec<Elsewhere>)>> {
    let Some(way) = way.filter(|way| way.reaches_others()) else { return Ok(None) };
    let Some(ownership) = &ops.store.ownership else { return Ok(None) };
    let nodes = ownership.other_nodes().await?.into_iter();
    Ok(Some((way, nodes.map(|owner| Elsewhere { node: owner.node, address: owner.address }).collect())))
}

async fn ask<R: DeserializeOwned>(way: &dyn ForwardOfClient, there: Elsewhere, request: String) -> Result<R> {
    #[derive(Deserialize)]
    struct Reply<R> {
        result: Option<R>,
        error: Option<RpcError>,
    }
    let reply = way.collect(there, Bytes::from(request)).await?;
    let reply: Reply<R> = serde_json::from_slice(&reply).map_err(|e| Error::internal(e.to_string()))?;
    reply.result.ok_or_else(|| match reply.error {
        Some(RpcError { message, data: Some(data), .. }) => Error::new(data.kind, message),
        _ => Error::internal("it answers with neither a result nor an error"),
    })
}
