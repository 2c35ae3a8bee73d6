//! Limits on the tool calls of a turn, and when the model must answer without tools.

/// Maximum number of tool calls in one turn.
pub const MAX_CALLS: u32 = 50;

/// Consecutive failed calls after which the model must answer.
pub const MAX_CONSECUTIVE_FAILURES: u32 = 5;

/// Result of calls beyond [`MAX_CALLS`].
const CALL_LIMIT_ERROR: &str = "the limit of 50 tool calls per turn is reached; answer now";

/// Result of calls after [`MAX_CONSECUTIVE_FAILURES`] in the same reply.
pub const SKIPPED_CALL_ERROR: &str = "not run: the previous 5 calls failed; answer now";

/// Why a model must answer without tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCutoff {
    /// The turn has made [`MAX_CALLS`] calls.
    CallLimit,
    /// Too many calls in a row have failed.
    FailureLimit,
}

/// Counts failed calls since the last successful one.
#[derive(Debug, Default, Clone, Copy)]
pub struct CircuitBreaker {
    failures: u32,
}

impl CircuitBreaker {
    /// Records the result of a call.
    pub fn record_result(&mut self, is_error: bool) {
        self.failures = if is_error { self.failures.saturating_add(1) } else { 0 };
    }

    /// Returns how many calls may run now, so that no more than the limit can fail in a row; 0 if no call may start.
    #[must_use]
    pub fn remaining_failures(self) -> u32 {
        MAX_CONSECUTIVE_FAILURES.saturating_sub(self.failures)
    }
}

/// The tool calls of a turn so far.
#[derive(Debug, Default)]
pub(super) struct ToolBudget {
    calls_made: u32,
    breaker: CircuitBreaker,
    /// Once set it stays.
    cutoff: Option<ToolCutoff>,
    /// The model was told to answer, and called tools again.
    pub cutoff_ignored: bool,
}

impl ToolBudget {
    /// Counts a call. Returns the error for the model if the call is not carried out.
    pub(crate) fn take_call(&mut self) -> Option<&'static str> {
        if let Some(word) = self.cutoff {
            return Some(if word == ToolCutoff::CallLimit { CALL_LIMIT_ERROR } else { word.model_instruction() });
        }
        self.calls_made += 1;
        if self.calls_made >= MAX_CALLS {
            self.cutoff = Some(ToolCutoff::CallLimit);
        }
        None
    }

    /// Records the result of a call. `skipped`: it was not started, because too many calls before it had failed.
    pub(crate) fn record_result(&mut self, is_error: bool, skipped: bool) {
        if skipped {
            // This takes precedence even if the reply also used up the calls of the turn.
            self.cutoff = Some(ToolCutoff::FailureLimit);
        } else if self.cutoff.is_none() {
            self.breaker.record_result(is_error);
            self.cutoff = (self.breaker.remaining_failures() == 0).then_some(ToolCutoff::FailureLimit);
        }
    }

    /// Returns the failure counter, for the runner of the calls.
    pub(crate) fn breaker(&self) -> CircuitBreaker {
        self.breaker
    }

    /// Returns why the model must answer next, if it must.
    pub(crate) fn cutoff(&self) -> Option<ToolCutoff> {
        self.cutoff
    }
}

impl ToolCutoff {
    /// Returns the instruction for the model.
    #[must_use]
    pub fn model_instruction(self) -> &'static str {
        match self {
            Self::CallLimit => {
                "The limit of 50 tool calls for this turn is reached; no further calls are run. Answer now: say \
                 what is done and what is left."
            }
            Self::FailureLimit => {
                "5 tool calls in a row failed; no further calls are run in this turn. Answer now: say what you \
                 tried, what went wrong and what you need."
            }
        }
    }

    /// Returns the note for the user.
    pub(super) fn user_note(self) -> &'static str {
        match self {
            Self::CallLimit => "the limit of 50 tool calls is reached; asking the model to answer",
            Self::FailureLimit => "5 tool calls in a row failed; asking the model to answer",
        }
    }

    /// Returns the error message if the model ignores the instruction.
    pub(super) fn ignored_message(self) -> &'static str {
        match self {
            Self::CallLimit => "the limit of 50 tool calls is reached, but the model keeps calling tools",
            Self::FailureLimit => "5 tool calls in a row failed, but the model keeps calling tools",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_fifty_calls() {
        let mut allowance = ToolBudget::default();
        for _ in 0..MAX_CALLS {
            assert_eq!(allowance.cutoff(), None);
            assert_eq!(allowance.take_call(), None);
            allowance.record_result(false, false);
        }
        assert_eq!((allowance.take_call(), allowance.cutoff()), (Some(CALL_LIMIT_ERROR), Some(ToolCutoff::CallLimit)));
        for text in [
            CALL_LIMIT_ERROR,
            ToolCutoff::CallLimit.model_instruction(),
            ToolCutoff::CallLimit.user_note(),
            ToolCutoff::CallLimit.ignored_message(),
        ] {
            assert!(text.contains(&MAX_CALLS.to_string()));
        }
        for text in [
            ToolCutoff::FailureLimit.model_instruction(),
            ToolCutoff::FailureLimit.user_note(),
            ToolCutoff::FailureLimit.ignored_message(),
        ] {
            assert!(text.starts_with(&MAX_CONSECUTIVE_FAILURES.to_string()));
        }
        assert!(SKIPPED_CALL_ERROR.contains(&MAX_CONSECUTIVE_FAILURES.to_string()));
    }

    #[test]
    fn what_goes_well_between_failures_begins_the_count_anew() {
        let mut allowance = ToolBudget::default();
        for is_error in [true, true, true, true, false, true, true, true, true] {
            allowance.record_result(is_error, false);
            assert_eq!(allowance.cutoff(), None);
        }
        allowance.record_result(true, false);
        assert_eq!(allowance.cutoff(), Some(ToolCutoff::FailureLimit));
        allowance.record_result(false, false);
        assert_eq!(allowance.cutoff(), Some(ToolCutoff::FailureLimit), "it was said");
        for begun in [1, MAX_CALLS] {
            let mut allowance = ToolBudget::default();
            (0..begun).for_each(|_| assert_eq!(allowance.take_call(), None));
            allowance.record_result(true, true);
            assert_eq!(allowance.cutoff(), Some(ToolCutoff::FailureLimit), "whoever skips one has counted");
        }
    }

    #[test]
    fn no_more_run_than_may_still_fail() {
        let mut breaker = CircuitBreaker::default();
        for failed in 0..MAX_CONSECUTIVE_FAILURES {
            assert_eq!(breaker.remaining_failures(), MAX_CONSECUTIVE_FAILURES - failed);
            breaker.record_result(true);
        }
        assert_eq!(breaker.remaining_failures(), 0);
        breaker.record_result(false);
        assert_eq!(breaker.remaining_failures(), MAX_CONSECUTIVE_FAILURES);
    }
}
