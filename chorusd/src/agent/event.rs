//! What can happen to an agent.

use std::sync::Arc;

use chorus_proto::methods::context::{AppendResult, ClearResult};
use chorus_proto::methods::send::SendResult;
use chorus_proto::{ContextInfo, Receipt, Session, TokenPair, Trigger, WorkingSet};
use jiff::Timestamp;
use uuid::Uuid;

use super::Facts;
use super::compaction::Compaction;
use super::context::{Pick, Room};
use super::effect::CallModel;
use super::noted::WrittenDown;
use super::turn::{Answer, Moment, Send, Stopped};
use crate::clock::Ticks;
use crate::failure::{Failure, Result};
use crate::message::{ContextNo, Stored};

/// Tells the replies of one actor apart.
pub type RequestId = u64;

/// What somebody asks of an agent.
#[derive(Debug)]
pub enum Verb {
    Append {
        messages: Vec<Stored>,
        key: Option<String>,
    },
    /// A turn with the model.
    Send(Box<Send>),
    /// Ends the turn that runs, or this one.
    Cancel(Option<Uuid>),
    /// Takes this turn back where it still waits for others.
    TakeBack(Uuid),
    /// The daemon stops: ends the turn that runs, and those that wait. What is asked from then on [`super::registry`] refuses.
    EndTurns,
    /// Nothing but a reason to read the context back, and to close what a crash left open.
    Wake,
    Show {
        pick: Pick,
        room: Room,
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
    PutAway {
        trigger: Trigger,
        end: bool,
    },
    /// The context that was due then: saves what no session holds, and clears.
    Idle {
        due: Ticks,
    },
    /// Another idle timeout holds from now on.
    Retime,
    Pin {
        id: String,
        text: String,
    },
    /// Takes out the `number`th pinned fact, counted from 1.
    Unpin {
        number: u64,
    },
    /// Saves what a compaction is to go on from; the context goes on.
    SaveToCompact,
    /// Asks whether no turn keeps the context from being replaced.
    IsFree,
    /// A fresh context goes on from a session.
    Resume(Box<Resume>),
    /// Takes the last compaction in place back.
    Uncompact,
    /// Takes what the model has written down of messages that have left the window.
    Note(Box<WrittenDown>),
    /// Drops the last user turns from the context.
    Rewind {
        turns: u64,
    },
    /// Brings back what the last rewind dropped.
    Unrewind,
    /// Stops referring to this session, and no longer counts as saved in it: it is about to go.
    Materialise(Uuid),
    /// Leaves memory, if nobody has asked anything for a while; the actor sees to it.
    Rest,
    /// Keeps everything else out until the reply is dropped. In a turn it is refused, unless the agent `goes`: that ends it.
    Hold {
        goes: bool,
    },
}

/// A session that is to become the live context.
#[derive(Debug)]
pub struct Restore {
    pub session: Uuid,
    pub session_id: String,
    /// The first of its messages.
    pub messages: Vec<Stored>,
    /// What comes behind them, and is not in the session.
    pub added: Vec<Stored>,
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
    pub acknowledgement: Stored,
    /// What the acknowledgement cost.
    pub cost: TokenPair,
    /// The session is a save of the live context, which is compacted.
    pub compacts: Option<Compacts>,
}

/// A live context that is to be compacted, as it was when it was saved. Where it has gone on since, it is left alone.
#[derive(Debug)]
pub struct Compacts {
    pub context: ContextNo,
    pub messages: u64,
    pub receipt: Receipt,
}

/// A request as the state machine sees it.
#[derive(Debug)]
pub struct Request {
    pub asked: Asked,
    pub verb: Verb,
}

/// What comes with every request.
#[derive(Debug)]
pub struct Asked {
    pub id: RequestId,
    pub facts: Arc<Facts>,
    pub now: Timestamp,
    pub ticks: Ticks,
    /// A number for a context that may have to begin.
    pub fresh: ContextNo,
}

/// What became of messages on their way into the journal.
#[derive(Debug, Clone)]
pub enum Journalled {
    Now(AppendResult),
    /// The key was known: nothing was added.
    Before(AppendResult),
    /// The key of a turn was known.
    Known(Known),
    /// It was no message, and is there.
    Noted,
}

/// A turn that a key began before.
#[derive(Debug, Clone)]
pub struct Known {
    pub turn: Uuid,
    /// `None`: it ended without one.
    pub answer: Option<SendResult>,
}

/// A session that is on the disk.
#[derive(Debug)]
pub struct Written {
    pub session: Box<Session>,
    /// A model is to summarise it: that of this agent.
    pub summarise: Option<Arc<Facts>>,
    /// What a person should know of it.
    pub warning: Option<String>,
}

impl From<Session> for Written {
    fn from(session: Session) -> Self {
        Self { session: Box::new(session), summarise: None, warning: None }
    }
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    Request(Box<Request>),
    /// The oldest append that was under way has ended.
    Appended(Result<Journalled>),
    Written(Result<Written>),
    Ended(Result<()>),
    Replaced(Result<()>),
    Materialised(Result<()>),
    Changed(Result<()>),
    Released,
    /// The model has answered the call of this turn and step, or has not.
    Called {
        of: (Uuid, u32),
        moment: Moment,
        result: Box<Result<Answer, Box<Stopped>>>,
    },
    /// The window of the call of this turn and step was compacted first.
    Compacted {
        of: (Uuid, u32),
        moment: Moment,
        compaction: Box<Compaction>,
    },
    ToolEnded(Box<ToolEnded>),
    /// It is in the journal that the turn is over.
    TurnClosed {
        turn: Uuid,
        moment: Moment,
        result: Result<()>,
    },
}

/// The tool of a call has ended.
#[derive(Debug)]
pub struct ToolEnded {
    /// The turn and the step.
    pub of: (Uuid, u32),
    pub moment: Moment,
    /// Its place in the answer: two calls of one answer may have the same id.
    pub at: usize,
    pub result: Stored,
    pub is_error: bool,
    /// It was not begun, because too many before it had failed.
    pub skipped: bool,
    /// The daemon cannot go on: the turn ends.
    pub stop: Option<Failure>,
}

/// The answer to a [`Verb`].
#[derive(Debug)]
pub enum Reply {
    Appended(AppendResult),
    Page {
        messages: Vec<Stored>,
        working_set: Box<WorkingSet>,
        info: Option<ContextInfo>,
        next: Option<u64>,
    },
    Window(Box<CallModel>),
    Saved {
        session: Box<Session>,
        cleared: bool,
        /// A model's summary of it is on its way.
        pending: bool,
        /// What a person should know of it.
        warning: Option<String>,
    },
    /// This context may be compacted: the session holds it.
    SavedToCompact {
        context: ContextNo,
        /// The messages before this one had left the window.
        view: usize,
        session: Box<Session>,
        /// A model's summary of it is on its way.
        pending: bool,
    },
    Cleared(Box<ClearResult>),
    Restored {
        messages: u64,
        saved_first: Option<Box<Session>>,
    },
    PutAway(Option<Box<Session>>),
    /// A turn runs: an idle context is none.
    InTurn,
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
    GoneOn {
        /// Another one has its place.
        replaced: bool,
    },
    Materialised,
    Pinned(Box<WorkingSet>),
    /// Messages that went or came back, and how many there are now.
    Rewound {
        moved: u64,
        messages: u64,
    },
    Sent(Box<SendResult>),
    /// The turn that was told to end.
    Cancelled(Option<Uuid>),
    Done,
    Held,
}
