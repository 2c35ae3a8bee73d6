//! Encodes replies and notifications as frames.

use chorus_base::error::Error;
use chorus_proto::error::{CODE_CHORUS, CODE_INVALID_PARAMS};
use chorus_proto::frame::HEADER_BYTES;
use chorus_proto::rpc::VERSION;
use chorus_proto::{ErrorData, ErrorKind, RpcError};
use serde::Serialize;
use serde_json::value::RawValue;

/// An encoded reply or notification with its header.
pub(super) type Frame = Vec<u8>;

#[derive(Serialize)]
struct SuccessReply<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: T,
}

#[derive(Serialize)]
struct ErrorReply<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    error: &'a RpcError,
}

#[derive(Serialize)]
struct NotificationBody<'a, T> {
    jsonrpc: &'static str,
    method: &'a str,
    params: T,
}

/// Encodes the reply to request `id`. A result that would exceed `limit` bytes becomes an error that says so.
pub(super) fn success_frame<T: Serialize>(id: &RawValue, result: T, limit: usize) -> Frame {
    match encode_frame(&SuccessReply { jsonrpc: VERSION, id, result }, limit) {
        Ok(frame) => frame,
        Err(failure) => error_frame(Some(id), &to_rpc_error(&failure)),
    }
}

/// Encodes an error about request `id`, or about the connection if there is no id.
pub(super) fn error_frame(id: Option<&RawValue>, error: &RpcError) -> Frame {
    encode_frame(&ErrorReply { jsonrpc: VERSION, id, error }, usize::MAX).unwrap_or_default()
}

/// Encodes a notification.
pub(super) fn notification_frame<T: Serialize>(method: &str, params: T) -> Frame {
    encode_frame(&NotificationBody { jsonrpc: VERSION, method, params }, usize::MAX).unwrap_or_default()
}

fn encode_frame<T: Serialize>(value: &T, limit: usize) -> Result<Frame, Error> {
    let mut frame = Vec::with_capacity(512);
    frame.extend_from_slice(&[0; HEADER_BYTES]);
    serde_json::to_writer(&mut frame, value).map_err(|e| Error::internal(format!("cannot write a reply: {e}")))?;
    let length = frame.len() - HEADER_BYTES;
    let header = chorus_proto::frame::encode_header(length, limit).map_err(|_| {
        Error::new(ErrorKind::FrameTooLong, format!("the reply has {length} bytes, more than fits in a frame"))
            .hint("request less with `limit`; messages longer than a frame are in the session file")
    })?;
    frame[..HEADER_BYTES].copy_from_slice(&header);
    Ok(frame)
}

/// Converts an error into its form in the protocol.
pub(super) fn to_rpc_error(failure: &Error) -> RpcError {
    let code = if failure.kind == ErrorKind::InvalidParams { CODE_INVALID_PARAMS } else { CODE_CHORUS };
    RpcError {
        code,
        message: failure.message.clone(),
        data: Some(ErrorData { kind: failure.kind, hint: failure.hint.clone() }),
    }
}
