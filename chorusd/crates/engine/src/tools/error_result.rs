//! Converts errors of the daemon into tool results.

use chorus_base::error::Error;

use super::tool::ToolOutcome;

/// Returns the result of a failed operation: a message for the model, or the end of the turn if storage can no longer
/// be trusted.
pub(super) fn error_outcome(failure: Error) -> ToolOutcome {
    if failure.fatal {
        return ToolOutcome::Stop(failure);
    }
    ToolOutcome::error(match failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message,
    })
}
