//! Texts as vectors that are close together if the texts mean the same.
//!
//! [`LocalModel`] computes them in this process, from the files of a sentence transformer; [`install`] takes over such files.
//! [`VectorStore`] keeps them in a compact form, and finds those that are closest to another.

mod error;
mod install;
mod local_model;
mod passages;
mod pooling;
mod quantize;
mod signs;
mod store;
mod tokens;

pub use error::EmbeddingError;
pub use install::{InstalledModel, install};
pub use local_model::LocalModel;
pub use passages::passages_of;
pub use pooling::normalised;
pub use store::{Match, VectorStore};

/// The uses of a text. Some models want to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextUse {
    /// To be found.
    Passage,
    /// To find others.
    Query,
}
