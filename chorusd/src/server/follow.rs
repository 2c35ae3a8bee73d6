//! Follows a conversation for a client wherever its agent is: when the agent moves to another node, the client goes on hearing.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use chorus_engine::ops::Ops;
use chorus_proto::frame::HEADER_BYTES;
use chorus_proto::methods::Method as _;
use chorus_proto::methods::conversations::{Attach, AttachParams, AttachResult};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep};

use super::dispatch::{ClientHandle, answer};
use super::elsewhere::ForwardOfClient;
use super::reply::{Frame, error_frame, to_rpc_error};

/// Limit of the time in which a node that has the agent is looked for. Longer than the time after which a heartbeat is stale.
const MAX_SEARCH: Duration = Duration::from_secs(15);

/// Time between two attempts.
const RETRY: Duration = Duration::from_millis(300);

/// The part of a reply that says whether the agent has moved.
#[derive(serde::Deserialize)]
struct Reply {
    result: Option<AttachResult>,
}

/// Carries a request of `context.attach` out, on this node and on others. Returns its reply.
pub(super) async fn follow(
    ops: Arc<Ops>,
    caller: ClientHandle,
    way: &dyn ForwardOfClient,
    id: &RawValue,
    mut params: AttachParams,
) -> Option<Frame> {
    let hints = &ops.agent_resolver.claims.owner_hints;
    let mut until = Instant::now() + MAX_SEARCH;
    loop {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": Attach::NAME, "params": &params});
        let body = Bytes::from(request.to_string());
        let (begun, next) = (Instant::now(), OnceLock::new());
        let reply = answer(ops.clone(), caller.clone(), serde_json::from_slice(&body).ok()?, &next).await;
        let (moved, failure) = match next.into_inner() {
            None => match moved(reply.as_deref().and_then(|frame| frame.get(HEADER_BYTES..))) {
                None => return reply,
                moved => (moved, None),
            },
            Some(there) if there.address.is_empty() => return reply,
            Some(there) => {
                let node = there.node.clone();
                let collected = way.collect(*there, body).await;
                hints.forget(&node);
                match collected {
                    Ok(reply) => match moved(Some(&reply)) {
                        None => return Some(with_header(&reply)),
                        moved => (moved, None),
                    },
                    Err(failure) => (None, Some(failure)),
                }
            }
        };
        if moved.is_some() || begun.elapsed() > MAX_SEARCH {
            // The client has heard something until now.
            until = Instant::now() + MAX_SEARCH;
            params.after = moved.and_then(|result| result.moved);
        }
        if let Some(failure) = failure {
            if Instant::now() > until || caller.reading_ended.is_cancelled() {
                return Some(error_frame(Some(id), &to_rpc_error(&failure)));
            }
            sleep(RETRY).await;
        }
    }
}

/// Returns the result of a reply if it says that the agent has moved.
fn moved(reply: Option<&[u8]>) -> Option<AttachResult> {
    let reply: Reply = serde_json::from_slice(reply?).ok()?;
    reply.result.filter(|result| result.moved.is_some())
}

fn with_header(body: &[u8]) -> Frame {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&length[..], body].concat()
}
