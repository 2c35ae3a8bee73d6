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
    /// Replaces a session by one without its secrets, and permanently deletes the session.
    Scrub = "session.scrub", ScrubParams => ScrubResult
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
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
    /// Index of the first message of the page.
    pub offset: Option<u64>,
    /// Maximum number of messages; fewer are returned if the frame would be too long. 0 returns none.
    pub limit: Option<u64>,
}

/// `M` is how messages are held: parsed, or as the bytes they came in.
#[wire]
pub struct GetResult<M = Message> {
    pub session: Session,
    pub messages: Vec<M>,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
    /// A model's summary was requested: an event `summary.ready` with the session's id follows, even if it fails.
    #[omit_empty]
    pub summary_pending: bool,
    /// Warnings for people, such as that its messages are not those that were saved.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct DeleteParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
}

#[wire(PartialEq)]
pub struct DeleteResult {
    /// The deleted session.
    pub session: Session,
    /// Its entry in the trash; null if its file was missing.
    pub trash: Option<String>,
}

#[wire(params)]
pub struct PurgeParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// Named as in `context.restore`, or by the id or session_id of a session in the trash.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
}

#[wire(PartialEq, Eq)]
pub struct PurgeResult {
    pub id: Uuid,
    pub session_id: String,
    /// Agents whose live context still contains its messages.
    pub live: Vec<String>,
    /// The same, by conversation.
    #[omit_empty]
    pub live_in: Vec<LiveConversation>,
    /// True if files of the search index or of the databases may still hold its texts, because overwriting them takes long. It continues.
    #[omit_empty]
    pub erasing: bool,
}

#[wire(params)]
pub struct ScrubParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
    /// Only name the secrets.
    pub dry_run: bool,
}

#[wire(PartialEq)]
pub struct ScrubResult {
    /// The session that was read.
    pub id: Uuid,
    /// The unique prefix of its id that `history` shows; left out if the session was deleted before.
    #[omit_empty]
    pub short_id: Option<String>,
    pub session_id: String,
    /// Its secrets. If there is none, nothing was changed.
    pub secrets: Vec<SecretCount>,
    /// Number of messages with a secret.
    pub messages: u64,
    /// The session that replaces it; left out if nothing was changed.
    #[omit_empty]
    pub scrubbed: Option<Session>,
    /// Live conversations that still contain its messages.
    #[omit_empty]
    pub live_in: Vec<LiveConversation>,
    /// True if files of the search index or of the databases may still hold its texts, because overwriting them takes long. It continues.
    #[omit_empty]
    pub erasing: bool,
}

/// A secret, and how often it occurs.
#[wire(PartialEq, Eq)]
pub struct SecretCount {
    /// As in docs/SECRETS.md, for example `github-token`.
    pub kind: String,
    /// Eight hexadecimal digits, the same wherever the secret is.
    pub fingerprint: String,
    pub count: u64,
}

#[wire(PartialEq, Eq)]
pub struct LiveConversation {
    /// Name of its agent.
    pub agent: String,
    /// Its name; `null` for `main` if the agent has no others.
    pub conversation: Option<String>,
}

#[wire(params)]
pub struct TagParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// As in `context.restore`.
    pub session: String,
    /// As in `context.restore`.
    pub own: bool,
    #[required]
    pub tag: Vec<String>,
}

#[wire(PartialEq)]
pub struct TagResult {
    /// The session with its current tags.
    pub session: Session,
}

#[wire(params)]
pub struct ExpireParams {
    /// Only sessions of this agent; by default of all agents.
    pub agent: Option<String>,
    /// Time without use, at least a day: `30d`. By default `sessions_unused_for` of the configuration; if that is not
    /// set, nothing is moved.
    pub unused_for: Option<String>,
    /// Only report what would be moved.
    pub dry_run: bool,
    /// Number of sessions to skip, for the pages of a dry run.
    pub offset: Option<u64>,
    /// Maximum number of sessions; fewer are returned if the frame would be too long.
    pub limit: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ExpireResult {
    /// Time without use; null if none is configured, and nothing is moved.
    pub unused_for: Option<String>,
    /// Sessions that were moved, or would be; the least recently used first.
    pub sessions: Vec<ExpiredSession>,
    /// Unused sessions that are kept, because a live context was saved as them, restored from them or continues them.
    pub kept: u64,
    /// Number of sessions that remain. Repeat the call to move them, or a dry run with a greater offset to see them.
    pub left: u64,
}

/// An unused session that was moved to the trash, or would be.
#[wire(PartialEq, Eq)]
pub struct ExpiredSession {
    pub id: Uuid,
    pub session_id: String,
    pub agent_name: String,
    pub last_used_at: Timestamp,
    pub message_count: u64,
    /// Its entry in the trash; null in a dry run, or if its file was missing.
    pub trash: Option<String>,
}
