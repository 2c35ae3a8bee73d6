//! Saved sessions of agents that several daemons share, and the checkpoints of their workspaces in the same bucket. The body of a session is an object in a bucket, its header and the
//! name of the object are its row, and its file is a copy of both on the machine of the daemon that uses it.
//!
//! [`SharedSessions::table`] stands in front of the table of sessions, so that no row gets messages that are not in the
//! bucket. Invariants: an object is written before the row that names it; a copy is deleted only if its row names its
//! messages, or if its session was deleted. See docs/design/session-objects.md.

#![warn(unreachable_pub)]

mod body_rows;
mod copies;
mod eviction;
mod leftovers;
mod read_times;
mod table;
mod upkeep;
mod upload;
mod workspaces;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_catalog::{AgentTable, SessionTable, WorkspaceBundleTable};
use chorus_clock::Clock;
use chorus_journal::Ownership;
use chorus_session_objects::{Bucket, ObjectBodies, Prefix, SessionBodies};
use chorus_store::SessionFiles;
use jiff::Timestamp;
use tokio::sync::Mutex;

pub use eviction::EvictionReport;
use read_times::ReadTimes;

/// Locks that keep two requests from fetching one session; those of several sessions may be the same.
const FETCH_LOCKS: usize = 64;

/// Services and settings of shared sessions.
#[derive(Debug)]
pub struct SharedSessionsParts {
    pub bucket: Arc<dyn Bucket>,
    pub prefix: Prefix,
    /// The bodies in `bucket`.
    pub bodies: ObjectBodies,
    /// The table itself.
    pub sessions: Arc<dyn SessionTable>,
    pub agents: Arc<dyn AgentTable>,
    pub workspaces: Arc<dyn WorkspaceBundleTable>,
    /// The name of this node.
    pub node: String,
    pub ownership: Arc<dyn Ownership>,
    /// The locks of session files, which the store has, too.
    pub files: Arc<SessionFiles>,
    pub home: PathBuf,
    /// Bytes that the files of sessions may have in all.
    pub max_copied_bytes: u64,
    pub clock: Clock,
}

/// The sessions of the agents that this daemon shares with others.
pub struct SharedSessions {
    bucket: Arc<dyn Bucket>,
    prefix: Prefix,
    bodies: Arc<dyn SessionBodies>,
    sessions: Arc<dyn SessionTable>,
    agents: Arc<dyn AgentTable>,
    workspaces: Arc<dyn WorkspaceBundleTable>,
    node: String,
    ownership: Arc<dyn Ownership>,
    files: Arc<SessionFiles>,
    home: PathBuf,
    max_copied_bytes: u64,
    clock: Clock,
    fetching: [Mutex<()>; FETCH_LOCKS],
    reads: ReadTimes,
    /// When the files of deleted sessions were last looked for here.
    deletions_seen_until: Mutex<Option<Timestamp>>,
}

impl fmt::Debug for SharedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSessions").field("bodies", &self.bodies).finish_non_exhaustive()
    }
}

impl SharedSessions {
    #[must_use]
    pub fn new(parts: SharedSessionsParts) -> Arc<Self> {
        Arc::new(Self {
            bucket: parts.bucket,
            prefix: parts.prefix,
            bodies: Arc::new(parts.bodies),
            sessions: parts.sessions,
            agents: parts.agents,
            workspaces: parts.workspaces,
            node: parts.node,
            ownership: parts.ownership,
            files: parts.files,
            home: parts.home,
            max_copied_bytes: parts.max_copied_bytes,
            clock: parts.clock,
            fetching: std::array::from_fn(|_| Mutex::default()),
            reads: ReadTimes::default(),
            deletions_seen_until: Mutex::default(),
        })
    }

    /// Returns the table of sessions for everybody else. Its writes store bodies first.
    #[must_use]
    pub fn table(self: &Arc<Self>) -> Arc<dyn SessionTable> {
        Arc::new(table::SharedSessionTable(self.clone()))
    }
}
