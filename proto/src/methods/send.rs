//! `send` and `send.*`: turns with the agent's model.

use uuid::Uuid;

use super::approvals::{Approval, Status};
use super::conversations::Attached;
use super::{method, wire};
use crate::message::{Attachment, Role, ToolCall, Usage};

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
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    pub text: String,
    /// Idempotency key: a request with the same key waits for or returns the first result and does nothing else. At
    /// most 256 characters.
    pub key: Option<String>,
    pub attachments: Vec<Attachment>,
    /// Model for this turn, instead of the agent's.
    pub model: Option<String>,
    /// Send the reply while it arrives, as `progress` notifications with a [`Said`] each.
    #[expect(rustdoc::broken_intra_doc_links, reason = "the schema publishes this text, with the name `Said`")]
    pub stream: bool,
}

#[wire]
pub struct SendResult {
    /// The model's last text.
    pub reply: String,
    pub turn_id: Uuid,
    /// Usage of all model calls of the turn.
    pub usage: Usage,
    /// Its tool calls, in order.
    pub tool_calls: Vec<ToolCall>,
}

/// `params` of a `progress` notification of [`Send`]: what happened since the previous one.
#[wire]
pub struct Progress {
    /// The id of the request.
    pub id: u64,
    #[serde(flatten)]
    pub said: TurnEvent,
}

/// A piece of a turn as it comes, or of what else happens in a conversation that a client is attached to. Pieces of one kind that come faster than they are read arrive as one.
#[wire(PartialEq, Eq)]
pub enum TurnEvent {
    /// Text of the reply.
    Text(String),
    Thinking(String),
    /// A tool is called.
    Tool {
        id: String,
        name: String,
        /// One line that describes it: the command, or the file and the number of lines; missing from older daemons.
        #[omit_empty]
        gist: Option<String>,
    },
    /// A tool has ended.
    Result {
        id: String,
        name: String,
        is_error: bool,
        /// The start of its output, or the reason of a failure; missing from older daemons.
        #[omit_empty]
        output: Option<Box<ToolOutput>>,
        /// Number of the message that has the whole output; missing from older daemons.
        #[omit_empty]
        message: Option<u64>,
    },
    /// A call waits for approval.
    Ask {
        approval: Box<Approval>,
    },
    /// An approval was decided.
    Decided {
        /// The approval's id.
        id: String,
        status: Status,
        /// Null if nobody decided: it expired, or the turn ended.
        by: Option<String>,
    },
    /// Something to show to the person: a retry, a compaction.
    Note(String),
    /// The turn has started, and the message is in the journal.
    Started {
        turn_id: Uuid,
    },
    /// Number of turns that it waits for.
    Queued {
        before: u64,
        /// Its id, also for cancelling it while it waits; missing from older daemons.
        #[omit_empty]
        turn_id: Option<Uuid>,
    },
    /// Only for `context.attach`, first: the turn that runs, of which the following pieces up to now come next, and who
    /// else has the conversation open.
    Attached {
        turn_id: Option<Uuid>,
        others: Vec<Attached>,
    },
    /// Only for `context.attach`: a message that was added to the conversation, but none of a turn's own messages.
    Message {
        id: String,
        role: Role,
        text: String,
        /// Who wrote it, if it was not the owner.
        #[omit_empty]
        author: Option<String>,
    },
    /// Only for `context.attach`: the turn has ended.
    Ended {
        turn_id: Uuid,
        /// Why it ended without a complete reply, if it did.
        #[omit_empty]
        reason: Option<String>,
    },
}

#[wire(params, PartialEq, Eq)]
pub struct CancelParams {
    pub agent: Option<String>,
    /// Its name or id: `main` by default, `@` for the one that `conversations.use` selected.
    pub conversation: Option<String>,
    /// Cancel only this turn, running or queued; by default the running one.
    pub turn_id: Option<Uuid>,
}

#[wire(PartialEq, Eq)]
pub struct CancelResult {
    /// The turn that was cancelled; null if there was none.
    pub turn_id: Option<Uuid>,
}

/// The start of a tool's output.
#[wire(PartialEq, Eq)]
pub struct ToolOutput {
    /// Its first lines, at most 40, and at most 4 KiB.
    pub text: String,
    /// Number of lines of the whole output.
    pub lines: u64,
    /// The lines that an edit changed, each with `-` or `+` before it.
    #[omit_empty]
    pub diff: Option<String>,
}
