//! The error type of the daemon: a message on what happened and a hint on what to do.

use chorus_proto::ErrorKind;
use chorus_proto::error::exit;

/// An error for whoever made the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
    /// A sync failed. What is on the disk is unknown, so nothing may be acknowledged after this.
    pub fatal: bool,
    /// Files of the home are not where they belong. Restarting the daemon does not help; a person has to look.
    pub misplaced: bool,
    /// Another daemon of the cluster has to be asked. Nothing was done.
    pub elsewhere: Option<Box<Elsewhere>>,
}

/// A daemon of the cluster that has what a request concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// Name of the node.
    pub node: String,
    /// Address at which other nodes reach it; empty if it has none.
    pub address: String,
}

/// A failed sync, as the source of an [`std::io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("cannot write it to disk: {0}")]
pub struct SyncError(pub std::io::Error);

/// Hint after a failed write or sync, which may have reached the disk nevertheless.
pub const MAYBE_STORED_HINT: &str = "it may have been saved: check, or send it again with the same idempotency key";

/// A result whose error may be shown to a user.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error without a hint; add one with [`Error::hint`] if there is something to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, fatal: false, misplaced: false, elsewhere: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the exit status of a daemon that ends with this error. A service manager does not restart it after a
    /// refusal.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        if self.misplaced { exit::REFUSED } else { self.kind.exit_status() }
    }

    /// Creates the error for a bug in Chorus.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message).hint("this is a bug in chorusd; see `chorusctl daemon logs`")
    }

    /// Creates the error for an invalid parameter.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message)
    }

    /// Creates the error that the agent was destroyed in the meantime.
    #[must_use]
    pub fn agent_destroyed() -> Self {
        Self::new(ErrorKind::AgentNotFound, "the agent was destroyed")
            .hint("list all agents: chorusctl agent list --all")
    }

    /// Creates the error that another daemon of the cluster has the agent.
    #[must_use]
    pub fn elsewhere(agent: &str, there: Elsewhere) -> Self {
        let hint = match there.address.as_str() {
            "" => format!("use chorusctl on {}", there.node),
            address => format!("use chorusctl on {} ({address})", there.node),
        };
        let failure = Self::new(ErrorKind::Busy, format!("{agent} is on the node {}", there.node)).hint(hint);
        Self { elsewhere: Some(Box::new(there)), ..failure }
    }

    /// Creates the error that a queue is full.
    #[must_use]
    pub fn busy() -> Self {
        Self::new(ErrorKind::Busy, "too many pending requests").hint("try again in a moment")
    }

    /// Creates the error that the daemon is stopping.
    #[must_use]
    pub fn stopping() -> Self {
        Self::new(ErrorKind::Stopping, "the daemon is stopping").hint("try again after it restarts")
    }

    /// Creates the error for a failed operation on a file or directory. A full disk has its own kind.
    pub fn io(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::disk_full(),
            _ => {
                let fatal = error.get_ref().is_some_and(|source| source.is::<SyncError>());
                let hint =
                    if fatal { MAYBE_STORED_HINT } else { "check the disk and the permissions of the Chorus home" };
                Self { fatal, ..Self::new(ErrorKind::StorageFailed, format!("{what}: {error}")).hint(hint) }
            }
        }
    }

    /// Creates the error that the disk is full.
    #[must_use]
    pub fn disk_full() -> Self {
        Self::new(ErrorKind::DiskFull, "the disk is full; nothing was changed").hint("free some space and try again")
    }
}
