//! What the state machine wants done.

use core::time::Duration;
use std::sync::Arc;

use chorus_proto::methods::send::{SendResult, TurnEvent};
use chorus_proto::{EventType, Session, TokenPair, ToolCall, Trigger, WorkingSet};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::AgentSettings;
use super::compaction::{Compaction, CompactionMode};
use super::context::{Context, Deadline};
use super::event::{CommandOutcome, RequestId};
use super::tool_budget::{CircuitBreaker, ToolCutoff};
use crate::error::Result;
use crate::message::{ContextNo, StoredMessage, Totals};
use crate::requester::Requester;

/// Something to do; what is waited for comes back as an event.
#[derive(Debug)]
pub enum Effect {
    /// Journal messages. Appends end in the order in which they began.
    Append(Box<Append>),
    /// Write a session.
    WriteSession(Box<SessionDraft>),
    /// End a context in the journal.
    EndContext(ContextNo),
    /// End the old context and begin one that refers to a session, in one step.
    ReplaceWithSession {
        old: Option<ContextNo>,
        new: Box<ContextHead>,
        session: Uuid,
        /// Of what it refers to.
        totals: Totals,
        /// Messages of its own behind that.
        appended: Vec<StoredMessage>,
        working_set: Box<WorkingSet>,
        restoration: TokenPair,
    },
    /// End the old context and begin one that has messages of its own, in one step.
    ReplaceWithMessages {
        old: Option<ContextNo>,
        new: Box<ContextHead>,
        messages: Vec<StoredMessage>,
        working_set: Box<WorkingSet>,
        restoration: TokenPair,
        /// What observers hear of it.
        event: (EventType, Value),
    },
    /// Journal that messages have left the window. It ends in its place among the appends.
    RecordCompaction {
        context: ContextNo,
        record_number: u32,
        compaction: Box<Compaction>,
        at: Timestamp,
    },
    /// Journal the messages themselves instead of the reference to a session; it holds them no longer.
    Materialise {
        session: Uuid,
        context: Box<Context>,
    },
    /// Journal a change that is no message.
    RecordEdit(Box<Edit>),
    /// Journal another deadline; nobody waits for it.
    SetDeadline {
        context: ContextNo,
        deadline: Option<Deadline>,
    },
    /// Tell observers; nobody waits for it.
    EmitEvent(EventType, Value),
    /// Tell people that an idle context was put away, and as which session; nobody waits for it.
    PostIdleNotice {
        session: Uuid,
        written: Option<Box<Session>>,
        timeout: Duration,
    },
    /// Have a model summarise the session; nobody waits for it.
    Summarise {
        session: Uuid,
        settings: Arc<AgentSettings>,
    },
    Reply(RequestId, Result<CommandOutcome>),
    /// Ask the model; its answer carries the turn and the step.
    CallModel(Box<CallModel>),
    /// Run the tools of one answer.
    RunTools(Box<RunTools>),
    /// End whatever the turn has under way.
    CancelTurn(Uuid),
    /// Journal that a turn is over which has no more to say.
    CloseTurn {
        context: ContextNo,
        marker: TurnMarker,
    },
    /// A turn begins; nobody listens to it yet.
    BeginTurn(Uuid),
    /// This request hears what is said in the turn from now on.
    AddListener(RequestId),
    /// This request waits for the turn to end: it hears what is asked in it, and nothing else.
    AddApprovalListener(RequestId),
    /// Say something to one who waits.
    SendTo(RequestId, TurnEvent),
    /// Say something to all who wait for the turn.
    Broadcast(TurnEvent),
}

/// A call of the agent's model.
#[derive(Debug)]
pub struct CallModel {
    pub turn: Uuid,
    /// Number of the call in its turn, from 1.
    pub step: u32,
    pub settings: Arc<AgentSettings>,
    pub context: ContextNo,
    /// The whole conversation; what is shown of it is cut out of this.
    pub messages: Arc<Vec<StoredMessage>>,
    pub working_set: WorkingSet,
    /// The messages before this one have left the window.
    pub window_start: usize,
    /// The message that opened the turn.
    pub turn_start: usize,
    /// Whether more are to leave it first.
    pub compaction_mode: CompactionMode,
    /// Show less than usual: it was too long.
    pub reduced: bool,
    /// It is to answer without tools.
    pub final_answer: Option<ToolCutoff>,
}

/// The calls of one answer; a turn that was cancelled meanwhile runs none.
#[derive(Debug)]
pub struct RunTools {
    pub turn: Uuid,
    pub step: u32,
    pub calls: Vec<PlannedCall>,
    /// As it stands before the first of them.
    pub breaker: CircuitBreaker,
    /// Who asked for the turn.
    pub requester: Requester,
    pub cancelled: bool,
}

/// A call, and why it is not carried out, where it is not.
#[derive(Debug)]
pub struct PlannedCall {
    pub call: ToolCall,
    pub refusal: Option<&'static str>,
}

/// What the journal notes of a turn along with a message.
#[derive(Debug, Clone)]
pub enum TurnMarker {
    /// It begins. A key that came before begins none.
    Open { turn: Uuid, key: Option<String> },
    /// It is over; a key is given this answer from now on.
    Close { turn: Uuid, key: Option<String>, answer: Option<Box<SendResult>> },
}

impl TurnMarker {
    /// The turn that it is of.
    #[must_use]
    pub fn turn(&self) -> Uuid {
        match self {
            Self::Open { turn, .. } | Self::Close { turn, .. } => *turn,
        }
    }
}

/// A context that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextHead {
    pub context: ContextNo,
    pub agent: Uuid,
    pub started_at: Timestamp,
    pub deadline: Option<Deadline>,
    pub parent: Option<Uuid>,
}

/// Messages for the journal.
#[derive(Debug)]
pub struct Append {
    /// Made where the journal does not have it yet.
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

/// A change that is no message, with what holds afterwards.
#[derive(Debug)]
pub struct Edit {
    /// Made where the journal does not have it yet.
    pub head: ContextHead,
    /// Number of the record.
    pub record_number: u32,
    pub edit: ContextEdit,
    pub totals: Totals,
    pub saved: u64,
    pub deadline: Option<Deadline>,
}

/// What changes.
#[derive(Debug, Clone)]
pub enum ContextEdit {
    WorkingSet(Box<WorkingSet>),
    Rewind { keep: u64, saved: u64 },
    Unrewind,
    Uncompact,
}

/// A session before it is written.
#[derive(Debug)]
pub struct SessionDraft {
    pub settings: Arc<AgentSettings>,
    pub context: ContextNo,
    /// The context ends next, so the journal need not hear that it is saved. Should a crash come between, the same is not
    /// saved twice.
    pub ends_context: bool,
    pub trigger: Trigger,
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub now: Timestamp,
    pub started_at: Timestamp,
    pub parent: Option<Uuid>,
    pub messages: Arc<Vec<StoredMessage>>,
    pub totals: Totals,
    pub working_set: WorkingSet,
    pub restoration: TokenPair,
}
