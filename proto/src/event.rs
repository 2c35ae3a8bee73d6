//! Events, as subscribers receive them.

use crate::wire;
use jiff::Timestamp;
use serde_json::Value;

macro_rules! event_types {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The kind of an event. A client of an older release reads newer ones as `unknown`.
        #[wire(Copy, PartialEq, Eq)]
        pub enum EventType {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
            #[serde(rename = "unknown", other)]
            Unknown,
        }

        impl EventType {
            /// Returns the name on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Unknown => "unknown",
                }
            }

            /// Returns the type of that name, or [`Self::Unknown`].
            #[must_use]
            pub fn parse(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }
        }
    };
}

event_types! {
    /// `data`: `{id}`
    AgentCreated = "agent.created",
    /// `data`: `{id}`
    AgentDestroyed = "agent.destroyed",
    /// `data`: `{appended, messages}`: how many came and how many there are
    MessageAppended = "message.appended",
    /// `data`: `{id, short_id, session_id, trigger, messages}`
    ContextSaved = "context.saved",
    /// `data`: `{discarded}`
    ContextCleared = "context.cleared",
    /// `data`: `{id, session_id, messages}`
    ContextRestored = "context.restored",
    /// `data`: a receipt `{tokens_before, tokens_after, left, kept, from, to, pins}`; where a new context began, also `{id, session_id}`
    /// of the session that it goes on from
    ContextCompacted = "context.compacted",
    /// `data`: the receipt of the last `context.compacted` as it is now: the model has written down what left the window, or why not
    ContextNoted = "context.noted",
    /// `data`: `{id, summary, source}`: a session has its summary
    SummaryReady = "summary.ready",
    /// `data`: `{turn_id}`
    TurnStarted = "turn.started",
    /// `data`: `{turn_id}` and a piece as `send` streams it: `{text}`, `{thinking}`, `{note}`. Not kept: it has the number of the
    /// event before it, and no replay has it
    TurnDelta = "turn.delta",
    /// `data`: `{turn_id, usage}`
    TurnFinished = "turn.finished",
    /// `data`: `{turn_id, reason}`: it ended without an answer
    TurnInterrupted = "turn.interrupted",
    /// `data`: `{turn_id, id, name}`
    ToolStarted = "tool.started",
    /// `data`: `{turn_id, id, name, is_error}`
    ToolFinished = "tool.finished",
    /// `data`: an approval: somebody is asked
    ApprovalAsked = "approval.asked",
    /// `data`: an approval with its answer
    ApprovalDecided = "approval.decided",
    /// `data`: `{id, command, pid}`: a command in the background
    TaskStarted = "task.started",
    /// `data`: `{id, command, status, exit_code}`, and `signal` where one ended it
    TaskFinished = "task.finished",
    /// `data`: `{text}`: something to tell people; `id`: the session that it is about, where it is about one
    Notice = "notice",
    DaemonStopping = "daemon.stopping",
}

/// Something that happened.
#[wire(PartialEq)]
pub struct Event {
    /// One more than that of the event before it, over restarts too.
    pub seq: u64,
    pub time: Timestamp,
    #[serde(rename = "type")]
    pub kind: EventType,
    /// Name of the agent, where it concerns one.
    pub agent: Option<String>,
    pub data: Value,
}

/// `params` of a `lagged` notification: events that this subscriber did not get.
#[wire(PartialEq, Eq)]
pub struct Lagged {
    pub missed: u64,
}
