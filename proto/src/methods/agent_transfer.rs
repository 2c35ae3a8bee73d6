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
    /// Names the file in `read`. It ends with the connection.
    pub export: u64,
    /// Bytes of the file.
    pub size: u64,
    /// The agent's name.
    pub agent_name: String,
    /// How many are in it.
    pub sessions: u64,
    /// Things it remembers that are in it.
    pub memories: u64,
    /// What held the unsaved messages of the live conversation; null: there were none.
    pub saved: Option<Session>,
    /// What is not in it, for a person.
    pub warnings: Vec<String>,
}

#[wire(params)]
pub struct ExportReadParams {
    pub export: u64,
    /// Bytes to leave out at the start: the `next` of the piece before.
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
    /// Names this import in `add` and `commit`. It ends with the connection.
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
    /// The agent's name here; left out, the one it had.
    #[serde(rename = "as")]
    pub name: Option<String>,
}

#[wire(PartialEq)]
pub struct ImportCommitResult {
    pub agent: Agent,
    /// How many came in.
    pub sessions: u64,
    /// How many of those cannot be read; they are listed as corrupt.
    pub corrupt: u64,
    /// Things that the agent remembers.
    pub memories: u64,
    /// Whether the agent has another id than where it came from: that one is taken here.
    pub new_id: bool,
    /// How many sessions have another id, for the same reason.
    pub new_session_ids: u64,
    /// What a person should know.
    pub warnings: Vec<String>,
}
