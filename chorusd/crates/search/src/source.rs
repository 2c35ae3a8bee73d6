//! The entries of the index: sources and their messages.

use chorus_proto::Role;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Identifies a source: the id of a session, or one that the caller derives from a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceId(Uuid);

impl SourceId {
    /// Returns the id of the session, if it is one.
    #[must_use]
    pub fn to_uuid(self) -> Uuid {
        self.0
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<Uuid> for SourceId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SourceKind {
    /// A saved session.
    Session,
    /// The live context of a conversation.
    Live,
}

/// A source without its messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub id: SourceId,
    pub kind: SourceKind,
    pub agent: Uuid,
    /// `None` for the conversation `main`.
    pub conversation: Option<Uuid>,
    /// The name of the session or conversation.
    pub name: String,
    pub title: String,
    /// Further texts in which words are found: the summary, the project.
    pub texts: Vec<String>,
    pub tags: Vec<String>,
    pub model: Option<String>,
    /// When it was saved, or had its last message.
    pub at: Timestamp,
    /// Identifies the messages.
    pub stamp: String,
    /// Identifies the other fields.
    pub header_stamp: String,
}

/// A message of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageText {
    /// The same for the same message in several sources, and different for others.
    pub key: [u8; 16],
    pub role: Role,
    pub at: Timestamp,
    /// Name of the author, or of the agent; may be empty.
    pub speaker: String,
    pub text: String,
    /// Commands that its tool calls ran, and other short parameters of them.
    pub commands: Vec<String>,
    /// Names of the tools that it called, or whose result it is.
    pub tools: Vec<String>,
    /// Its origins, for example `import` and `claude-code`.
    pub origins: Vec<String>,
}
