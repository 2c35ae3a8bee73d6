//! The programs whose conversations can be captured, one module each: where it keeps them, and which of its files are
//! conversations.

pub(super) mod claude_code;
pub(super) mod codex;
pub(super) mod copilot;
pub(super) mod cursor;
pub(super) mod gemini;
pub(super) mod goose;
pub(super) mod hermes;
pub(super) mod openclaw;
pub(super) mod opencode;
pub(super) mod pi;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use chorus_proto::methods::import::ImportFormat;

use super::places::UserPlaces;

/// A program, and how it keeps its conversations.
#[derive(Debug)]
pub(super) struct Program {
    /// Its name on the command line, which sessions have as `source.program`.
    pub name: &'static str,
    /// The format of its transcripts, and of the documents that are made of its database.
    pub format: ImportFormat,
    /// Returns the directories in which it keeps conversations. They need not exist.
    pub roots: fn(&UserPlaces) -> Vec<Root>,
    /// Returns the kind of a file below a root; `None` if it has no conversation.
    pub kind: fn(&Path) -> Option<FileKind>,
    /// Returns true for the transcript of a subagent, which has the conversation that started it as its parent.
    pub is_subagent: fn(&Path) -> bool,
    /// Returns the age in days at which the program deletes a transcript below a root.
    pub deletes_after_days: fn(&Path) -> Option<u64>,
}

/// A directory in which a program keeps conversations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub dir: PathBuf,
    /// How many directories deep its conversations are. Deeper ones, which may be many, are not looked at.
    pub depth: usize,
}

impl Root {
    fn new(dir: PathBuf, depth: usize) -> Self {
        Self { dir, depth }
    }
}

/// How a file holds conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// Lines are added to it. The last one may be torn.
    Lines,
    /// Lines that are compressed with zstd, in a file with the name of the plain one and one extension more. It is written as a whole.
    CompressedLines,
    /// It describes a conversation whose messages are in files of their own.
    MessageFiles,
    /// It is written as a whole.
    Document,
    /// An SQLite database with all conversations.
    Database,
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn lines_if(is_transcript: bool) -> Option<FileKind> {
    is_transcript.then_some(FileKind::Lines)
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// Returns the name of the directory that a file is in.
fn dir_name_of(path: &Path) -> &OsStr {
    path.parent().and_then(Path::file_name).unwrap_or_default()
}
