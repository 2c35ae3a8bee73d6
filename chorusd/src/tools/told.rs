//! Failures of the daemon as a model reads them.

use super::tool::Outcome;
use crate::failure::Failure;

/// What a failure is to the turn: told to the model, unless storage can no longer be trusted.
pub fn told(failure: Failure) -> Outcome {
    if failure.fatal {
        return Outcome::Stop(failure);
    }
    Outcome::error(match failure.hint {
        Some(hint) => format!("{} ({hint})", failure.message),
        None => failure.message,
    })
}
