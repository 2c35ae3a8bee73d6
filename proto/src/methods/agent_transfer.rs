//! `agent.export.*`, `agent.import.*`: moves a whole agent to another home as one file.

use super::{method, wire};
use crate::agent::Agent;
use crate::session::Session;

method!(
    /// Makes the file. A live context is saved first and stays live.
    ExportBegin = "agent.export.begin", ExportBeginParams => ExportBeginResult
);
method!(
    /// Reads a piece of the file.
    ExportRead = "agent.export.read", ExportReadParams => ExportReadResult
);
method!(ImportBegin = "agent.import.begin", ImportBeginParams => ImportBeginResult);
method!(
    /// Sends the next bytes of the file.
    ImportAdd = "agent.import.add", ImportAddParams => ImportAddResult
);
method!(
    /// Checks the uploaded file and creates the agent, completely or not at all.
    ImportCommit = "agent.import.commit", ImportCommitParams => ImportCommitResult
);

#[wire(params)]
pub struct ExportBeginParams {
    /// The agent.
    pub name: String,
}

#[wire(PartialEq)]
pub struct ExportBeginResult {
    /// Identifies the file in `read`. It ends with the connection.
    pub export: u64,
    /// Size of the file in bytes.
    pub size: u64,
    /// The agent's name.
    pub agent_name: String,
    /// Number of sessions in the file.
    pub sessions: u64,
    /// Number of memories in the file.
    pub memories: u64,
    /// The session in which the unsaved messages of the live conversation were saved; null if there were none.
    pub saved: Option<Session>,
    /// Descriptions of what is not in the file.
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct ExportReadParams {
    pub export: u64,
    /// Offset of the piece: the `next` of the previous piece.
    pub offset: Option<u64>,
}

#[wire(PartialEq, Eq)]
pub struct ExportReadResult {
    pub data_base64: String,
    /// Offset of the next piece; null at the end.
    pub next: Option<u64>,
}

#[wire(params)]
pub struct ImportBeginParams {}

#[wire(PartialEq, Eq)]
pub struct ImportBeginResult {
    /// Identifies this import in `add` and `commit`. It ends with the connection.
    pub import: u64,
}

#[wire(params)]
pub struct ImportAddParams {
    pub import: u64,
    /// Bytes of the file in base64.
    pub data_base64: String,
}

#[wire(PartialEq, Eq)]
pub struct ImportAddResult {
    /// Bytes received so far.
    pub received: u64,
}

#[wire(params)]
pub struct ImportCommitParams {
    pub import: u64,
    /// The agent's name in this home; by default the one in the file.
    #[serde(rename = "as")]
    pub name: Option<String>,
}

#[wire(PartialEq)]
pub struct ImportCommitResult {
    pub agent: Agent,
    /// Number of imported sessions.
    pub sessions: u64,
    /// Number of sessions that cannot be read; they are listed as corrupt.
    pub corrupt: u64,
    /// Number of imported memories.
    pub memories: u64,
    /// True if the agent got a new id, because this home already uses the old one.
    pub new_id: bool,
    /// Number of sessions that got a new id, for the same reason.
    pub new_session_ids: u64,
    /// Warnings for people.
    pub warnings: Vec<String>,
}
