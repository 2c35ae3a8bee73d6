//! Answers as frames.

use chorus_proto::error::{CODE_CHORUS, CODE_INVALID_PARAMS};
use chorus_proto::frame::HEADER;
use chorus_proto::rpc::VERSION;
use chorus_proto::{ErrorData, ErrorKind, RpcError};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// An answer or a notification, header and all.
pub type Frame = Vec<u8>;

#[derive(Serialize)]
struct Success<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: T,
}

#[derive(Serialize)]
struct Error<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    error: &'a RpcError,
}

#[derive(Serialize)]
struct Notification<'a, T> {
    jsonrpc: &'static str,
    method: &'a str,
    params: T,
}

/// The answer to request `id`. One that would be longer than `limit` becomes an error that says so.
pub fn success<T: Serialize>(id: &RawValue, result: T, limit: usize) -> Frame {
    match frame(&Success { jsonrpc: VERSION, id, result }, limit) {
        Ok(frame) => frame,
        Err(failure) => error(Some(id), &to_rpc(&failure)),
    }
}

/// An error about request `id`, or about the connection where there is none.
pub fn error(id: Option<&RawValue>, error: &RpcError) -> Frame {
    frame(&Error { jsonrpc: VERSION, id, error }, usize::MAX).unwrap_or_default()
}

/// A notification.
pub fn notification<T: Serialize>(method: &str, params: T) -> Frame {
    frame(&Notification { jsonrpc: VERSION, method, params }, usize::MAX).unwrap_or_default()
}

fn frame<T: Serialize>(value: &T, limit: usize) -> Result<Frame, Failure> {
    let mut frame = Vec::with_capacity(512);
    frame.extend_from_slice(&[0; HEADER]);
    serde_json::to_writer(&mut frame, value).map_err(|e| Failure::internal(format!("an answer failed: {e}")))?;
    let length = frame.len() - HEADER;
    let header = chorus_proto::frame::header(length, limit).map_err(|_| {
        Failure::new(ErrorKind::FrameTooLong, format!("the answer has {length} bytes, more than a frame may have"))
            .hint("ask for less with `limit`; a message longer than a frame is in the session's file")
    })?;
    frame[..HEADER].copy_from_slice(&header);
    Ok(frame)
}

/// A failure as it travels.
pub fn to_rpc(failure: &Failure) -> RpcError {
    let code = if failure.kind == ErrorKind::InvalidParams { CODE_INVALID_PARAMS } else { CODE_CHORUS };
    RpcError {
        code,
        message: failure.message.clone(),
        data: Some(ErrorData { kind: failure.kind, hint: failure.hint.clone() }),
    }
}
