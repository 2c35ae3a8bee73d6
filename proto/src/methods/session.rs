//! `session.*` except import and export: saved sessions.

use jiff::Timestamp;
use uuid::Uuid;

use super::{method, wire};
use crate::message::Message;
use crate::session::Session;

method!(
    /// Moves a session to the trash.
    Delete = "session.delete", DeleteParams => DeleteResult
);
method!(
    /// Deletes a session and its copies in the trash for good.
    Purge = "session.purge", PurgeParams => PurgeResult
);
method!(
    /// Moves sessions to the trash that have not been used for a long time.
    Expire = "session.expire", ExpireParams => ExpireResult
);
method!(Tag = "session.tag", TagParams => TagResult);
method!(Untag = "session.untag", TagParams => TagResult);
method!(
    /// Returns a session with a page of its messages.
    Get = "session.get", GetParams => GetResult
);

#[wire(params)]
pub struct GetParams {
    pub agent: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
    /// Index of the first message of the page.
    pub offset: Option<u64>,
    /// Most messages in the page; fewer come where a frame would get too long. 0: none.
    pub limit: Option<u64>,
}

/// `M` is how messages are held: parsed, or as the bytes they came in.
#[wire]
pub struct GetResult<M = Message> {
    pub session: Session,
    pub messages: Vec<M>,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
    /// A model's summary is on its way: an event `summary.ready` with the session's id follows, whatever becomes of it.
    #[omit_empty]
    pub summary_pending: bool,
    /// What a person should know of it, such as that its messages are not those that were saved.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DeleteParams {
    pub agent: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
}

#[wire(PartialEq)]
pub struct DeleteResult {
    /// As it was.
    pub session: Session,
    /// The entry of the trash it is in; null where its file was gone already.
    pub trash: Option<String>,
}

#[wire(params)]
pub struct PurgeParams {
    pub agent: Option<String>,
    /// As in `context.restore`, or the id or session_id of one in the trash.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
}

#[wire(PartialEq, Eq)]
pub struct PurgeResult {
    pub id: Uuid,
    pub session_id: String,
    /// Agents whose live context still holds its messages.
    pub live: Vec<String>,
}

#[wire(params)]
pub struct TagParams {
    pub agent: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
    #[required]
    pub tag: Vec<String>,
}

#[wire(PartialEq)]
pub struct TagResult {
    /// With its tags as they are now.
    pub session: Session,
}

#[wire(params)]
pub struct ExpireParams {
    /// Only sessions of this one; left out: of every agent.
    pub agent: Option<String>,
    /// How long nobody has used them, at least a day: `30d`. Left out: `sessions_unused_for` of the configuration, without which
    /// nothing goes.
    pub unused_for: Option<String>,
    /// Tells what would go, and changes nothing.
    pub dry_run: bool,
    /// How many are skipped; for the pages of a dry run.
    pub offset: Option<u64>,
    /// Most sessions at once; fewer come where a frame would get too long.
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ExpireResult {
    /// How long nobody has used them; null: nothing is configured, and nothing goes.
    pub unused_for: Option<String>,
    /// What went to the trash, or would; what was used longest ago first.
    pub sessions: Vec<ExpiredSession>,
    /// Sessions that are unused for as long and stay: live contexts were saved as them, restored from them or go on from them.
    pub kept: u64,
    /// Sessions after these that are to go: the same call again takes them, that of a dry run with a greater offset.
    pub left: u64,
}

/// A session that went to the trash because nobody used it, or would.
#[wire(PartialEq, Eq)]
pub struct ExpiredSession {
    pub id: Uuid,
    pub session_id: String,
    pub agent_name: String,
    pub last_used_at: Timestamp,
    pub message_count: u64,
    /// The entry of the trash it is in; null in a dry run, and where its file was gone already.
    pub trash: Option<String>,
}
