//! The ways of searching, as `--mode` names them.

use chorus_proto::methods::search::SearchMode;

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Mode {
    /// By words
    Text,
    /// By meaning
    Semantic,
    /// By words and meaning
    Hybrid,
}

impl From<Mode> for SearchMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Text => Self::Text,
            Mode::Semantic => Self::Semantic,
            Mode::Hybrid => Self::Hybrid,
        }
    }
}
