//! Model references: `provider/model`.

use std::fmt;

/// A model of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelRef {
    pub provider: String,
    pub model: String,
}

impl ModelRef {
    #[must_use]
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// Parses `provider/model`; the model's name may contain slashes.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (provider, model) = name.split_once('/')?;
        (!provider.is_empty() && !model.is_empty()).then(|| Self::new(provider, model))
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}
