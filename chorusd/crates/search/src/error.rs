//! Why an index cannot be used.

use std::path::PathBuf;

/// An error of the index. The index is disposable: none of them concerns what is saved.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("cannot {verb} {path}: {source}")]
    File { verb: &'static str, path: PathBuf, source: std::io::Error },
    #[error("the index of searches failed: {0}")]
    Index(#[from] tantivy::TantivyError),
    #[error("the index of searches holds an entry that cannot be read")]
    Entry,
}
