//! The errors of models and stores.

/// Reasons why texts have no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    /// A file of the model is missing or cannot be used: its name, and why.
    #[error("{file}: {why}")]
    Model { file: String, why: String },
    /// The model ran, but its result is none.
    #[error("the model gives no usable vector: {0}")]
    Output(String),
    #[error(transparent)]
    Store(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl EmbeddingError {
    pub(crate) fn model(file: &str, why: impl std::fmt::Display) -> Self {
        Self::Model { file: file.to_owned(), why: why.to_string() }
    }
}
