//! Reasons for ending a turn early, and the errors that its requesters receive.

use chorus_base::error::Error;
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
}

impl Interruption {
    /// Returns the reason if the command ends the running turn and then waits for its end.
    pub(crate) fn of_command(verb: &AgentCommand) -> Option<Self> {
        match verb {
            AgentCommand::SaveIfUnsaved { trigger: Trigger::Destroy, .. } | AgentCommand::Hold { ends_turn: true } => {
                Some(Self::AgentDestroyed)
            }
            AgentCommand::SaveIfUnsaved { .. } => Some(Self::DaemonStop),
            _ => None,
        }
    }

    /// Returns the error for a turn that was running.
    pub(crate) fn error_for_running_turn(self) -> Error {
        let (what, hint) = match self {
            Self::Cancelled => ("the turn was cancelled", "what came of it is in the context"),
            Self::DaemonStop => (
                "the daemon was stopped in the middle of the turn",
                "what came of it is in the context; send again when the daemon has started anew",
            ),
            Self::AgentDestroyed => {
                ("the agent was destroyed in the middle of the turn", "what came of it went into its last session")
            }
        };
        Error::new(ErrorKind::Interrupted, what).hint(hint)
    }

    /// Returns the error for a turn that was queued, of which nothing is kept.
    pub fn error_for_queued_turn(self) -> Error {
        match self {
            Self::Cancelled => Error::new(ErrorKind::Interrupted, "the message was taken back before its turn came")
                .hint("it is not in the context"),
            Self::DaemonStop => {
                Error::stopping().hint("the message is not in the context; send it again when it has started anew")
            }
            Self::AgentDestroyed => {
                Error::new(ErrorKind::AgentNotFound, "the agent was destroyed before the turn of the message came")
                    .hint("the message is in no context; `chorusctl agent list` shows which agents there are")
            }
        }
    }
}
