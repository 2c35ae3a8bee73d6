//! The inputs of an agent's state machine: commands from callers and completions of effects. Also the outcomes of
//! commands.

use std::sync::Arc;

use chorus_base::Ticks;
use chorus_base::error::{Error, Result};
use chorus_proto::methods::context::{AppendResult, ClearResult};
use chorus_proto::methods::send::SendResult;
use chorus_proto::{ContextInfo, Recall, Receipt, Session, TokenPair, Trigger, WorkingSet};
use chorus_session::notes::{AppliedEdit, NoteEdit};
use chorus_session::stored_message::{ContextNo, StoredMessage};
use jiff::Timestamp;
use uuid::Uuid;

use super::AgentSettings;
use super::compaction::Compaction;
use super::compaction_extraction::ExtractionResult;
use super::context::{Context, PageBudget, PageRange};
use super::effect::{CallModel, SessionDraft};
use super::interruption_reason::Interruption;
use super::turn::{EventTime, ModelFailure, ModelReply, TurnRequest};

/// Identifies a pending request within one actor.
pub type RequestId = u64;

/// A command to an agent.
#[derive(Debug)]
pub enum AgentCommand {
    Append {
        messages: Vec<StoredMessage>,
        key: Option<String>,
    },
    /// Starts a turn with the model, or queues it.
    Send(Box<TurnRequest>),
    /// Ends the running turn. With an id, only if it is that turn, or withdraws that turn if it is queued.
    Cancel(Option<Uuid>),
    /// Removes this turn from the queue of waiting turns.
    CancelQueued(Uuid),
    /// Ends the running turn and refuses the queued ones because the daemon stops. The registry of agents refuses the
    /// turns that are requested later.
    EndTurns,
    /// Ends the running turn, since the store can no longer be reached.
    EndTurnWithoutStore,
    /// Does nothing itself. It makes the actor load the context and close a turn that a crash left open.
    Wake,
    ReadPage {
        pick: PageRange,
        budget: PageBudget,
    },
    /// Returns what the next model call would be made of.
    Window,
    /// Returns what a save would write, dated by the last message. Nothing is saved.
    Draft,
    Save {
        description: Option<String>,
        tags: Vec<String>,
        clear: bool,
    },
    Clear {
        save: bool,
    },
    Restore(Box<Restore>),
    /// Saves the messages that no session holds. `end` clears the context afterwards.
    SaveIfUnsaved {
        trigger: Trigger,
        end: bool,
    },
    /// Saves the messages that no session holds and clears the context, if its deadline is still `due`.
    Expire {
        due: Ticks,
    },
    /// Recomputes the deadline after a change of the idle timeout.
    UpdateIdleTimeout,
    /// Edits the notes: pins a fact, closes a task and the like.
    EditNotes(Box<NoteEdit>),
    /// Saves the session that a compaction continues from. The context stays.
    SaveForCompaction,
    /// Fails if a running turn keeps the context from being replaced.
    CheckReplaceable,
    /// Starts a fresh context that continues from a session.
    Resume(Box<Resume>),
    /// Undoes the last compaction in place, or finds out that the last one was by hand.
    Uncompact,
    /// Undoes the compaction by hand that the context began with.
    UndoContinuation(Box<UndoContinuation>),
    /// Stores what the model extracted from messages that have left the window.
    ApplyExtraction(Box<ExtractionResult>),
    /// Drops the last user turns from the context.
    Rewind {
        turns: u64,
    },
    /// Brings back the messages that the last rewind dropped.
    Unrewind,
    /// Copies this session's messages into the journal, because the session is about to be deleted: the context no
    /// longer refers to it and no longer counts as saved in it.
    Materialise(Uuid),
    /// Evicts the context from memory if no request came for a while. The actor handles this, not the state machine.
    Evict,
    /// Locks the agent against other requests until the reply is dropped. Fails while a turn runs, unless `ends_turn`
    /// is set: then it ends the turn first, for that reason.
    Hold {
        ends_turn: Option<Interruption>,
    },
}

/// A session that becomes the live context.
#[derive(Debug)]
pub struct Restore {
    pub session: Uuid,
    pub session_id: String,
    /// The first messages of the session.
    pub messages: Vec<StoredMessage>,
    /// Messages after those that are not in the session.
    pub appended: Vec<StoredMessage>,
    pub working_set: WorkingSet,
    /// Tokens that resuming had cost the session.
    pub restoration: TokenPair,
    /// Discards unsaved messages instead of saving them first.
    pub discard: bool,
}

/// A session that a fresh context continues from.
#[derive(Debug)]
pub struct Resume {
    pub session: Uuid,
    pub session_id: String,
    /// Working set of the fresh context. The live context's pinned facts are added if no session holds them.
    pub working_set: WorkingSet,
    pub acknowledgement: StoredMessage,
    /// Tokens that the acknowledgement cost.
    pub restoration: TokenPair,
    /// Set if the session is a save of the live context that is being compacted.
    pub compaction: Option<CompactionTarget>,
}

/// The live context to compact, as it was when it was saved. A context that has changed since then is left alone.
#[derive(Debug)]
pub struct CompactionTarget {
    pub context: ContextNo,
    pub messages: u64,
    pub receipt: Receipt,
}

/// A context that began by a compaction by hand.
#[derive(Debug)]
pub struct BegunByCompaction {
    pub context: ContextNo,
    /// The session that has the compacted messages.
    pub session: Uuid,
    pub receipt: Box<Receipt>,
}

/// The compaction by hand to undo.
#[derive(Debug)]
pub struct UndoContinuation {
    /// The context that began with it.
    pub context: ContextNo,
    /// The session that has the compacted messages.
    pub restore: Box<Restore>,
}

/// A request to the state machine.
#[derive(Debug)]
pub struct Request {
    pub meta: RequestMeta,
    pub command: AgentCommand,
}

/// The data that comes with every request.
#[derive(Debug)]
pub struct RequestMeta {
    pub id: RequestId,
    pub settings: Arc<AgentSettings>,
    /// The name of the conversation, for messages; `None` for `main`.
    pub conversation: Option<String>,
    pub now: Timestamp,
    pub ticks: Ticks,
    /// Number for a context that may have to be created.
    pub new_context: ContextNo,
}

impl RequestMeta {
    /// Returns `the conversation of api`, or `the conversation review` if it is not `main`.
    pub(crate) fn conversation_phrase(&self) -> String {
        match &self.conversation {
            Some(name) => format!("the conversation {name}"),
            None => format!("the conversation of {}", self.settings.name),
        }
    }
}

/// Outcome of an append to the journal.
#[derive(Debug, Clone)]
pub enum AppendOutcome {
    Added(AppendResult),
    /// The idempotency key was known, so nothing was added.
    Duplicate(AppendResult),
    /// The key of a turn was known.
    DuplicateTurn(PriorTurn),
    /// A record that has no messages, of a compaction or of what was recalled, was appended.
    RecordAppended,
}

/// An earlier turn with the same key.
#[derive(Debug, Clone)]
pub struct PriorTurn {
    pub turn: Uuid,
    /// `None`: the turn ended without an answer.
    pub result: Option<SendResult>,
}

/// A session that was written to disk.
#[derive(Debug)]
pub struct WrittenSession {
    pub session: Box<Session>,
    /// Settings of the agent whose model is to summarise the session; `None` if no model is to be asked.
    pub summarise_with: Option<Arc<AgentSettings>>,
    /// The newest session before it, if that has the same messages and notes.
    pub unchanged_since: Option<Box<Session>>,
    /// A warning for the user.
    pub warning: Option<String>,
}

impl From<Session> for WrittenSession {
    fn from(session: Session) -> Self {
        Self { session: Box::new(session), summarise_with: None, unchanged_since: None, warning: None }
    }
}

/// An input of the state machine.
#[derive(Debug)]
pub enum Event {
    Request(Box<Request>),
    /// Loading the whole of a large context has completed: the context as the journal had it, or the error.
    ContextLoaded(Box<Result<Context>>),
    /// The oldest pending append has completed.
    Appended(Result<AppendOutcome>),
    SessionWritten(Result<WrittenSession>),
    ContextEnded(Result<()>),
    ContextReplaced(Result<()>),
    MessagesMaterialised(Result<()>),
    EditRecorded(Result<()>),
    HoldReleased,
    /// The model call of this turn and step has completed.
    ModelCalled {
        turn_step: (Uuid, u32),
        moment: EventTime,
        result: Box<Result<ModelReply, Box<ModelFailure>>>,
    },
    /// The model call of this turn and step was not made, because its window must be compacted first.
    CompactionPlanned {
        turn_step: (Uuid, u32),
        moment: EventTime,
        compaction: Box<Compaction>,
    },
    /// The model call of this turn and step was not made, because passages were found that its window must have first.
    Recalled {
        turn_step: (Uuid, u32),
        moment: EventTime,
        recall: Box<Recall>,
    },
    ToolEnded(Box<ToolEnded>),
    /// The journal has recorded the end of the turn, or could not.
    TurnClosed {
        turn: Uuid,
        moment: EventTime,
        result: Result<()>,
    },
}

/// The tool of a call has completed.
#[derive(Debug)]
pub struct ToolEnded {
    /// The turn and the step.
    pub turn_step: (Uuid, u32),
    pub moment: EventTime,
    /// Index of the call in the reply. The id does not suffice: two calls of one reply may have the same id.
    pub call_index: usize,
    pub result: StoredMessage,
    pub is_error: bool,
    /// The call was not started because too many calls before it failed.
    pub skipped: bool,
    /// The error because of which the daemon cannot go on: the turn ends.
    pub fatal: Option<Error>,
}

/// A page of a context.
#[derive(Debug)]
pub struct ContextPage {
    pub messages: Vec<StoredMessage>,
    pub working_set: Box<WorkingSet>,
    pub info: Option<ContextInfo>,
    pub next: Option<u64>,
}

/// The live context as a save would write it.
#[derive(Debug)]
pub struct ContextDraft {
    pub session: SessionDraft,
    /// True if the context has something that no session holds.
    pub unsaved: bool,
}

/// The session that a save wrote.
#[derive(Debug)]
pub struct SavedContext {
    pub session: Box<Session>,
    pub cleared: bool,
    /// True while a model writes the summary.
    pub summary_pending: bool,
    /// As in [`WrittenSession`].
    pub unchanged_since: Option<Box<Session>>,
    /// A warning for the user.
    pub warning: Option<String>,
}

/// The session that holds a context, which may now be compacted.
#[derive(Debug)]
pub struct CompactionSave {
    pub context: ContextNo,
    /// Index of the first message in the window.
    pub window_start: usize,
    pub session: Box<Session>,
    /// True while a model writes the summary.
    pub summary_pending: bool,
}

/// The context that replaced the live one.
#[derive(Debug)]
pub struct RestoredContext {
    pub messages: u64,
    pub saved_first: Option<Box<Session>>,
}

/// The context after a compaction was made or undone, with the receipt of that compaction.
#[derive(Debug)]
pub struct CompactedContext {
    pub receipt: Box<Receipt>,
    pub messages: u64,
}

/// The working set after an edit of its notes, and what the edit was.
#[derive(Debug)]
pub struct EditedNotes {
    pub working_set: Box<WorkingSet>,
    pub edit: AppliedEdit,
}

/// How many messages were dropped or brought back, and how many there are now.
#[derive(Debug)]
pub struct RewoundContext {
    pub moved_messages: u64,
    pub messages: u64,
}

/// The result of an [`AgentCommand`].
#[derive(Debug)]
pub enum CommandOutcome {
    Appended(AppendResult),
    Page(ContextPage),
    Window(Box<CallModel>),
    /// `None` if there are no messages.
    Draft(Option<Box<ContextDraft>>),
    Saved(SavedContext),
    SavedForCompaction(CompactionSave),
    Cleared(Box<ClearResult>),
    Restored(RestoredContext),
    SavedIfUnsaved(Option<Box<Session>>),
    /// A turn runs, so the context did not expire.
    TurnRunning,
    /// A fresh context continues from the live one, which was saved.
    Compacted(CompactedContext),
    /// The last compaction was undone.
    Uncompacted(CompactedContext),
    /// The last compaction was by hand.
    BegunByCompaction(BegunByCompaction),
    /// The context that was to be compacted has changed since it was saved.
    ContextMovedOn {
        /// Whether another context has taken its place.
        replaced: bool,
    },
    Materialised,
    NotesEdited(Box<EditedNotes>),
    Rewound(RewoundContext),
    Sent(Box<SendResult>),
    /// The turn that is being ended, if there was one.
    Cancelled(Option<Uuid>),
    Done,
    Held,
}
