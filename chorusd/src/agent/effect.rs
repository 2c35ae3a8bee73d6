//! What the state machine wants done.

use core::time::Duration;
use std::sync::Arc;

use chorus_proto::methods::send::{Said, SendResult};
use chorus_proto::{EventType, Session, TokenPair, ToolCall, Trigger, WorkingSet};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::Facts;
use super::allowance::{Breaker, LastWord};
use super::compaction::{Compaction, Wish};
use super::context::{Context, Deadline};
use super::event::{Reply, RequestId};
use crate::failure::Result;
use crate::message::{ContextNo, Stored, Totals};
use crate::who::Requester;

/// Something to do; what is waited for comes back as an event.
#[derive(Debug)]
pub enum Effect {
    /// Journal messages. Appends end in the order in which they began.
    Append(Box<Append>),
    /// Write a session.
    Write(Box<Draft>),
    /// End a context in the journal.
    End(ContextNo),
    /// End the old context and begin one that refers to a session, in one step.
    Replace {
        old: Option<ContextNo>,
        new: Box<Beginning>,
        session: Uuid,
        /// Of what it refers to.
        totals: Totals,
        /// Messages of its own behind that.
        added: Vec<Stored>,
        working_set: Box<WorkingSet>,
        restoration: TokenPair,
    },
    /// End the old context and begin one that has messages of its own, in one step.
    Renew {
        old: Option<ContextNo>,
        new: Box<Beginning>,
        messages: Vec<Stored>,
        working_set: Box<WorkingSet>,
        restoration: TokenPair,
        /// What observers hear of it.
        news: (EventType, Value),
    },
    /// Journal that messages have left the window. It ends in its place among the appends.
    Compact {
        context: ContextNo,
        number: u32,
        compaction: Box<Compaction>,
        at: Timestamp,
    },
    /// Journal the messages themselves instead of the reference to a session; it holds them no longer.
    Materialise {
        session: Uuid,
        context: Box<Context>,
    },
    /// Journal a change that is no message.
    Change(Box<Change>),
    /// Journal another deadline; nobody waits for it.
    Deadline {
        context: ContextNo,
        deadline: Option<Deadline>,
    },
    /// Tell observers; nobody waits for it.
    Tell(EventType, Value),
    /// Tell people that an idle context was put away, and as which session; nobody waits for it.
    IdleNotice {
        session: Uuid,
        written: Option<Box<Session>>,
        timeout: Duration,
    },
    /// Have a model summarise the session; nobody waits for it.
    Summarise {
        session: Uuid,
        facts: Arc<Facts>,
    },
    Reply(RequestId, Result<Reply>),
    /// Ask the model; its answer carries the turn and the step.
    CallModel(Box<CallModel>),
    /// Run the tools of one answer.
    RunTools(Box<RunTools>),
    /// End whatever the turn has under way.
    StopTurn(Uuid),
    /// Journal that a turn is over which has no more to say.
    CloseTurn {
        context: ContextNo,
        mark: Mark,
    },
    /// A turn begins; nobody listens to it yet.
    BeginTurn(Uuid),
    /// This request hears what is said in the turn from now on.
    Join(RequestId),
    /// This request waits for the turn to end: it hears what is asked in it, and nothing else.
    Wait(RequestId),
    /// Say something to one who waits.
    Say(RequestId, Said),
    /// Say something to all who wait for the turn.
    SayAll(Said),
}

/// A call of the agent's model.
#[derive(Debug)]
pub struct CallModel {
    pub turn: Uuid,
    /// Number of the call in its turn, from 1.
    pub step: u32,
    pub facts: Arc<Facts>,
    pub context: ContextNo,
    /// The whole conversation; what is shown of it is cut out of this.
    pub messages: Arc<Vec<Stored>>,
    pub working_set: WorkingSet,
    /// The messages before this one have left the window.
    pub view: usize,
    /// The message that opened the turn.
    pub opened: usize,
    /// Whether more are to leave it first.
    pub wish: Wish,
    /// Show less than usual: it was too long.
    pub tight: bool,
    /// It is to answer without tools.
    pub last_word: Option<LastWord>,
}

/// The calls of one answer; a turn that was cancelled meanwhile runs none.
#[derive(Debug)]
pub struct RunTools {
    pub turn: Uuid,
    pub step: u32,
    pub calls: Vec<Planned>,
    /// As it stands before the first of them.
    pub breaker: Breaker,
    /// Who asked for the turn.
    pub by: Requester,
    pub cancelled: bool,
}

/// A call, and why it is not carried out, where it is not.
#[derive(Debug)]
pub struct Planned {
    pub call: ToolCall,
    pub refused: Option<&'static str>,
}

/// What the journal notes of a turn along with a message.
#[derive(Debug, Clone)]
pub enum Mark {
    /// It begins. A key that came before begins none.
    Open { turn: Uuid, key: Option<String> },
    /// It is over; a key is given this answer from now on.
    Close { turn: Uuid, key: Option<String>, answer: Option<Box<SendResult>> },
}

impl Mark {
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
pub struct Beginning {
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
    pub begin: Beginning,
    pub agent_name: String,
    /// Number of the first record.
    pub first: u32,
    pub messages: Vec<Stored>,
    pub at: Timestamp,
    pub deadline: Option<Deadline>,
    pub key: Option<String>,
    pub mark: Option<Mark>,
}

/// A change that is no message, with what holds afterwards.
#[derive(Debug)]
pub struct Change {
    /// Made where the journal does not have it yet.
    pub begin: Beginning,
    /// Number of the record.
    pub number: u32,
    pub what: What,
    pub totals: Totals,
    pub saved: u64,
    pub deadline: Option<Deadline>,
}

/// What changes.
#[derive(Debug, Clone)]
pub enum What {
    WorkingSet(Box<WorkingSet>),
    Rewind { keep: u64, saved: u64 },
    Unrewind,
    Uncompact,
}

/// A session before it is written.
#[derive(Debug)]
pub struct Draft {
    pub facts: Arc<Facts>,
    pub context: ContextNo,
    /// The context ends next, so the journal need not hear that it is saved. Should a crash come between, the same is not
    /// saved twice.
    pub ends: bool,
    pub trigger: Trigger,
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub now: Timestamp,
    pub started_at: Timestamp,
    pub parent: Option<Uuid>,
    pub messages: Arc<Vec<Stored>>,
    pub totals: Totals,
    pub working_set: WorkingSet,
    pub restoration: TokenPair,
}
