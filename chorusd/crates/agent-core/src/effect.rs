//! The outputs of an agent's state machine: what the actor has to do.

use core::time::Duration;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_proto::methods::send::{SendResult, TurnEvent};
use chorus_proto::{ConversationRef, EventType, Session, TokenPair, ToolCall, Trigger, WorkingSet};
use chorus_session::notes::NoteChange;
use chorus_session::stored_message::{ContextNo, StoredMessage, Totals};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::AgentSettings;
use super::compaction::{Compaction, CompactionMode, ManualCompaction};
use super::context::{Context, Deadline};
use super::event::{CommandOutcome, RequestId};
use super::recall::PlannedRecall;
use super::tool_budget::{CircuitBreaker, ToolCutoff};

/// Something the actor does. If the state machine needs the outcome, it comes back as an event.
#[derive(Debug)]
pub enum Effect {
    /// Append messages to the journal. Appends complete in the order in which they started.
    Append(Box<Append>),
    /// Write a session file.
    WriteSession(Box<SessionDraft>),
    /// Record the end of a context in the journal.
    EndContext(ContextNo),
    /// Free the messages of a large context that has ended, which takes a while.
    FreeMessages(Arc<Vec<StoredMessage>>),
    /// End the old context and start one that refers to a session, in one commit.
    ReplaceWithSession {
        old: Option<ContextNo>,
        new: Box<ContextHead>,
        session: Uuid,
        /// Totals of the messages that the session holds.
        totals: Totals,
        /// Messages of the new context that come after those of the session.
        appended: Vec<StoredMessage>,
        working_set: Box<WorkingSet>,
        restoration: TokenPair,
    },
    /// End the old context and start one with messages of its own, in one commit.
    ReplaceWithMessages {
        old: Option<ContextNo>,
        new: Box<ContextHead>,
        messages: Vec<StoredMessage>,
        working_set: Box<WorkingSet>,
        restoration: TokenPair,
        /// The compaction by hand that the new context begins with, if it does.
        compaction: Option<Box<ManualCompaction>>,
        /// The event that observers receive with the commit.
        event: (EventType, Value),
    },
    /// Record in the journal that messages have left the window. It completes in order with the appends.
    RecordCompaction {
        context: ContextNo,
        record_number: u32,
        compaction: Box<Compaction>,
        at: Timestamp,
    },
    /// Record in the journal the working set with what was recalled. It completes in order with the appends.
    RecordRecall {
        context: ContextNo,
        record_number: u32,
        working_set: Box<WorkingSet>,
    },
    /// Record the messages themselves in the journal in place of the reference to a session. The session then no longer
    /// holds them.
    Materialise {
        session: Uuid,
        context: Box<Context>,
    },
    /// Record an edit of the context that adds no messages.
    RecordEdit(Box<Edit>),
    /// Record a new deadline in the journal, without waiting for it.
    SetDeadline {
        context: ContextNo,
        deadline: Option<Deadline>,
    },
    /// Emit an event to observers, without waiting for it.
    EmitEvent(EventType, Value),
    /// Post the notice that an idle context expired, with the session that holds it. Nothing waits for it.
    PostIdleNotice {
        session: Uuid,
        written: Option<Box<Session>>,
        timeout: Duration,
    },
    /// Have a model summarise the session in the background.
    Summarise {
        session: Uuid,
        settings: Arc<AgentSettings>,
    },
    Reply(RequestId, Result<CommandOutcome>),
    /// Call the model. The event that answers carries the turn and the step.
    CallModel(Box<CallModel>),
    /// Run the tool calls of one reply.
    RunTools(Box<RunTools>),
    /// Cancel what the turn is doing.
    CancelTurn(Uuid),
    /// Record the end of a turn that adds no further message.
    CloseTurn {
        context: ContextNo,
        marker: TurnMarker,
    },
    /// Start a turn. It has no listeners yet.
    BeginTurn(Uuid),
    /// Send the turn's events to this request from now on.
    AddListener(RequestId),
    /// Send only the turn's approval questions and their decisions to this request, which waits for the turn to end.
    AddApprovalListener(RequestId),
    /// Send an event to one waiting request.
    SendTo(RequestId, TurnEvent),
    /// Send an event to every listener of the turn.
    Broadcast(TurnEvent),
}

/// A call of the agent's model.
#[derive(Debug)]
pub struct CallModel {
    pub turn: Uuid,
    /// Number of the call in its turn, from 1.
    pub step: u32,
    pub settings: Arc<AgentSettings>,
    /// The model of this turn, instead of that of the settings.
    pub model: Option<String>,
    pub context: ContextNo,
    /// The whole conversation, from which the window is cut.
    pub messages: Arc<Vec<StoredMessage>>,
    pub working_set: WorkingSet,
    /// Index of the first message in the window.
    pub window_start: usize,
    /// Index of the message that started the turn.
    pub turn_start: usize,
    /// Whether to compact the window before the call.
    pub compaction_mode: CompactionMode,
    /// Send a smaller window than usual, because the model refused the last one as too long.
    pub reduced: bool,
    /// Set if passages of the agent's past are to be found for the window before the call.
    pub recall: Option<PlannedRecall>,
    /// Set if the model must answer without tools.
    pub final_answer: Option<ToolCutoff>,
}

/// The tool calls of one reply. A turn that was cancelled in the meantime runs none of them.
#[derive(Debug)]
pub struct RunTools {
    pub turn: Uuid,
    pub step: u32,
    pub calls: Vec<PlannedCall>,
    /// The failure counter before the first call.
    pub breaker: CircuitBreaker,
    /// The requester of the turn.
    pub requester: Requester,
    pub cancelled: bool,
}

/// A tool call and, if it is not carried out, the reason for that.
#[derive(Debug)]
pub struct PlannedCall {
    pub call: ToolCall,
    pub refusal: Option<&'static str>,
}

/// Start or end of a turn, recorded in the journal along with a message.
#[derive(Debug, Clone)]
pub enum TurnMarker {
    /// The turn starts. A key that was used before starts no turn.
    Open { turn: Uuid, key: Option<String> },
    /// The turn is over. The answer is returned to later requests with the same key.
    Close { turn: Uuid, key: Option<String>, answer: Option<Box<SendResult>> },
}

impl TurnMarker {
    /// Returns the id of the turn.
    #[must_use]
    pub fn turn(&self) -> Uuid {
        match self {
            Self::Open { turn, .. } | Self::Close { turn, .. } => *turn,
        }
    }
}

/// The head of a context: the data with which the journal creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextHead {
    pub context: ContextNo,
    pub agent: Uuid,
    pub started_at: Timestamp,
    pub deadline: Option<Deadline>,
    pub parent: Option<Uuid>,
}

/// Messages to append to the journal.
#[derive(Debug)]
pub struct Append {
    /// The context, which the journal creates if it does not have it yet.
    pub head: ContextHead,
    pub agent_name: String,
    /// Number of the first record.
    pub first_record: u32,
    pub messages: Vec<StoredMessage>,
    pub at: Timestamp,
    pub deadline: Option<Deadline>,
    pub key: Option<String>,
    pub marker: Option<TurnMarker>,
}

/// An edit that adds no messages, with the values that hold after it.
#[derive(Debug)]
pub struct Edit {
    /// The context, which the journal creates if it does not have it yet.
    pub head: ContextHead,
    /// Number of the record.
    pub record_number: u32,
    pub edit: ContextEdit,
    pub totals: Totals,
    pub saved: u64,
    pub deadline: Option<Deadline>,
}

/// The kinds of edits.
#[derive(Debug, Clone)]
pub enum ContextEdit {
    WorkingSet(Box<WorkingSet>),
    Notes(Vec<NoteChange>),
    Rewind { keep: u64, saved: u64 },
    Unrewind,
    Uncompact,
}

/// A session that is about to be written.
#[derive(Debug)]
pub struct SessionDraft {
    pub settings: Arc<AgentSettings>,
    /// The conversation, unless it is `main`. The state machine does not know it: whoever carries out the effect sets it.
    pub conversation: Option<ConversationRef>,
    pub context: ContextNo,
    /// The context ends right after this, so the journal does not record the save. If the daemon crashes in between,
    /// the next save finds the session and does not write it twice.
    pub ends_context: bool,
    pub trigger: Trigger,
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub now: Timestamp,
    pub started_at: Timestamp,
    pub parent: Option<Uuid>,
    /// The session that holds the first messages of the context.
    pub saved_session: Option<Uuid>,
    pub messages: Arc<Vec<StoredMessage>>,
    pub totals: Totals,
    pub working_set: WorkingSet,
    pub restoration: TokenPair,
}
