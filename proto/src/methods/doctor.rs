//! `doctor`: checks and repairs.

use uuid::Uuid;

use super::session::SecretCount;
use super::{method, wire};

method!(
    /// Checks databases, files, models and the machine. With `rebuild`, rebuilds the catalog from the files first. With
    /// `salvage`, makes sessions of everything that is readable in a damaged journal.
    Doctor = "doctor", DoctorParams => DoctorResult
);

method!(
    /// Finds secrets in what is stored: in saved, live and deleted conversations, memory, notes and the files of the home.
    Secrets = "doctor.secrets", SecretsParams => SecretsResult
);

method!(
    /// Says what takes room on the disk.
    Size = "doctor.size", SizeParams => SizeResult
);

#[wire(params)]
pub struct DoctorParams {
    /// Rebuild the tables of agents and sessions from the directories and session files.
    #[serde(default)]
    pub rebuild: bool,
    /// Create sessions from what can still be read of damaged live contexts, and restore them.
    pub salvage: bool,
}

#[wire(PartialEq, Eq)]
pub struct DoctorResult {
    pub checks: Vec<Check>,
    /// Result of `rebuild`, if it was requested.
    #[omit_empty]
    pub rebuilt: Option<Rebuilt>,
    /// Result of `salvage`, if it was requested.
    #[omit_empty]
    pub salvaged: Option<Salvaged>,
}

/// The result of one check.
#[wire(PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
    pub text: String,
    /// Hint to fix it.
    #[omit_empty]
    pub hint: Option<String>,
}

#[wire(Copy, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// Everything works and nothing is lost, but somebody should check.
    Warn,
    Fail,
    /// Information about this machine.
    Info,
}

#[wire(Default, PartialEq, Eq)]
pub struct Rebuilt {
    pub agents: u64,
    pub sessions: u64,
    /// Sessions whose file cannot be read.
    pub corrupt: u64,
    pub duration_ms: u64,
    /// The new name of the damaged database.
    #[omit_empty]
    pub set_aside: Option<String>,
}

#[wire(Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Sessions that were created; they have the tag `salvaged`.
    pub sessions: u64,
    /// Messages in these sessions.
    pub messages: u64,
    /// Messages that the journals had counted in the salvaged contexts. More may be found, because rewound messages are
    /// found, too.
    #[omit_empty]
    pub expected: Option<u64>,
    /// Records and messages that could not be read.
    pub unreadable: u64,
    /// Agents whose live context is now a salvaged session.
    pub restored: Vec<String>,
    /// Directories with the damaged files.
    pub set_aside: Vec<String>,
    /// Those in which nothing could be read; their files are the only copy.
    #[omit_empty]
    pub nothing_readable: Vec<String>,
}

#[wire(params)]
pub struct SecretsParams {
    /// Only what belongs to this agent.
    pub agent: Option<String>,
    /// Number of places in the result, by default 1,000, at most 10,000.
    pub limit: Option<u64>,
}

#[wire(Default, PartialEq, Eq)]
pub struct SecretsResult {
    /// Places with secrets: first saved conversations, then the others.
    pub places: Vec<SecretPlace>,
    /// Number of all places with secrets; more than there are in `places` if those were too many.
    pub total: u64,
    /// Number of places that were read.
    pub searched: u64,
    /// Places that could not be read, as texts for people.
    #[omit_empty]
    pub unread: Vec<String>,
}

/// A place that has secrets.
#[wire(PartialEq, Eq)]
pub struct SecretPlace {
    pub kind: SecretPlaceKind,
    /// Name of the agent that it belongs to.
    #[omit_empty]
    pub agent: Option<String>,
    /// Id of the saved conversation, of the entry in the trash or in the memory.
    #[omit_empty]
    pub id: Option<Uuid>,
    /// The unique prefix of the id of a saved conversation that `history` shows.
    #[omit_empty]
    pub short_id: Option<String>,
    /// Name of the session or the conversation; path of the file in the home.
    pub name: String,
    /// The first messages with a secret, from 1; at most 20.
    #[omit_empty]
    pub messages: Vec<u64>,
    /// Each secret once; at most 20.
    pub secrets: Vec<SecretCount>,
    /// Number of other secrets.
    #[omit_empty]
    pub more_secrets: Option<u64>,
}

#[wire(Copy, PartialEq, Eq)]
pub enum SecretPlaceKind {
    /// A saved conversation: `session.scrub` replaces it.
    Session,
    /// A live conversation.
    Conversation,
    /// An entry of an agent's memory.
    Memory,
    /// The message of a schedule.
    Schedule,
    /// A session or an agent in the trash.
    Trash,
    /// Another file of the home.
    File,
}

#[wire(params)]
pub struct SizeParams {}

#[wire(Default, PartialEq, Eq)]
pub struct SizeResult {
    /// Absolute path of the home.
    pub home: String,
    /// Bytes on the disk of everything in it.
    pub bytes: u64,
    /// The parts of the home, the largest first.
    pub parts: Vec<SizePart>,
    /// The agents, the largest first; at most 20.
    pub agents: Vec<SizeOfAgent>,
    /// Number of all agents.
    pub agents_total: u64,
    /// Room that the compression of saved conversations saves; not set by daemons that cannot compress them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<SizeOfCompression>,
}

/// Room that the compression of saved conversations saves.
#[wire(PartialEq, Eq)]
pub struct SizeOfCompression {
    /// Number of compressed conversations.
    pub compressed: u64,
    /// Bytes on the disk that their compression saves.
    pub saved: u64,
    /// Number of the others.
    pub plain: u64,
    /// Bytes on the disk that their compression would save, estimated from samples.
    pub possible: u64,
}

/// A part of the home.
#[wire(PartialEq, Eq)]
pub struct SizePart {
    /// `sessions`, `workspaces`, `worktrees`, `live`, `catalog`, `index`, `embeddings`, `trash`, `tasks`, `logs`, `cache` or `other`.
    pub name: String,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Number of files.
    pub files: u64,
}

/// The room that an agent takes.
#[wire(PartialEq, Eq)]
pub struct SizeOfAgent {
    /// Its name, or that of its directory if it has none.
    pub agent: String,
    /// Bytes on the disk of its directory.
    pub bytes: u64,
    /// Of these, its saved conversations.
    pub sessions: u64,
    /// Number of its saved conversations.
    pub count: u64,
}
