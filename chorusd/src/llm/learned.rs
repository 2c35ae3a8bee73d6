//! What refusals tell of a model that no list did: it holds until the next discovery.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::{CallError, Class};
use super::request::Request;
use super::target::Target;

/// The shortest answer that is asked for instead of a longer one.
const SHORTEST_ANSWER: u32 = 256;

/// What is known of each model.
#[derive(Debug, Default)]
pub struct Learned(Mutex<HashMap<Target, Facts>>);

#[derive(Debug, Default, Clone, Copy)]
struct Facts {
    /// It takes no images.
    blind: bool,
    /// The longest answer that it has not refused to give.
    answer: Option<u32>,
}

/// A request that may be taken where the one before it was not.
#[derive(Debug)]
pub struct Amended {
    pub request: Request,
    /// What whoever listens is to know of it.
    pub note: Option<String>,
}

/// Returns true where an answer is too long for what this prompt leaves of the context, and not for the model.
fn depends_on_prompt(error: &CallError) -> bool {
    error.message.contains("context length")
}

impl Learned {
    /// Returns true where the model has refused an image.
    pub fn is_blind(&self, target: &Target) -> bool {
        self.facts().get(target).is_some_and(|facts| facts.blind)
    }

    /// `request` with an answer no longer than the model is known to give.
    pub fn fitted<'a>(&self, target: &Target, request: &'a Request) -> Cow<'a, Request> {
        match self.facts().get(target).and_then(|facts| facts.answer) {
            Some(most) if most < request.max_tokens => Cow::Owned(Request { max_tokens: most, ..request.clone() }),
            _ => Cow::Borrowed(request),
        }
    }

    /// Learns from `error`, which `request` has met; `None`: there is no sense in another try. Each try has fewer images or a shorter answer
    /// than the one before, so this ends.
    pub fn learn(&self, target: &Target, request: &Request, error: &CallError) -> Option<Amended> {
        if !error.partial.is_empty() {
            return None;
        }
        match error.class {
            Class::NoImages => {
                let request = request.without_images()?;
                self.facts().entry(target.clone()).or_default().blind = true;
                Some(Amended { request, note: Some(format!("{target} takes no images; it is told their names")) })
            }
            Class::AnswerTooLong => {
                let asked = self.fitted(target, request).max_tokens;
                let less = (asked / 2).max(SHORTEST_ANSWER);
                if less >= asked {
                    return None;
                }
                if !depends_on_prompt(error) {
                    self.facts().entry(target.clone()).or_default().answer = Some(less);
                }
                Some(Amended { request: Request { max_tokens: less, ..request.clone() }, note: None })
            }
            _ => None,
        }
    }

    /// Forgets everything: servers may have been started anew.
    pub fn forget(&self) {
        self.facts().clear();
    }

    fn facts(&self) -> MutexGuard<'_, HashMap<Target, Facts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
