//! The window that the next model call would send, piece by piece, with estimated tokens.

use crate::message::Message;
use crate::wire;
use crate::working_set::Receipt;

/// What the next call would send.
#[wire]
pub struct Window {
    /// As `provider/model`; null where the agent has none.
    pub model: Option<String>,
    /// The system prompt, in the order of its pieces.
    pub system: Vec<WindowPiece>,
    pub messages: Vec<WindowMessage>,
    /// Where the messages are not what the record says.
    pub mended: Vec<Mend>,
    /// Messages that are too long to be shown whole.
    #[omit_empty]
    pub shortened: Vec<ShortMessage>,
    /// Tools whose schemas go along.
    pub tools: Vec<WindowTool>,
    pub budget: WindowBudget,
    /// What the call would do to the window first; what is shown is the window afterwards, as rules without a model make it.
    #[omit_empty]
    pub compacts: Option<Receipt>,
}

/// What a piece of the system prompt is.
#[wire(Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// The agent's own.
    Prompt,
    /// Its notes in docs/.
    Docs,
    /// What it remembers from earlier conversations.
    Memory,
    WorkingSet,
    /// A turn that has called tools often enough is told so.
    LastWord,
}

/// A piece of the system prompt.
#[wire(PartialEq, Eq)]
pub struct WindowPiece {
    pub kind: PieceKind,
    pub tokens: u64,
    pub text: String,
}

/// A message as it would be sent.
#[wire]
pub struct WindowMessage {
    pub tokens: u64,
    /// Of what is attached in it, `size` stands for `data`.
    pub message: Message,
}

/// A tool whose schema would be sent.
#[wire(PartialEq, Eq)]
pub struct WindowTool {
    pub name: String,
    pub tokens: u64,
}

/// How a message is shown otherwise than it stands in the record, which keeps it as it came.
#[wire(Copy, PartialEq, Eq)]
pub enum MendKind {
    /// It opens the conversation and is not a user's: a note stands before it.
    Opened,
    /// A system message is quoted.
    Quoted,
    /// A call had no id or name, or an id that stood there already.
    Renamed,
    /// A call had no result that directly follows.
    Answered,
    /// A result belongs to no call that directly precedes it: it is quoted.
    Stray,
    /// A message said nothing.
    Empty,
}

/// One message that is shown otherwise.
#[wire(PartialEq, Eq)]
pub struct Mend {
    pub message_id: String,
    pub how: MendKind,
}

/// One message of which the beginning and the end are shown.
#[wire(PartialEq, Eq)]
pub struct ShortMessage {
    pub message_id: String,
    /// Bytes that are left out.
    pub bytes: u64,
}

/// What the pieces cost together, and may cost.
#[wire(Copy, Default, PartialEq, Eq)]
pub struct WindowBudget {
    /// Tokens of the whole request: the sum of the next four.
    pub tokens: u64,
    /// The system prompt without the working set.
    pub system: u64,
    pub working_set: u64,
    pub messages: u64,
    pub tools: u64,
    /// Tokens that working set and messages may have together.
    pub limit: u64,
    /// The most messages that are shown.
    pub window_messages: u64,
    /// Messages of the record that are not shown.
    pub left_out: u64,
    /// Tokens that the model takes, the answer included, as they are estimated; null where that is not known.
    pub takes: Option<u64>,
    /// The longest answer that is asked for, in tokens.
    pub answer: u64,
}
