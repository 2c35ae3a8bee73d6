//! The ways of searching that are measured.

use std::fmt;

use chorus_search::SearchQuery;

/// A way of searching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Mode {
    /// By words
    Text,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Text];

    /// Makes a query one of this mode.
    pub fn apply(self, query: SearchQuery) -> SearchQuery {
        match self {
            Self::Text => query,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
        })
    }
}
