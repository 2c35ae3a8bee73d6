//! The window that the next model call would send, piece by piece, with estimated tokens.

use crate::agent::TokenSource;
use crate::message::Message;
use crate::wire;
use crate::working_set::Receipt;

/// The contents of the next model call.
#[wire]
pub struct Window {
    /// As `provider/model`; null if the agent has none.
    pub model: Option<String>,
    /// The system prompt, in the order of its pieces.
    pub system: Vec<WindowPiece>,
    pub messages: Vec<WindowMessage>,
    /// Messages whose form differs from the record.
    pub mended: Vec<Mend>,
    /// Messages that are too long and shown in part.
    #[omit_empty]
    pub shortened: Vec<ShortMessage>,
    /// Tools whose schemas are sent.
    pub tools: Vec<WindowTool>,
    pub budget: WindowBudget,
    /// The compaction that the call would do first; the window is the one after it, as compacted by rules.
    #[omit_empty]
    pub compacts: Option<Receipt>,
}

/// Kind of a piece of the system prompt.
#[wire(Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// The agent's own system prompt.
    Prompt,
    /// Its notes in docs/.
    Docs,
    /// Its memories.
    Memory,
    WorkingSet,
    /// The instruction to reply now, because the turn has reached the limit of tool calls.
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
    /// Its attachments have `size` instead of `data`.
    pub message: Message,
}

/// A tool whose schema would be sent.
#[wire(PartialEq, Eq)]
pub struct WindowTool {
    pub name: String,
    pub tokens: u64,
}

/// How the form that the model sees differs from the record, which keeps the original.
#[wire(Copy, PartialEq, Eq)]
pub enum MendKind {
    /// It is the first message and not from a user: a note was added before it.
    Opened,
    /// A system message is quoted.
    Quoted,
    /// A call had no id or name, or a duplicate id.
    Renamed,
    /// A call was not directly followed by its result.
    Answered,
    /// A result did not directly follow its call: it is quoted.
    Stray,
    /// A message was empty.
    Empty,
}

/// A message that the model sees in another form.
#[wire(PartialEq, Eq)]
pub struct Mend {
    pub message_id: String,
    pub how: MendKind,
}

/// A message that is shown with its start and end only.
#[wire(PartialEq, Eq)]
pub struct ShortMessage {
    pub message_id: String,
    /// Number of bytes left out.
    pub bytes: u64,
}

/// Tokens of the pieces, and their limits.
#[wire(Copy, Default, PartialEq, Eq)]
pub struct WindowBudget {
    /// Tokens of the whole request: the sum of the next four.
    pub tokens: u64,
    /// The system prompt without the working set.
    pub system: u64,
    pub working_set: u64,
    pub messages: u64,
    pub tools: u64,
    /// Limit of tokens for working set and messages together.
    pub limit: u64,
    /// Maximum number of messages that are sent.
    pub window_messages: u64,
    /// Messages of the record that are not sent.
    pub left_out: u64,
    /// Context length of the model, including the reply, in estimated tokens; null if unknown.
    pub takes: Option<u64>,
    /// Maximum length of the reply, in tokens.
    pub answer: u64,
    /// Tokens of the whole request as they were counted, where that is possible; the numbers above are estimates.
    #[omit_empty]
    pub counted: Option<CountedTokens>,
}

/// A number of tokens, and how it was found.
#[wire(Copy, PartialEq, Eq)]
pub struct CountedTokens {
    pub tokens: u64,
    pub source: TokenSource,
}
