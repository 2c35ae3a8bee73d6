//! Writes a session to where a tool looks for its conversations. No file is ever overwritten.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use chorus_proto::methods::export::ExportTarget;
use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::{CodingTool, ExistingFile, ToolSession, codex, gemini, opencode};
use crate::app::App;
use crate::commands::session::export::fetch_pieces;
use crate::error::Error;

/// Most conversations of one session in a tool. Each was changed there, so that it cannot be continued as the session.
const MAX_COPIES: u32 = 1000;

/// The conversation in a tool.
#[derive(Debug)]
pub struct Placement {
    pub tool: CodingTool,
    pub id: String,
    pub directory: PathBuf,
    pub file: PathBuf,
    /// False if the tool had it already, possibly with more messages.
    pub is_new: bool,
}

impl Placement {
    /// Returns the command that continues the conversation.
    #[must_use]
    pub fn resume_command(&self) -> Vec<OsString> {
        self.tool.resume_command(&self.id)
    }
}

/// Writes the session, unless the tool already has a conversation that begins with it. Uses the conversation's own id if
/// it came from that tool.
pub fn place(app: &mut App, session: &ToolSession, tool: CodingTool, directory: &Path) -> Result<Placement, Error> {
    // One that an earlier release wrote is continued.
    let earlier = (0..MAX_COPIES).map(|number| tool.earlier_id(session, number));
    let mut written = Vec::new();
    for id in earlier {
        match tool.find(directory, &id)? {
            Some(_) => written.push(id),
            None => break,
        }
    }
    let new = (0..MAX_COPIES).map(|number| tool.new_id(session, number));
    for id in session.own_id(tool).into_iter().chain(written).chain(new) {
        let placed = |file, is_new| Placement { tool, id: id.clone(), directory: directory.to_owned(), file, is_new };
        let existing = match tool.find(directory, &id)? {
            Some(ExistingFile::Unusable) => continue,
            Some(ExistingFile::Compressed(file)) => return Ok(placed(file, false)),
            Some(ExistingFile::Readable(file)) => Some(file),
            None => None,
        };
        let path = existing.clone().map_or_else(|| tool.new_path(directory, &id), Ok)?;
        let failed = |error: io::Error| Error::for_file(&path.to_string_lossy(), &error);
        let written = write_temporary(app, session, tool, tool.target(&id, directory, &[]), &path)?;
        if let Some(file) = existing {
            match tool.continues(&file, written.path()).map_err(failed)? {
                true => return Ok(placed(file, false)),
                false => continue,
            }
        }
        match publish(written, &path) {
            Ok(()) => {}
            // Somebody else wrote it meanwhile: look at the next one.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(failed(error)),
        }
        if let Err(error) = record(session, tool, directory, &id) {
            app.stderr.warning(&format!("the title or the directory was not recorded: {error}"));
        }
        return Ok(placed(path, true));
    }
    Err(Error::failed(format!("{} has too many copies of this conversation", tool.title())))
}

/// Has opencode import the session. `arguments` are those with which it will be started.
pub fn import_into_opencode(
    app: &mut App,
    session: &ToolSession,
    directory: &Path,
    program: &Path,
    arguments: &[OsString],
) -> Result<Placement, Error> {
    let tool = CodingTool::Opencode;
    let id = session.own_id(tool).unwrap_or_else(|| tool.new_id(session, 0));
    let path = tool.new_path(directory, &id)?;
    let file = write_temporary(app, session, tool, tool.target(&id, directory, arguments), &path)?;
    opencode::import(program, directory, file.path())?;
    Ok(Placement { tool, id, directory: directory.to_owned(), file: tool.home()?, is_new: true })
}

/// Records what the tool keeps beside the conversation.
fn record(session: &ToolSession, tool: CodingTool, directory: &Path, id: &str) -> Result<(), io::Error> {
    let home = tool.home().map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    match tool {
        CodingTool::Codex => match session.description.as_deref().map(to_single_line) {
            Some(title) if !title.is_empty() => codex::append_title(&home, id, &title, Timestamp::now()),
            _ => Ok(()),
        },
        CodingTool::Gemini => gemini::record_project(&home, directory),
        CodingTool::ClaudeCode | CodingTool::Opencode => Ok(()),
    }
}

/// Writes the session to a temporary file beside `path`, which only the user can read.
fn write_temporary(
    app: &mut App,
    session: &ToolSession,
    tool: CodingTool,
    target: ExportTarget,
    path: &Path,
) -> Result<NamedTempFile, Error> {
    let failed = |error: io::Error| Error::for_file(&path.to_string_lossy(), &error);
    let parent = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    let mut file = tempfile::Builder::new().prefix(".chorus-").tempfile_in(parent).map_err(failed)?;
    fetch_pieces(app, &session.base, tool.format(), Some(target), |piece| {
        let file = file.as_file_mut();
        match piece {
            Some(text) => file.write_all(text.as_bytes()),
            None => file.set_len(0).and_then(|()| file.rewind()),
        }
        .map_err(failed)
    })?;
    Ok(file)
}

/// Gives a temporary file its name, durably.
fn publish(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

fn to_single_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
