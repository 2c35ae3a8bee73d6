//! Why indexing was interrupted.

use chorus_base::error::Error;
use chorus_search::SearchError;

/// Why a round ended early.
#[derive(Debug)]
pub(super) enum Failure {
    Index(SearchError),
    Store(Error),
    /// A search could not read the index.
    Search,
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        Self::Index(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Index(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Search => f.write_str("a search could not read it"),
        }
    }
}
