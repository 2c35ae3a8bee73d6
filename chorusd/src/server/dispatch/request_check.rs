//! Checks that a frame is a request of this protocol.

use chorus_base::error::{Error, Result};
use chorus_proto::error::{CODE_INVALID_REQUEST, CODE_PARSE};
use chorus_proto::rpc::{FrameId, Request, VERSION};
use chorus_proto::{ErrorKind, PROTOCOL, RpcError};
use serde_json::value::RawValue;

use crate::server::reply::to_rpc_error;

/// Checks the version of JSON-RPC, the id, and the version of the protocol.
pub(super) fn check_request(request: &Request<'_>) -> Result<(), RpcError> {
    let wrong = |message: &str| RpcError { code: CODE_INVALID_REQUEST, message: message.into(), data: None };
    if request.jsonrpc != VERSION {
        return Err(wrong("`jsonrpc` must be \"2.0\""));
    }
    if request.id.is_some_and(|id| !is_id(id)) {
        return Err(wrong("`id` must be a number, a string or null"));
    }
    let in_params = || {
        #[derive(serde::Deserialize)]
        struct Carried {
            protocol: Option<u64>,
        }
        let text = request.params.map(RawValue::get).filter(|text| text.contains("\"protocol\""))?;
        serde_json::from_str::<Carried>(text).ok()?.protocol
    };
    let protocol = request.protocol.map(u64::from).or_else(in_params);
    match protocol {
        Some(protocol) if protocol > u64::from(PROTOCOL) => Err(to_rpc_error(
            &Error::new(
                ErrorKind::Unsupported,
                format!("the client uses protocol {protocol}, but this daemon uses protocol {PROTOCOL}"),
            )
            .hint("restart with the newer daemon: chorusctl daemon restart"),
        )),
        _ => Ok(()),
    }
}

/// Returns true for a valid id of a request: a number, a string or null.
pub(super) fn is_id(id: &RawValue) -> bool {
    matches!(id.get().as_bytes().first(), Some(b'0'..=b'9' | b'-' | b'"' | b'n'))
}

/// Returns the id of a frame that is an object but not a request.
pub(in crate::server) fn find_id(body: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice::<FrameId<'_>>(body).ok()?.id.filter(|id| is_id(id))
}

/// Returns the error for a frame that is not a request.
pub(super) fn not_a_request_error(body: &[u8], error: &serde_json::Error) -> RpcError {
    let (code, what) =
        if error.is_data() { (CODE_INVALID_REQUEST, "not a JSON-RPC 2.0 request") } else { (CODE_PARSE, "not JSON") };
    let batch = body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[');
    let message = if batch && error.is_data() {
        "batches are not supported; send concurrent requests on one connection instead".to_owned()
    } else {
        format!("{what}: {error}")
    };
    RpcError { code, message, data: None }
}
