//! What went wrong, for a person: one line that says what happened and one that says what to do.

use chorus_proto::ErrorKind;
use chorus_proto::error::exit;

/// An error on its way to whoever asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
    /// A sync failed: what is on the disk is not known any more, so nothing may be acknowledged after this.
    pub fatal: bool,
    /// Files of the home are not where they were: nothing gets better by another start before a person has looked.
    pub misplaced: bool,
}

/// A sync that failed, as the source of an [`std::io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("it cannot be brought to the disk: {0}")]
pub struct SyncError(pub std::io::Error);

/// The advice after a write or sync that failed: the disk may have it all the same.
pub const MAYBE_STORED_HINT: &str = "it may have been kept all the same: look, or send it again with the same key";

/// A result that a person may have to read.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failure without a hint; add one with [`Failure::hint`] where something can be done.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, fatal: false, misplaced: false }
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The exit status of a daemon that ends with it. A service manager does not start it again after a refusal.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        if self.misplaced { exit::REFUSED } else { self.kind.exit_status() }
    }

    /// A fault of Chorus itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message).hint("this is a fault of chorusd; see `chorusctl daemon logs`")
    }

    /// A parameter that cannot be used.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message)
    }

    /// The agent went away while something waited for it.
    #[must_use]
    pub fn agent_destroyed() -> Self {
        Self::new(ErrorKind::AgentNotFound, "the agent was destroyed in the meantime")
            .hint("`chorusctl agent list --all` shows it and those that are there")
    }

    /// A queue is full.
    #[must_use]
    pub fn busy() -> Self {
        Self::new(ErrorKind::Busy, "too many requests are waiting").hint("try again in a moment")
    }

    /// The daemon is going down.
    #[must_use]
    pub fn stopping() -> Self {
        Self::new(ErrorKind::Stopping, "the daemon is stopping").hint("try again when it has started anew")
    }

    /// A file or directory operation failed; a full disk is told apart.
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

    /// There is no room left.
    #[must_use]
    pub fn disk_full() -> Self {
        Self::new(ErrorKind::DiskFull, "the disk is full; nothing was changed").hint("free some space and try again")
    }
}
