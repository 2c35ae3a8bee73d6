//! What the model of a call accepts in one request.

use super::prompt::estimated;
use crate::llm::{Models, Target};

/// What a model accepts, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// Tokens, prompt and answer together, as they are estimated.
    pub tokens: Option<u64>,
    pub images: bool,
}

impl Default for Accepts {
    fn default() -> Self {
        Self { tokens: None, images: true }
    }
}

impl Accepts {
    /// What `target` accepts; `ratio`: by how much it counts more tokens than Chorus estimates.
    #[must_use]
    pub fn of(models: &Models, target: &Target, ratio: Option<f64>) -> Self {
        let tokens = models.window_of(target).map(|tokens| estimated(tokens, ratio));
        Self { tokens, images: models.takes_images(target) }
    }
}
