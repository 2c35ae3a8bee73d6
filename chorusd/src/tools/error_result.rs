//! Failures of the daemon as a model reads them.

use super::tool::ToolOutcome;
use crate::error::Error;

/// What a failure is to the turn: told to the model, unless storage can no longer be trusted.
pub fn error_outcome(failure: Error) -> ToolOutcome {
    if failure.fatal {
        return ToolOutcome::Stop(failure);
    }
    ToolOutcome::error(match failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message,
    })
}
