//! What the state machine wants done.

use core::time::Duration;
use std::sync::Arc;

use chorus_proto::{EventType, Session, Trigger, WorkingSet};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::Facts;
use super::context::Deadline;
use super::event::{Reply, RequestId};
use crate::failure::Result;
use crate::message::{ContextNo, Stored, Totals};

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
        totals: Totals,
        working_set: Box<WorkingSet>,
    },
    /// Journal the messages themselves instead of the reference to a session; it holds them no longer.
    Materialise {
        context: ContextNo,
        session: Uuid,
        messages: Vec<Stored>,
        working_set: Box<WorkingSet>,
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
    pub messages: Vec<Stored>,
    pub totals: Totals,
    pub working_set: WorkingSet,
}
