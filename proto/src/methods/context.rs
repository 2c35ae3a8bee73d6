//! `context.*`: the live context of an agent, saving it and restoring it.

use super::{method, wire};
use crate::agent::ContextInfo;
use crate::message::{Message, NewMessage, Role};
use crate::session::{ConversationRef, Session};
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
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// Number of user turns to remove, by default 1.
    pub n: Option<u64>,
    /// Restore what the last rewind removed.
    #[serde(default)]
    pub undo: bool,
}

#[wire(PartialEq, Eq)]
pub struct RewindResult {
    /// Messages that were removed, or with `undo` restored.
    pub moved: u64,
    /// Messages in the context now.
    pub messages: u64,
}

#[wire(params)]
pub struct PinParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    pub fact: String,
}

#[wire(params)]
pub struct UnpinParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// Number of the pinned fact, starting at 1.
    pub n: u64,
}

#[wire(PartialEq, Eq)]
pub struct PinResult {
    /// All pinned facts, in order.
    pub pinned_facts: Vec<Item>,
    /// What a person should know, for example that the model is not shown all of them.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct AppendParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// A message with `role`. Set either this or `messages`.
    pub text: Option<String>,
    /// Role of `text`, by default `user`.
    pub role: Option<Role>,
    #[serde(deserialize_with = "crate::message::objects")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<NewMessage>"))]
    pub messages: Vec<NewMessage>,
    /// Idempotency key: a request with the same key returns the first result and adds nothing.
    pub key: Option<String>,
    /// Redact secrets; otherwise they are kept and counted.
    pub redact: bool,
}

#[wire(PartialEq, Eq)]
pub struct AppendResult {
    /// Messages added by this call.
    pub appended: u64,
    /// Messages in the context afterwards.
    pub messages: u64,
    /// Number of secrets found; null if not checked.
    #[omit_empty]
    pub secrets_found: Option<u64>,
    /// Something to show to the person: that the conversation was closed, and how to get its earlier messages.
    #[omit_empty]
    pub note: Option<String>,
}

#[wire(params)]
pub struct ShowParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// Only this number of the last messages.
    pub last: Option<u64>,
    /// Index of the first message of the page.
    pub offset: Option<u64>,
    /// Maximum number of messages; fewer are returned if the frame would be too long.
    pub limit: Option<u64>,
    /// Return the contents of the next model call instead; cannot be combined with the others.
    pub window: bool,
}

/// `M` is how messages are held: parsed, or as the bytes they came in.
#[wire]
pub struct ShowResult<M = Message> {
    pub agent_name: String,
    /// The conversation, unless it is `main`.
    #[omit_empty]
    pub conversation: Option<ConversationRef>,
    pub messages: Vec<M>,
    pub working_set: WorkingSet,
    pub context: Option<ContextInfo>,
    /// Offset of the next page; null at the end.
    pub next: Option<u64>,
    /// Present if it was requested.
    #[omit_empty]
    pub window: Option<Box<Window>>,
}

#[wire(params)]
pub struct SaveParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
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
    /// A summary was requested: an event `summary.ready` with the session's id follows, even if it fails.
    #[omit_empty]
    pub summary_pending: bool,
    /// The newest session, if it had the same messages and notes already.
    #[omit_empty]
    pub unchanged_since: Option<Box<Session>>,
    /// Warnings for people, for example that the workspace was not committed.
    #[omit_empty]
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct ClearParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// Save the context first.
    #[serde(default)]
    pub save: bool,
}

#[wire(PartialEq)]
pub struct ClearResult {
    /// Messages removed from the live context.
    pub discarded: u64,
    /// Pinned facts removed with them.
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
    /// Only sessions that were saved from this conversation: its name or id, or `@` for the selected one.
    pub conversation: Option<String>,
    /// Include sessions of all agents, also deleted ones.
    #[serde(default)]
    pub all_agents: bool,
    /// `agent` is the caller's current agent and was not named by a person, so imported conversations are listed, too.
    pub own: bool,
    /// Starts at 1.
    pub page: Option<u64>,
    /// Sessions per page, by default 10, at most 1,000.
    pub limit: Option<u64>,
    /// A duration back from now (`7d`, `1h30m`) or a date.
    pub since: Option<String>,
    /// Only conversations before then, as `since`.
    pub until: Option<String>,
    pub tag: Option<String>,
    /// Only conversations that were imported from this program, such as `claude-code`.
    pub source: Option<String>,
    /// Only sessions of a project: the absolute path of a directory that imported conversations were held in or below, or the
    /// project of agents.
    pub project: Option<String>,
    /// Only sessions with each of these words in their title, name or tags, or in the name or title of their conversation, in any case.
    pub words: Option<String>,
    /// The numbers of the list shown last stay: nobody is shown this one.
    pub keep_numbers: bool,
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
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// `latest`, `latest~N`, a history number, a session_id, a UUID or a unique prefix of either.
    pub session: String,
    /// Load only the first messages, cut at the last point where every tool call has its result.
    pub at: Option<u64>,
    /// Do not save the live context first.
    #[serde(default)]
    pub discard: bool,
    /// Only a session of the agent itself: another agent's session is refused even if `agent` is set. For clients that
    /// determine the agent themselves.
    pub own: bool,
    /// Also restore the workspace files as they were at the save.
    pub files: bool,
    /// A new conversation to put it into, instead of `conversation`, whose context then stays as it is.
    pub as_conversation: Option<String>,
}

#[wire(PartialEq)]
pub struct RestoreResult {
    pub session: Session,
    /// Messages in the live context now.
    pub messages: u64,
    /// The session in which the live context was saved first.
    pub saved_first: Option<Session>,
    /// With `files`, the new commit of the workspace with these files.
    #[omit_empty]
    pub files_commit: Option<String>,
    /// Warnings for people, for example that the file was changed since it was saved.
    #[omit_empty]
    pub warnings: Vec<String>,
}
