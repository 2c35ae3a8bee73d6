//! `session.*`, but for the import and the export.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::method;
use crate::message::Message;
use crate::session::Session;

method!(
    /// Moves a session to the trash.
    Delete = "session.delete", DeleteParams => DeleteResult
);
method!(
    /// Forgets a session for good, its copies in the trash included.
    Purge = "session.purge", PurgeParams => PurgeResult
);
method!(Tag = "session.tag", TagParams => TagResult);
method!(Untag = "session.untag", TagParams => TagResult);
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
    /// A model's summary is on its way: an event `summary.ready` with the session's id follows, whatever becomes of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summary_pending: bool,
    /// What a person should know of it, such as that its messages are not those that were saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeleteParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeleteResult {
    /// As it was.
    pub session: Session,
    /// The entry of the trash it is in; null where its file was gone already.
    pub trash: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PurgeParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As in `context.restore`, or the id or session_id of one in the trash.
    pub session: String,
    /// As in `context.restore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PurgeResult {
    pub id: Uuid,
    pub session_id: String,
    /// Agents whose live context still holds its messages.
    pub live: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TagParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    pub tag: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TagResult {
    /// With its tags as they are now.
    pub session: Session,
}
