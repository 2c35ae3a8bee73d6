//! Other coding agents in which a conversation can be continued: the files that they resume, where they look for them,
//! and how they are started.

mod claude_code;
mod codex;
pub mod config_file;
mod derived_id;
mod gemini;
pub mod json_edit;
mod opencode;
pub mod own_command;
mod placement;
mod project_dir;
mod tool_session;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, io};

use chorus_proto::methods::export::{ExportFormat, ExportTarget};
use chorus_proto::shell_word::shell_word;
use clap::ValueEnum;
use jiff::Timestamp;

use crate::error::Error;
pub use placement::{Placement, import_into_opencode, place};
pub use project_dir::find_project_dir;
pub use tool_session::ToolSession;

/// A coding agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CodingTool {
    ClaudeCode,
    Codex,
    Gemini,
    Opencode,
}

/// A file of a tool that has the id of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ExistingFile {
    /// Its content can be compared.
    Readable(PathBuf),
    /// The tool compressed it.
    Compressed(PathBuf),
    /// The tool would not continue it as it is.
    Unusable,
}

impl CodingTool {
    /// Returns the tool that reads this format.
    #[must_use]
    pub fn of_format(form: ExportFormat) -> Option<Self> {
        Self::value_variants().iter().copied().find(|tool| tool.format() == form)
    }

    #[must_use]
    pub fn format(self) -> ExportFormat {
        match self {
            Self::ClaudeCode => ExportFormat::ClaudeCode,
            Self::Codex => ExportFormat::Codex,
            Self::Gemini => ExportFormat::Gemini,
            Self::Opencode => ExportFormat::Opencode,
        }
    }

    /// Returns the name that users know.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
        }
    }

    /// Returns the name of its program.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// Returns the command that installs it.
    #[must_use]
    pub fn install_command(self) -> &'static str {
        match self {
            Self::ClaudeCode => "npm install -g @anthropic-ai/claude-code",
            Self::Codex => "npm install -g @openai/codex",
            Self::Gemini => "npm install -g @google/gemini-cli",
            Self::Opencode => "npm install -g opencode-ai",
        }
    }

    /// Returns the command that continues the conversation with this id.
    #[must_use]
    pub fn resume_command(self, id: &str) -> Vec<OsString> {
        let verb = match self {
            Self::ClaudeCode | Self::Gemini => "--resume",
            Self::Codex => "resume",
            Self::Opencode => "--session",
        };
        [self.program(), verb, id].map(OsString::from).to_vec()
    }

    /// Returns the conversation as which a session is exported.
    #[must_use]
    pub fn target(self, id: &str, directory: &Path, arguments: &[OsString]) -> ExportTarget {
        ExportTarget {
            id: id.to_owned(),
            directory: directory.to_string_lossy().into_owned(),
            model: opencode::find_model(arguments).filter(|_| self == Self::Opencode),
            written_at: Some(Timestamp::now()).filter(|_| self == Self::Gemini),
        }
    }

    /// Returns the path of a new file for the conversation.
    fn new_path(self, directory: &Path, id: &str) -> Result<PathBuf, Error> {
        Ok(match self {
            Self::ClaudeCode => claude_code::path_of(&self.home()?, directory, id),
            Self::Codex => codex::path_of(&self.home()?, id, Timestamp::now()),
            Self::Gemini => gemini::path_of(&self.home()?, directory, id, Timestamp::now()),
            Self::Opencode => env::temp_dir().join(format!("{id}.json")),
        })
    }

    fn find(self, directory: &Path, id: &str) -> Result<Option<ExistingFile>, Error> {
        match self {
            Self::ClaudeCode => {
                let path = claude_code::path_of(&self.home()?, directory, id);
                Ok(path.symlink_metadata().is_ok().then_some(ExistingFile::Readable(path)))
            }
            Self::Codex => codex::find(&self.home()?, id).map_err(|error| Error::for_file("sessions", &error)),
            Self::Gemini => {
                let found = gemini::find(&self.home()?, directory, id);
                Ok(found.map_err(|error| Error::for_file("chats", &error))?.map(ExistingFile::Readable))
            }
            Self::Opencode => Ok(None),
        }
    }

    /// Returns whether the conversation in `existing` begins with the one in `exported`.
    fn continues(self, existing: &Path, exported: &Path) -> io::Result<bool> {
        match self {
            Self::ClaudeCode => claude_code::continues(existing, exported),
            Self::Codex => codex::continues(existing, exported),
            Self::Gemini => gemini::continues(existing, exported),
            Self::Opencode => Ok(false),
        }
    }

    /// Returns the directory in which the tool keeps its files.
    fn home(self) -> Result<PathBuf, Error> {
        let (variable, below, name) = match self {
            Self::ClaudeCode => ("CLAUDE_CONFIG_DIR", "", ".claude"),
            Self::Codex => ("CODEX_HOME", "", ".codex"),
            Self::Gemini => ("GEMINI_CLI_HOME", ".gemini", ".gemini"),
            Self::Opencode => ("XDG_DATA_HOME", "opencode", ".local/share/opencode"),
        };
        if let Some(dir) = env::var_os(variable).filter(|dir| !dir.is_empty()) {
            let dir = std::path::absolute(&dir).map_err(|error| Error::for_file(&dir.to_string_lossy(), &error))?;
            return Ok(if below.is_empty() { dir } else { dir.join(below) });
        }
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        home.map(|home| home.join(name))
            .ok_or_else(|| Error::usage("no home directory is known").with_hint(format!("set {variable}")))
    }
}

/// Returns the command as a line for a shell, which first goes to `directory`.
#[must_use]
pub fn shell_line(directory: &Path, command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| option_or_word(&word.to_string_lossy())).collect();
    format!("cd {} && {}", shell_word(&directory.to_string_lossy()), words.join(" "))
}

/// Returns a word for a shell. Options are not quoted.
fn option_or_word(word: &str) -> String {
    let name = word.trim_start_matches('-');
    if name.len() < word.len() && shell_word(name) == name {
        return word.to_owned();
    }
    shell_word(word).into_owned()
}
