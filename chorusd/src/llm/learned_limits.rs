//! What refusals tell of a model that no list did: it holds until the next discovery.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::error::{CallError, ErrorClass};
use super::model_ref::ModelRef;
use super::request::ModelRequest;

/// The shortest answer that is asked for instead of a longer one.
const MIN_REPLY_TOKENS: u32 = 256;

/// What is known of each model.
#[derive(Debug, Default)]
pub struct LearnedLimits(Mutex<HashMap<ModelRef, LimitsEntry>>);

#[derive(Debug, Default, Clone, Copy)]
struct LimitsEntry {
    /// It takes no images.
    refuses_images: bool,
    /// The longest answer that it has not refused to give.
    max_reply_tokens: Option<u32>,
}

/// A request that may be taken where the one before it was not.
#[derive(Debug)]
pub struct AmendedRequest {
    pub request: ModelRequest,
    /// What whoever listens is to know of it.
    pub note: Option<String>,
}

/// Returns true where an answer is too long for what this prompt leaves of the context, and not for the model.
fn depends_on_prompt(error: &CallError) -> bool {
    error.message.contains("context length")
}

impl LearnedLimits {
    /// Returns true where the model has refused an image.
    pub fn refuses_images(&self, target: &ModelRef) -> bool {
        self.lock().get(target).is_some_and(|facts| facts.refuses_images)
    }

    /// `request` with an answer no longer than the model is known to give.
    pub fn apply_limits<'a>(&self, target: &ModelRef, request: &'a ModelRequest) -> Cow<'a, ModelRequest> {
        match self.lock().get(target).and_then(|facts| facts.max_reply_tokens) {
            Some(most) if most < request.max_tokens => Cow::Owned(ModelRequest { max_tokens: most, ..request.clone() }),
            _ => Cow::Borrowed(request),
        }
    }

    /// Learns from `error`, which `request` has met; `None`: there is no sense in another try. Each try has fewer images or a shorter answer
    /// than the one before, so this ends.
    pub fn learn(&self, target: &ModelRef, request: &ModelRequest, error: &CallError) -> Option<AmendedRequest> {
        if !error.partial.is_empty() {
            return None;
        }
        match error.class {
            ErrorClass::NoImages => {
                let request = request.without_images()?;
                self.lock().entry(target.clone()).or_default().refuses_images = true;
                Some(AmendedRequest {
                    request,
                    note: Some(format!("{target} takes no images; it is told their names")),
                })
            }
            ErrorClass::AnswerTooLong => {
                let asked = self.apply_limits(target, request).max_tokens;
                let less = (asked / 2).max(MIN_REPLY_TOKENS);
                if less >= asked {
                    return None;
                }
                if !depends_on_prompt(error) {
                    self.lock().entry(target.clone()).or_default().max_reply_tokens = Some(less);
                }
                Some(AmendedRequest { request: ModelRequest { max_tokens: less, ..request.clone() }, note: None })
            }
            _ => None,
        }
    }

    /// Forgets everything: servers may have been started anew.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ModelRef, LimitsEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
