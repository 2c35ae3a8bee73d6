//! Errors of the protocol, and the exit status of each kind.

use crate::wire;

/// The kind of an error. The names are stable; a client of an older release reads newer ones as `unknown`.
#[wire(Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    AgentNotFound,
    ConversationNotFound,
    SessionNotFound,
    NotFound,
    /// No agent was named, and there is none or more than one.
    NoAgent,
    Ambiguous,
    NothingToSave,
    InvalidName,
    InvalidParams,
    InvalidConfig,
    AlreadyExists,
    Denied,
    ModelUnavailable,
    /// A turn was cancelled or interrupted before the reply was complete.
    Interrupted,
    /// The agent has reached its daily limit.
    LimitReached,
    CorruptSession,
    Busy,
    /// Something changed first: it is already decided.
    Conflict,
    /// It was not answered in time.
    Expired,
    DiskFull,
    StorageFailed,
    /// The database or the object store cannot be reached. The step that failed stored nothing; earlier steps of the request may have.
    StorageUnavailable,
    Unsupported,
    FrameTooLong,
    Stopping,
    GitFailed,
    /// A merge was cut off while it replaced the files of the workspace.
    MergeIncomplete,
    /// Discord rejected something, or cannot be reached.
    DiscordFailed,
    Internal,
    #[serde(other)]
    Unknown,
}

/// Exit status of `chorusctl`.
pub mod exit {
    pub const SUCCESS: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const NOT_FOUND: u8 = 3;
    pub const NO_DAEMON: u8 = 4;
    pub const NOTHING_TO_DO: u8 = 5;
    pub const REFUSED: u8 = 6;
    pub const CONFLICT: u8 = 7;
}

impl ErrorKind {
    /// Returns the exit status of a command that fails with this error.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::InvalidName | Self::InvalidParams | Self::InvalidConfig => exit::USAGE,
            Self::AgentNotFound
            | Self::ConversationNotFound
            | Self::SessionNotFound
            | Self::NotFound
            | Self::NoAgent => exit::NOT_FOUND,
            Self::NothingToSave => exit::NOTHING_TO_DO,
            Self::Denied | Self::LimitReached => exit::REFUSED,
            Self::Ambiguous | Self::AlreadyExists | Self::Busy | Self::Conflict | Self::Expired => exit::CONFLICT,
            _ => exit::FAILED,
        }
    }
}

/// The `data` of an error: its stable kind and a hint.
#[wire(PartialEq, Eq)]
pub struct ErrorData {
    pub kind: ErrorKind,
    #[omit_empty]
    pub hint: Option<String>,
}

/// A JSON-RPC error object.
#[wire(PartialEq, Eq)]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    #[omit_empty]
    pub data: Option<ErrorData>,
}

/// Code of all errors that carry an [`ErrorKind`] in their data.
pub const CODE_CHORUS: i32 = -32000;
/// JSON-RPC: the frame is not JSON.
pub const CODE_PARSE: i32 = -32700;
/// JSON-RPC: the JSON is not a request.
pub const CODE_INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: unknown method.
pub const CODE_METHOD_NOT_FOUND: i32 = -32601;
/// JSON-RPC: the parameters do not have the method's type.
pub const CODE_INVALID_PARAMS: i32 = -32602;

impl RpcError {
    /// Returns the kind; derives it from the code for the standard JSON-RPC errors.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match (&self.data, self.code) {
            (Some(data), _) => data.kind,
            (None, CODE_INVALID_PARAMS) => ErrorKind::InvalidParams,
            (None, CODE_METHOD_NOT_FOUND) => ErrorKind::Unsupported,
            (None, _) => ErrorKind::Unknown,
        }
    }
}
