//! `context.*`: the live context of an agent, saving it and restoring it.

use super::{method, wire};
use crate::agent::ContextInfo;
use crate::message::{Message, NewMessage, Role};
use crate::session::Session;
use crate::window::Window;
use crate::working_set::{Item, WorkingSet};

method!(
    /// Appends messages to the live context: all of them, or none.
    Append = "context.append", AppendParams => AppendResult
);
method!(Show = "context.show", ShowParams => ShowResult);
method!(
    /// Saves the context as a session. The context stays live.
    Save = "context.save", SaveParams => SaveResult
);
method!(
    /// Discards the live context.
    Clear = "context.clear", ClearParams => ClearResult
);
method!(
    /// Lists saved sessions, newest first.
    History = "context.history", HistoryParams => HistoryResult
);
method!(
    /// Makes a session with all its messages the live context.
    Restore = "context.restore", RestoreParams => RestoreResult
);

method!(
    /// Drops the last user turns from the live context, or undoes that.
    Rewind = "context.rewind", RewindParams => RewindResult
);
method!(
    /// Pins a fact, which stays visible to the model when messages leave the window.
    Pin = "context.pin", PinParams => PinResult
);
method!(Unpin = "context.unpin", UnpinParams => PinResult);

#[wire(params)]
pub struct RewindParams {
    pub agent: Option<String>,
    /// User turns to drop; 1 unless given.
    pub n: Option<u64>,
    /// Bring back what the last rewind dropped.
    #[serde(default)]
    pub undo: bool,
}

#[wire(PartialEq, Eq)]
pub struct RewindResult {
    /// Messages that went, or with `undo` came back.
    pub moved: u64,
    /// Messages in the context now.
    pub messages: u64,
}

#[wire(params)]
pub struct PinParams {
    pub agent: Option<String>,
    pub fact: String,
}

#[wire(params)]
pub struct UnpinParams {
    pub agent: Option<String>,
    /// Number of the pinned fact, counted from 1.
    pub n: u64,
}

#[wire(PartialEq, Eq)]
pub struct PinResult {
    /// All pinned facts, in the order of their numbers.
    pub pinned_facts: Vec<Item>,
}

#[wire(params)]
pub struct AppendParams {
    pub agent: Option<String>,
    /// One message of `role`. Either this or `messages`.
    pub text: Option<String>,
    /// Of `text`; `user` unless given.
    pub role: Option<Role>,
    #[serde(deserialize_with = "crate::message::objects")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<NewMessage>"))]
    pub messages: Vec<NewMessage>,
    /// The same key again gives the first answer and adds nothing.
    pub key: Option<String>,
    /// Replace secrets by what stands for them; else they are kept as they are, and counted.
    pub redact: bool,
}

#[wire(PartialEq, Eq)]
pub struct AppendResult {
    /// Messages added by this call.
    pub appended: u64,
    /// Messages in the context after it.
    pub messages: u64,
    /// Secrets seen in what was given; null: nobody looked.
    #[omit_empty]
    pub secrets_found: Option<u64>,
}

#[wire(params)]
pub struct ShowParams {
    pub agent: Option<String>,
    /// Only the last messages.
    pub last: Option<u64>,
    /// Index of the first message of the page.
    pub offset: Option<u64>,
    /// Most messages in the page; fewer come where a frame would get too long.
    pub limit: Option<u64>,
    /// Show what the next call of the model would be sent instead; goes with none of the others.
    pub window: bool,
}

/// `M` is how messages are held: parsed, or as the bytes they came in.
#[wire]
pub struct ShowResult<M = Message> {
    pub agent_name: String,
    pub messages: Vec<M>,
    pub working_set: WorkingSet,
    pub context: Option<ContextInfo>,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
    /// Where it was asked for.
    #[omit_empty]
    pub window: Option<Box<Window>>,
}

#[wire(params)]
pub struct SaveParams {
    pub agent: Option<String>,
    pub description: Option<String>,
    /// Clear the context after the save.
    #[serde(default)]
    pub clear: bool,
    pub tag: Vec<String>,
}

#[wire(PartialEq)]
pub struct SaveResult {
    pub session: Session,
    pub cleared: bool,
    /// A summary is on its way: an event `summary.ready` with the session's id follows, whatever becomes of it.
    #[omit_empty]
    pub summary_pending: bool,
    /// What a person should know, for example that the workspace was not committed.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct ClearParams {
    pub agent: Option<String>,
    /// Save first.
    #[serde(default)]
    pub save: bool,
}

#[wire(PartialEq)]
pub struct ClearResult {
    /// Messages that left the live context.
    pub discarded: u64,
    /// Pinned facts that went with them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pins: u64,
    pub saved: Option<Session>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[wire(params)]
pub struct HistoryParams {
    pub agent: Option<String>,
    /// Sessions of every agent, destroyed ones too.
    #[serde(default)]
    pub all_agents: bool,
    /// `agent` is the one that the caller works with, not one that a person named: imported conversations are listed,
    /// too.
    pub own: bool,
    /// Counted from 1.
    pub page: Option<u64>,
    /// Sessions a page; 10 unless given, at most 1,000.
    pub limit: Option<u64>,
    /// A duration back from now (`7d`, `1h30m`) or a date.
    pub since: Option<String>,
    pub tag: Option<String>,
}

/// `S` is how much of a session is read.
#[wire(PartialEq)]
pub struct HistoryResult<S = Session> {
    pub sessions: Vec<S>,
    pub total: u64,
    pub page: u64,
    pub pages: u64,
}

#[wire(params)]
pub struct RestoreParams {
    pub agent: Option<String>,
    /// `latest`, `latest~N`, a history number, a session_id, a UUID or a unique prefix of either.
    pub session: String,
    /// Only the first messages, cut back to where no call lacks its result.
    pub at: Option<u64>,
    /// Do not save the live context first.
    #[serde(default)]
    pub discard: bool,
    /// Only a session of the agent itself: another agent's is refused though `agent` was said. For clients that find
    /// the agent by themselves.
    pub own: bool,
    /// Bring back the files of the workspace, too, as they were when it was saved.
    pub files: bool,
}

#[wire(PartialEq)]
pub struct RestoreResult {
    pub session: Session,
    /// Messages in the live context now.
    pub messages: u64,
    /// What the live context was saved as before.
    pub saved_first: Option<Session>,
    /// With `files`, the newest commit of the workspace, which has those files.
    #[omit_empty]
    pub files_commit: Option<String>,
    /// What a person should know, for example that the file was changed since it was saved.
    #[omit_empty]
    pub warnings: Vec<String>,
}
