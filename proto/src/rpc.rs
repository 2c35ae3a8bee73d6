//! JSON-RPC 2.0 envelopes.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::wire;

/// The only value of `jsonrpc`.
pub const VERSION: &str = "2.0";

/// A request as it is received. Without an `id` it is a notification: it is carried out but not answered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request<'a> {
    #[serde(borrow)]
    pub jsonrpc: Cow<'a, str>,
    /// `null` is an id as well.
    #[serde(borrow, default, deserialize_with = "deserialize_id")]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// Protocol version of the sender; the daemon refuses versions newer than its own.
    #[serde(default)]
    pub protocol: Option<u32>,
}

/// Reads an id that is there, also if it is `null`.
fn deserialize_id<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The id of a frame that may be no request.
#[derive(Debug, Deserialize)]
pub struct FrameId<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
}

/// A request as it is sent.
#[derive(Debug, Serialize)]
pub struct OutgoingRequest<'a, P: Serialize + ?Sized> {
    pub jsonrpc: &'static str,
    pub id: u64,
    pub method: &'a str,
    pub params: &'a P,
}

/// A message from the daemon: the answer to a request, or a notification.
#[derive(Debug, Deserialize)]
pub struct IncomingMessage<'a> {
    #[serde(default)]
    pub id: Option<u64>,
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    #[serde(default)]
    pub error: Option<RpcError>,
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
}

/// `params` of a `progress` notification: the progress of the request `id`.
#[wire]
pub struct Progress {
    pub id: u64,
    pub done: u64,
    pub total: u64,
    /// The unit, for example `bytes`.
    pub unit: String,
}
