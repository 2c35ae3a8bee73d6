//! What can happen to an agent.

use std::sync::Arc;

use chorus_proto::methods::context::{AppendResult, ClearResult};
use chorus_proto::methods::send::SendResult;
use chorus_proto::{ContextInfo, Receipt, Session, TokenPair, Trigger, WorkingSet};
use jiff::Timestamp;
use uuid::Uuid;

use super::AgentSettings;
use super::compaction::Compaction;
use super::context::{PageBudget, PageRange};
use super::effect::CallModel;
use super::extraction_result::ExtractionResult;
use super::turn::{EventTime, ModelFailure, ModelReply, TurnRequest};
use crate::clock::Ticks;
use crate::error::{Error, Result};
use crate::message::{ContextNo, StoredMessage};

/// Tells the replies of one actor apart.
pub type RequestId = u64;

/// What somebody asks of an agent.
#[derive(Debug)]
pub enum AgentCommand {
    Append {
        messages: Vec<StoredMessage>,
        key: Option<String>,
    },
    /// A turn with the model.
    Send(Box<TurnRequest>),
    /// Ends the turn that runs, or this one.
    Cancel(Option<Uuid>),
    /// Takes this turn back where it still waits for others.
    CancelQueued(Uuid),
    /// The daemon stops: ends the turn that runs, and those that wait. What is asked from then on [`super::registry`] refuses.
    EndTurns,
    /// Nothing but a reason to read the context back, and to close what a crash left open.
    Wake,
    ReadPage {
        pick: PageRange,
        budget: PageBudget,
    },
    /// Shows what the next call of the model is made of.
    Window,
    Save {
        description: Option<String>,
        tags: Vec<String>,
        clear: bool,
    },
    Clear {
        save: bool,
    },
    Restore(Box<Restore>),
    /// Saves what no session holds; `end` clears afterwards.
    SaveIfUnsaved {
        trigger: Trigger,
        end: bool,
    },
    /// The context that was due then: saves what no session holds, and clears.
    Expire {
        due: Ticks,
    },
    /// Another idle timeout holds from now on.
    UpdateIdleTimeout,
    Pin {
        id: String,
        text: String,
    },
    /// Takes out the `number`th pinned fact, counted from 1.
    Unpin {
        number: u64,
    },
    /// Saves what a compaction is to go on from; the context goes on.
    SaveForCompaction,
    /// Asks whether no turn keeps the context from being replaced.
    CheckReplaceable,
    /// A fresh context goes on from a session.
    Resume(Box<Resume>),
    /// Takes the last compaction in place back.
    Uncompact,
    /// Takes what the model has written down of messages that have left the window.
    ApplyExtraction(Box<ExtractionResult>),
    /// Drops the last user turns from the context.
    Rewind {
        turns: u64,
    },
    /// Brings back what the last rewind dropped.
    Unrewind,
    /// Stops referring to this session, and no longer counts as saved in it: it is about to go.
    Materialise(Uuid),
    /// Leaves memory, if nobody has asked anything for a while; the actor sees to it.
    Evict,
    /// Keeps everything else out until the reply is dropped. In a turn it is refused, unless the agent `goes`: that ends it.
    Hold {
        ends_turn: bool,
    },
}

/// A session that is to become the live context.
#[derive(Debug)]
pub struct Restore {
    pub session: Uuid,
    pub session_id: String,
    /// The first of its messages.
    pub messages: Vec<StoredMessage>,
    /// What comes behind them, and is not in the session.
    pub appended: Vec<StoredMessage>,
    pub working_set: WorkingSet,
    /// What resuming had cost it.
    pub restoration: TokenPair,
    /// Drop unsaved messages instead of saving them first.
    pub discard: bool,
}

/// A session that a fresh context is to go on from.
#[derive(Debug)]
pub struct Resume {
    pub session: Uuid,
    pub session_id: String,
    /// Of the fresh context; the facts that are pinned in the live one are added where they are in no session.
    pub working_set: WorkingSet,
    pub acknowledgement: StoredMessage,
    /// What the acknowledgement cost.
    pub restoration: TokenPair,
    /// The session is a save of the live context, which is compacted.
    pub compaction: Option<CompactionTarget>,
}

/// A live context that is to be compacted, as it was when it was saved. Where it has gone on since, it is left alone.
#[derive(Debug)]
pub struct CompactionTarget {
    pub context: ContextNo,
    pub messages: u64,
    pub receipt: Receipt,
}

/// A request as the state machine sees it.
#[derive(Debug)]
pub struct Request {
    pub meta: RequestMeta,
    pub command: AgentCommand,
}

/// What comes with every request.
#[derive(Debug)]
pub struct RequestMeta {
    pub id: RequestId,
    pub settings: Arc<AgentSettings>,
    pub now: Timestamp,
    pub ticks: Ticks,
    /// A number for a context that may have to begin.
    pub new_context: ContextNo,
}

/// What became of messages on their way into the journal.
#[derive(Debug, Clone)]
pub enum AppendOutcome {
    Added(AppendResult),
    /// The key was known: nothing was added.
    Duplicate(AppendResult),
    /// The key of a turn was known.
    DuplicateTurn(PriorTurn),
    /// It was no message, and is there.
    CompactionRecorded,
}

/// A turn that a key began before.
#[derive(Debug, Clone)]
pub struct PriorTurn {
    pub turn: Uuid,
    /// `None`: it ended without one.
    pub result: Option<SendResult>,
}

/// A session that is on the disk.
#[derive(Debug)]
pub struct WrittenSession {
    pub session: Box<Session>,
    /// A model is to summarise it: that of this agent.
    pub summarise_with: Option<Arc<AgentSettings>>,
    /// What a person should know of it.
    pub warning: Option<String>,
}

impl From<Session> for WrittenSession {
    fn from(session: Session) -> Self {
        Self { session: Box::new(session), summarise_with: None, warning: None }
    }
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    Request(Box<Request>),
    /// The oldest append that was under way has ended.
    Appended(Result<AppendOutcome>),
    SessionWritten(Result<WrittenSession>),
    ContextEnded(Result<()>),
    ContextReplaced(Result<()>),
    MessagesMaterialised(Result<()>),
    EditRecorded(Result<()>),
    HoldReleased,
    /// The model has answered the call of this turn and step, or has not.
    ModelCalled {
        turn_step: (Uuid, u32),
        moment: EventTime,
        result: Box<Result<ModelReply, Box<ModelFailure>>>,
    },
    /// The window of the call of this turn and step was compacted first.
    CompactionPlanned {
        turn_step: (Uuid, u32),
        moment: EventTime,
        compaction: Box<Compaction>,
    },
    ToolEnded(Box<ToolEnded>),
    /// It is in the journal that the turn is over.
    TurnClosed {
        turn: Uuid,
        moment: EventTime,
        result: Result<()>,
    },
}

/// The tool of a call has ended.
#[derive(Debug)]
pub struct ToolEnded {
    /// The turn and the step.
    pub turn_step: (Uuid, u32),
    pub moment: EventTime,
    /// Its place in the answer: two calls of one answer may have the same id.
    pub call_index: usize,
    pub result: StoredMessage,
    pub is_error: bool,
    /// It was not begun, because too many before it had failed.
    pub skipped: bool,
    /// The daemon cannot go on: the turn ends.
    pub fatal: Option<Error>,
}

/// The answer to a [`Verb`].
#[derive(Debug)]
pub enum CommandOutcome {
    Appended(AppendResult),
    Page {
        messages: Vec<StoredMessage>,
        working_set: Box<WorkingSet>,
        info: Option<ContextInfo>,
        next: Option<u64>,
    },
    Window(Box<CallModel>),
    Saved {
        session: Box<Session>,
        cleared: bool,
        /// A model's summary of it is on its way.
        summary_pending: bool,
        /// What a person should know of it.
        warning: Option<String>,
    },
    /// This context may be compacted: the session holds it.
    SavedForCompaction {
        context: ContextNo,
        /// The messages before this one had left the window.
        window_start: usize,
        session: Box<Session>,
        /// A model's summary of it is on its way.
        summary_pending: bool,
    },
    Cleared(Box<ClearResult>),
    Restored {
        messages: u64,
        saved_first: Option<Box<Session>>,
    },
    SavedIfUnsaved(Option<Box<Session>>),
    /// A turn runs: an idle context is none.
    TurnRunning,
    /// A fresh context goes on from the live one, which was saved.
    Compacted {
        receipt: Box<Receipt>,
        messages: u64,
    },
    /// What the compaction had done that was taken back, and how many messages there are.
    Uncompacted {
        receipt: Box<Receipt>,
        messages: u64,
    },
    /// The context that was to be compacted has gone on.
    ContextMovedOn {
        /// Another one has its place.
        replaced: bool,
    },
    Materialised,
    Pinned(Box<WorkingSet>),
    /// Messages that went or came back, and how many there are now.
    Rewound {
        moved_messages: u64,
        messages: u64,
    },
    Sent(Box<SendResult>),
    /// The turn that was told to end.
    Cancelled(Option<Uuid>),
    Done,
    Held,
}
