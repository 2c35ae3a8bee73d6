//! Reasons for ending a turn early, and the errors that its requesters receive.

use chorus_base::error::{Error, Result};
use chorus_proto::{ErrorKind, Trigger};

use super::event::AgentCommand;

/// Why a turn ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// A user cancelled it.
    Cancelled,
    /// The daemon stops.
    DaemonStop,
    /// The agent is destroyed.
    AgentDestroyed,
    /// Another daemon of the cluster is to have the agent.
    AgentMoved,
    /// The store could not be reached for so long that another daemon of the cluster may take the agent over.
    StoreLost,
}

impl Interruption {
    /// Returns the reason if the command ends the running turn and then waits for its end.
    pub(crate) fn of_command(verb: &AgentCommand) -> Option<Self> {
        match verb {
            AgentCommand::Hold { ends_turn } => *ends_turn,
            AgentCommand::SaveIfUnsaved { trigger: Trigger::Destroy, .. } => Some(Self::AgentDestroyed),
            AgentCommand::SaveIfUnsaved { .. } => Some(Self::DaemonStop),
            _ => None,
        }
    }

    /// Returns the error for a turn that was running.
    #[must_use]
    pub fn error_for_running_turn(self) -> Error {
        let (what, hint) = match self {
            Self::Cancelled => ("the turn was cancelled", "the partial reply was kept"),
            Self::DaemonStop => (
                "the daemon was stopped during the turn",
                "the partial reply was kept; send again after the daemon restarts",
            ),
            Self::AgentDestroyed => {
                ("the agent was destroyed during the turn", "the partial reply was saved in its last session")
            }
            Self::AgentMoved => {
                ("the agent moved to another node during the turn", "the partial reply was kept; send again")
            }
            Self::StoreLost => {
                return Error::new(
                    ErrorKind::StorageUnavailable,
                    "this node lost its connection to PostgreSQL during the turn",
                )
                .hint("send again; what was stored before is kept");
            }
        };
        Error::new(ErrorKind::Interrupted, what).hint(hint)
    }

    /// Returns how a turn ends whose end may not have been recorded: what a user wanted holds all the same.
    pub(crate) fn outcome_without_record(self, outcome: Result<String>) -> Result<String> {
        outcome.map_err(|failure| match (self, failure.kind) {
            (Self::Cancelled, ErrorKind::StorageUnavailable | ErrorKind::Busy) => {
                self.error_for_running_turn().hint("the partial reply could not be stored")
            }
            _ => failure,
        })
    }

    /// Returns the error for a turn that was queued, of which nothing is kept.
    pub fn error_for_queued_turn(self) -> Error {
        match self {
            Self::Cancelled => Error::new(ErrorKind::Interrupted, "the message was cancelled before its turn started")
                .hint("it was not added to the conversation"),
            Self::DaemonStop => Error::stopping()
                .hint("the message was not added to the conversation; send it again after the daemon restarts"),
            Self::AgentDestroyed => {
                Error::new(ErrorKind::AgentNotFound, "the agent was destroyed before the message's turn started")
                    .hint("the message was not added to any conversation; list agents: chorusctl agent list")
            }
            Self::AgentMoved | Self::StoreLost => {
                Error::new(ErrorKind::Busy, "the agent moved to another node before the message's turn started")
                    .hint("the message was not added to the conversation; send it again")
            }
        }
    }
}
