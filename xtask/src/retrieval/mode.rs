//! The ways of searching that are measured.

use std::fmt;

/// A way of searching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Mode {
    /// By words
    Text,
    /// By meaning
    Semantic,
    /// By words and meaning
    Hybrid,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Text, Self::Semantic, Self::Hybrid];

    /// Returns true if it needs a model.
    pub fn needs_model(self) -> bool {
        self != Self::Text
    }
}

impl From<Mode> for chorus_search::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Text => Self::Text,
            Mode::Semantic => Self::Semantic,
            Mode::Hybrid => Self::Hybrid,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Semantic => "semantic",
            Self::Hybrid => "hybrid",
        })
    }
}
