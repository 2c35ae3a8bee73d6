//! The table `[capture]`.

use std::path::PathBuf;

use chorus_base::closest_match;

/// The settings of capture, which add to those of `chorusctl capture`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureConfig {
    /// Names of the programs that are captured.
    pub sources: Vec<String>,
    /// Directories of projects, or of transcripts, that are left out. Each is absolute.
    pub exclude: Vec<PathBuf>,
    /// False keeps secrets, until `chorusctl capture on` says otherwise. By default they are redacted.
    pub redact: Option<bool>,
}

/// Names of the programs that can be captured.
pub const CAPTURE_SOURCES: [&str; 10] =
    ["claude-code", "codex", "gemini", "opencode", "copilot", "goose", "pi", "openclaw", "hermes", "cursor"];

/// Checks names of programs.
pub(crate) fn parse_sources(names: Vec<String>) -> Result<Vec<String>, String> {
    match names.iter().find(|name| !CAPTURE_SOURCES.contains(&name.as_str())) {
        None => Ok(names),
        Some(unknown) => {
            let meant = closest_match(unknown, CAPTURE_SOURCES).map(|meant| format!("; did you mean {meant:?}?"));
            Err(format!("has an unknown program {unknown:?}{}", meant.unwrap_or_default()))
        }
    }
}

/// Parses directories. `~` is the user's home.
pub(crate) fn parse_directories(texts: Vec<String>) -> Result<Vec<PathBuf>, String> {
    let parse = |text: String| {
        let path = match text.strip_prefix("~/").zip(std::env::home_dir()) {
            Some((below, home)) => home.join(below),
            None => PathBuf::from(&text),
        };
        if path.is_absolute() { Ok(path) } else { Err(format!("{text:?} must be an absolute path, or one in ~/")) }
    };
    texts.into_iter().map(parse).collect()
}
