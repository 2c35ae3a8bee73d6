//! Limits of models that were learned from refused requests because no list contains them. Kept until the next
//! discovery.

use std::borrow::Cow;
use std::collections::HashMap;

use chorus_base::sync::Mutex;

use super::error::{CallError, ErrorClass};
use super::model_ref::ModelRef;
use super::request::ModelRequest;

/// Shortest reply, in tokens, that is requested instead of a longer one.
const MIN_REPLY_TOKENS: u32 = 256;

/// The learned limits of each model.
#[derive(Debug, Default)]
pub(crate) struct LearnedLimits(Mutex<HashMap<ModelRef, LimitsEntry>>);

#[derive(Debug, Default, Clone, Copy)]
struct LimitsEntry {
    /// Whether it accepts no images.
    refuses_images: bool,
    /// Longest reply in tokens that it has not refused.
    max_reply_tokens: Option<u32>,
}

/// A request that may be accepted in place of a refused one.
#[derive(Debug)]
pub(crate) struct AmendedRequest {
    pub request: ModelRequest,
    /// A note for the user.
    pub note: Option<String>,
}

/// Returns whether a reply is too long for the context that the prompt leaves, and not for the model itself.
fn depends_on_prompt(error: &CallError) -> bool {
    error.message.contains("context length")
}

impl LearnedLimits {
    /// Returns whether the model has refused an image.
    pub(crate) fn refuses_images(&self, target: &ModelRef) -> bool {
        self.0.lock().get(target).is_some_and(|facts| facts.refuses_images)
    }

    /// Returns `request` with the reply limited to the learned length.
    pub(crate) fn apply_limits<'a>(&self, target: &ModelRef, request: &'a ModelRequest) -> Cow<'a, ModelRequest> {
        match self.0.lock().get(target).and_then(|facts| facts.max_reply_tokens) {
            Some(most) if most < request.max_tokens => Cow::Owned(ModelRequest { max_tokens: most, ..request.clone() }),
            _ => Cow::Borrowed(request),
        }
    }

    /// Learns from `error`, the failure of `request`, and returns an amended request; `None` if another attempt is
    /// useless. Each amended request has fewer images or a shorter reply than the one before, so this terminates.
    pub(crate) fn learn(&self, target: &ModelRef, request: &ModelRequest, error: &CallError) -> Option<AmendedRequest> {
        if !error.partial.is_empty() {
            return None;
        }
        match error.class {
            ErrorClass::NoImages => {
                let request = request.without_images()?;
                self.0.lock().entry(target.clone()).or_default().refuses_images = true;
                Some(AmendedRequest {
                    request,
                    note: Some(format!("{target} does not accept images; sending their names instead")),
                })
            }
            ErrorClass::AnswerTooLong => {
                let asked = self.apply_limits(target, request).max_tokens;
                let less = (asked / 2).max(MIN_REPLY_TOKENS);
                if less >= asked {
                    return None;
                }
                if !depends_on_prompt(error) {
                    self.0.lock().entry(target.clone()).or_default().max_reply_tokens = Some(less);
                }
                Some(AmendedRequest { request: ModelRequest { max_tokens: less, ..request.clone() }, note: None })
            }
            _ => None,
        }
    }

    /// Forgets everything, because servers may have been restarted with other limits.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
