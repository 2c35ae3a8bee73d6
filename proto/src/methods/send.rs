//! `send` and `send.*`: turns with the agent's model.

use uuid::Uuid;

use super::approvals::{Approval, Status};
use super::{method, wire};
use crate::message::{Attachment, ToolCall, Usage};

method!(
    /// Runs one turn: appends the text to the context, calls the model, and runs its tool calls until it makes no more.
    /// The answer comes when the turn has ended. If the client disconnects, the turn continues.
    Send = "send", SendParams => SendResult
);
method!(
    /// Cancels the running turn and keeps what the model has said so far; or withdraws a waiting one, of which nothing
    /// is kept.
    Cancel = "send.cancel", CancelParams => CancelResult
);

#[wire(params)]
pub struct SendParams {
    pub agent: Option<String>,
    pub text: String,
    /// The same key again waits for, or returns, the first answer and does nothing. At most 256 characters.
    pub key: Option<String>,
    pub attachments: Vec<Attachment>,
    /// Send what the model says as it comes, as `progress` notifications with a [`Said`] each.
    #[expect(rustdoc::broken_intra_doc_links, reason = "the schema publishes this text, with the name `Said`")]
    pub stream: bool,
}

#[wire]
pub struct SendResult {
    /// What the model said last.
    pub reply: String,
    pub turn_id: Uuid,
    /// Of all calls of the turn together.
    pub usage: Usage,
    /// The tools it called, in order.
    pub tool_calls: Vec<ToolCall>,
}

/// `params` of a `progress` notification of [`Send`]: what was said since the one before.
#[wire]
pub struct Progress {
    /// The request's.
    pub id: u64,
    #[serde(flatten)]
    pub said: TurnEvent,
}

/// A piece of a turn as it comes. Pieces of one kind that come faster than they are read arrive as one.
#[wire(PartialEq, Eq)]
pub enum TurnEvent {
    /// Text of the reply.
    Text(String),
    Thinking(String),
    /// A tool is called.
    Tool {
        id: String,
        name: String,
        /// One line that says what it does: the command, or the file and the number of lines; older daemons do not say
        /// it.
        #[omit_empty]
        gist: Option<String>,
    },
    /// A tool has ended.
    Result {
        id: String,
        name: String,
        is_error: bool,
        /// The beginning of its output, or the reason of a failure; older daemons do not say it.
        #[omit_empty]
        output: Option<Box<ToolOutput>>,
    },
    /// A call waits until somebody approves or denies it.
    Ask {
        approval: Box<Approval>,
    },
    /// It does no longer.
    Decided {
        /// Of the approval.
        id: String,
        status: Status,
        /// Null: nobody; it expired, or the turn ended.
        by: Option<String>,
    },
    /// Something to tell the person: another try, a shorter window.
    Note(String),
    /// The turn begins: it was its turn, and the message is in the journal.
    Started {
        turn_id: Uuid,
    },
    /// It waits for so many turns before it.
    Queued {
        before: u64,
        /// What it is once it begins, and what takes it back before; older daemons do not say it.
        #[omit_empty]
        turn_id: Option<Uuid>,
    },
}

#[wire(params, PartialEq, Eq)]
pub struct CancelParams {
    pub agent: Option<String>,
    /// Only this one, running or waiting; else whichever runs.
    pub turn_id: Option<Uuid>,
}

#[wire(PartialEq, Eq)]
pub struct CancelResult {
    /// The turn that was told to end; null: there was none.
    pub turn_id: Option<Uuid>,
}

/// The beginning of the output of a tool.
#[wire(PartialEq, Eq)]
pub struct ToolOutput {
    /// Its first lines, at most 40, and at most 4 KiB.
    pub text: String,
    /// The number of lines of the whole output.
    pub lines: u64,
    /// The lines that an edit changed, each with `-` or `+` before it.
    #[omit_empty]
    pub diff: Option<String>,
}
