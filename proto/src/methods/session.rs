//! `session.get`.

use serde::{Deserialize, Serialize};

use super::method;
use crate::message::Message;
use crate::session::Session;

method!(
    /// A saved session with a page of its messages.
    Get = "session.get", GetParams => GetResult
);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Index of the first message of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Most messages in the page; fewer come where a frame would get too long. 0: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// `M` is how messages are held: parsed, or as the bytes they came in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetResult<M = Message> {
    pub session: Session,
    pub messages: Vec<M>,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
}
