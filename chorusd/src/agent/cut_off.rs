//! Why a turn ends before its end, in the words of whoever waits for it.

use chorus_proto::{ErrorKind, Trigger};

use super::event::Verb;
use crate::failure::Failure;

/// What cuts a turn off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutOff {
    /// Somebody cancelled it.
    Hand,
    /// The daemon stops.
    Stop,
    /// The agent is destroyed.
    Destroy,
}

impl CutOff {
    /// What ends a turn that runs, and waits for its end.
    pub fn by(verb: &Verb) -> Option<Self> {
        match verb {
            Verb::PutAway { trigger: Trigger::Destroy, .. } | Verb::Hold { goes: true } => Some(Self::Destroy),
            Verb::PutAway { .. } => Some(Self::Stop),
            _ => None,
        }
    }

    /// What is told of a turn that ran.
    pub fn in_the_middle(self) -> Failure {
        let (what, hint) = match self {
            Self::Hand => ("the turn was cancelled", "what came of it is in the context"),
            Self::Stop => (
                "the daemon was stopped in the middle of the turn",
                "what came of it is in the context; send again when the daemon has started anew",
            ),
            Self::Destroy => {
                ("the agent was destroyed in the middle of the turn", "what came of it went into its last session")
            }
        };
        Failure::new(ErrorKind::Interrupted, what).hint(hint)
    }

    /// What is told of a turn that waited for others: nothing of it is kept.
    pub fn before_it_began(self) -> Failure {
        match self {
            Self::Hand => Failure::new(ErrorKind::Interrupted, "the message was taken back before its turn came")
                .hint("it is not in the context"),
            Self::Stop => {
                Failure::stopping().hint("the message is not in the context; send it again when it has started anew")
            }
            Self::Destroy => {
                Failure::new(ErrorKind::AgentNotFound, "the agent was destroyed before the turn of the message came")
                    .hint("the message is in no context; `chorusctl agent list` shows which agents there are")
            }
        }
    }
}
