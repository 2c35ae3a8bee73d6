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
    /// `data`: `{appended, messages}`: number of new messages, and of all
    MessageAppended = "message.appended",
    /// `data`: `{id, short_id, session_id, trigger, messages}`
    ContextSaved = "context.saved",
    /// `data`: `{discarded}`
    ContextCleared = "context.cleared",
    /// `data`: `{id, session_id, messages}`
    ContextRestored = "context.restored",
    /// `data`: `{removed, messages}`: a rewind removed messages, and how many are left; `{restored, messages}`: it was undone
    ContextRewound = "context.rewound",
    /// `data`: a receipt `{tokens_before, tokens_after, left, kept, from, to, pins}`; if a new context was started,
    /// also `{id, session_id}` of the session that it continues
    ContextCompacted = "context.compacted",
    /// `data`: the updated receipt of the last `context.compacted`: the model has written its notes, or the reason why
    /// not
    ContextNoted = "context.noted",
    /// `data`: `{id, summary, source}`: a session has its summary
    SummaryReady = "summary.ready",
    /// `data`: `{turn_id}`
    TurnStarted = "turn.started",
    /// `data`: `{turn_id}` and a piece as in `send`: `{text}`, `{thinking}`, `{note}`. Not kept: it has the number of
    /// the previous event, and is never replayed
    TurnDelta = "turn.delta",
    /// `data`: `{turn_id, usage}`
    TurnFinished = "turn.finished",
    /// `data`: `{turn_id, reason}`: it ended without a complete reply
    TurnInterrupted = "turn.interrupted",
    /// `data`: `{turn_id, id, name}`
    ToolStarted = "tool.started",
    /// `data`: `{turn_id, id, name, is_error}`
    ToolFinished = "tool.finished",
    /// `data`: an approval that was requested
    ApprovalAsked = "approval.asked",
    /// `data`: an approval that was decided
    ApprovalDecided = "approval.decided",
    /// `data`: `{id, command, pid}`: a background command
    TaskStarted = "task.started",
    /// `data`: `{id, command, status, exit_code}`, and `signal` if one killed it
    TaskFinished = "task.finished",
    /// `data`: `{id, name, due_at}`: a run of a schedule
    ScheduleStarted = "schedule.started",
    /// `data`: `{id, name, due_at, outcome, turn_id}`, with `reply` or `error`; the end of a long reply is left out
    ScheduleFinished = "schedule.finished",
    /// `data`: `{text}`: something to tell people; `id`: the session that it is about, if any
    Notice = "notice",
    /// `data`: `{changed, restart}`: keys that apply now, and that apply after a restart. If the file cannot be used:
    /// `{error, hint?}`, and nothing changes
    ConfigReloaded = "config.reloaded",
    DaemonStopping = "daemon.stopping",
}

/// An event.
#[wire(PartialEq)]
pub struct Event {
    /// One more than the previous event's, across restarts.
    pub seq: u64,
    pub time: Timestamp,
    #[serde(rename = "type")]
    pub kind: EventType,
    /// Name of the agent, if it concerns one.
    pub agent: Option<String>,
    /// Name of its conversation, unless that is `main`.
    #[omit_empty]
    pub conversation: Option<String>,
    pub data: Value,
    /// Name of the node of a cluster from which it comes; left out for the daemon that was asked. Then `seq` is that of the last
    /// event of the daemon itself.
    #[omit_empty]
    pub node: Option<String>,
}

/// `params` of a `lagged` notification: number of events that this subscriber missed.
#[wire(PartialEq, Eq)]
pub struct Lagged {
    pub missed: u64,
}
