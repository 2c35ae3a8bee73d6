//! What the model of a call accepts in one request.

use super::prompt::to_estimated_tokens;
use crate::llm::{ModelRef, Models};

/// What a model accepts, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// Tokens, prompt and answer together, as they are estimated.
    pub tokens: Option<u64>,
    pub images: bool,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { tokens: None, images: true }
    }
}

impl ModelLimits {
    /// What `target` accepts; `ratio`: by how much it counts more tokens than Chorus estimates.
    #[must_use]
    pub fn for_target(models: &Models, target: &ModelRef, ratio: Option<f64>) -> Self {
        let tokens = models.context_length(target).map(|tokens| to_estimated_tokens(tokens, ratio));
        Self { tokens, images: models.accepts_images(target) }
    }
}
