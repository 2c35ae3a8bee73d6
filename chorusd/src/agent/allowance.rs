//! How many tools a turn may call, and when it is to answer without them.

/// Calls of tools in one turn.
pub const MAX_CALLS: u32 = 50;

/// Calls that fail one after the other before the model is to answer.
pub const MAX_FAILURES: u32 = 5;

/// What is answered to calls beyond [`MAX_CALLS`].
const SPENT: &str = "the turn has used its 50 calls; answer now";

/// What is answered to calls behind [`MAX_FAILURES`] in the same answer.
pub const SKIPPED: &str = "it was not carried out: 5 calls in a row before it have failed; answer now";

/// Why a model is to answer without tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastWord {
    /// It has called as many as it may.
    Spent,
    /// What it tries goes wrong again and again.
    Failing,
}

/// How many calls have failed since one last went well.
#[derive(Debug, Default, Clone, Copy)]
pub struct Breaker {
    failures: u32,
}

impl Breaker {
    /// A call has ended.
    pub fn ended(&mut self, is_error: bool) {
        self.failures = if is_error { self.failures.saturating_add(1) } else { 0 };
    }

    /// How many may run now, so that no more can fail in a row; none: no more is to begin.
    #[must_use]
    pub fn room(self) -> u32 {
        MAX_FAILURES.saturating_sub(self.failures)
    }
}

/// What a turn has called so far.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    used: u32,
    breaker: Breaker,
    /// Once said it is not taken back.
    word: Option<LastWord>,
    /// The model was to answer, and went on calling.
    pub unheeded: bool,
}

impl Allowance {
    /// One more call; why it is not carried out, for the model.
    pub fn take(&mut self) -> Option<&'static str> {
        if let Some(word) = self.word {
            return Some(if word == LastWord::Spent { SPENT } else { word.to_model() });
        }
        self.used += 1;
        if self.used >= MAX_CALLS {
            self.word = Some(LastWord::Spent);
        }
        None
    }

    /// A call has ended; `skipped`: it was not begun, because too many before it had failed.
    pub fn ended(&mut self, is_error: bool, skipped: bool) {
        if skipped {
            // Also where the answer it is of has as many calls as a turn may have.
            self.word = Some(LastWord::Failing);
        } else if self.word.is_none() {
            self.breaker.ended(is_error);
            self.word = (self.breaker.room() == 0).then_some(LastWord::Failing);
        }
    }

    /// For whoever carries the calls out.
    pub fn breaker(&self) -> Breaker {
        self.breaker
    }

    /// Whether the model is to answer next, and why.
    pub fn last_word(&self) -> Option<LastWord> {
        self.word
    }
}

impl LastWord {
    /// What the model is told.
    #[must_use]
    pub fn to_model(self) -> &'static str {
        match self {
            Self::Spent => {
                "The turn has used its 50 calls of tools, and no more are carried out. Answer now: say what is done and what is left."
            }
            Self::Failing => {
                "5 calls of tools in a row have failed, and no more are carried out in this turn. Answer now: say what you tried, \
                 what went wrong and what you need."
            }
        }
    }

    /// What the person is told.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Spent => "the turn has used its 50 calls of tools: the model is asked to answer",
            Self::Failing => "5 calls of tools in a row have failed: the model is asked to answer",
        }
    }

    /// Why the turn ends, where it did not.
    pub(super) fn unheeded(self) -> &'static str {
        match self {
            Self::Spent => "the turn has used its 50 calls of tools, and its model goes on calling",
            Self::Failing => "5 calls of tools in a row have failed, and the model goes on calling",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_fifty_calls() {
        let mut allowance = Allowance::default();
        for _ in 0..MAX_CALLS {
            assert_eq!(allowance.last_word(), None);
            assert_eq!(allowance.take(), None);
            allowance.ended(false, false);
        }
        assert_eq!((allowance.take(), allowance.last_word()), (Some(SPENT), Some(LastWord::Spent)));
        for text in [SPENT, LastWord::Spent.to_model(), LastWord::Spent.note(), LastWord::Spent.unheeded()] {
            assert!(text.contains(&MAX_CALLS.to_string()));
        }
        for text in [LastWord::Failing.to_model(), LastWord::Failing.note(), LastWord::Failing.unheeded()] {
            assert!(text.starts_with(&MAX_FAILURES.to_string()));
        }
        assert!(SKIPPED.contains(&MAX_FAILURES.to_string()));
    }

    #[test]
    fn what_goes_well_between_failures_begins_the_count_anew() {
        let mut allowance = Allowance::default();
        for is_error in [true, true, true, true, false, true, true, true, true] {
            allowance.ended(is_error, false);
            assert_eq!(allowance.last_word(), None);
        }
        allowance.ended(true, false);
        assert_eq!(allowance.last_word(), Some(LastWord::Failing));
        allowance.ended(false, false);
        assert_eq!(allowance.last_word(), Some(LastWord::Failing), "it was said");
        for begun in [1, MAX_CALLS] {
            let mut allowance = Allowance::default();
            (0..begun).for_each(|_| assert_eq!(allowance.take(), None));
            allowance.ended(true, true);
            assert_eq!(allowance.last_word(), Some(LastWord::Failing), "whoever skips one has counted");
        }
    }

    #[test]
    fn no_more_run_than_may_still_fail() {
        let mut breaker = Breaker::default();
        for failed in 0..MAX_FAILURES {
            assert_eq!(breaker.room(), MAX_FAILURES - failed);
            breaker.ended(true);
        }
        assert_eq!(breaker.room(), 0);
        breaker.ended(false);
        assert_eq!(breaker.room(), MAX_FAILURES);
    }
}
