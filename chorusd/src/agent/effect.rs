//! What the state machine wants done.

use std::sync::Arc;

use chorus_proto::Trigger;
use jiff::Timestamp;
use uuid::Uuid;

use super::Facts;
use super::event::{Reply, RequestId};
use crate::failure::Result;
use crate::message::{ContextNo, Stored, Totals};

/// Something to do; each but [`Effect::Reply`] comes back as the event of the same name.
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
    },
    /// Journal the messages themselves instead of the reference to a session; it holds them no longer.
    Materialise {
        context: ContextNo,
        session: Uuid,
        messages: Vec<Stored>,
    },
    Reply(RequestId, Result<Reply>),
}

/// A context that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    pub context: ContextNo,
    pub agent: Uuid,
    pub started_at: Timestamp,
    pub idle_deadline_at: Option<Timestamp>,
    pub parent: Option<Uuid>,
}

/// Messages for the journal.
#[derive(Debug)]
pub struct Append {
    /// Made where the journal does not have it yet.
    pub begin: Beginning,
    /// Number of the first record.
    pub first: u32,
    pub messages: Vec<Stored>,
    pub at: Timestamp,
    pub deadline: Option<Timestamp>,
    pub key: Option<String>,
}

/// A session before it is written.
#[derive(Debug)]
pub struct Draft {
    pub facts: Arc<Facts>,
    pub context: ContextNo,
    pub trigger: Trigger,
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub now: Timestamp,
    pub started_at: Timestamp,
    pub parent: Option<Uuid>,
    pub messages: Vec<Stored>,
    pub totals: Totals,
}
