//! The tool `view`: shows a file with line numbers, or lists a folder.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use chorus_proto::pluralize::pluralize;
use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::versions::{HashingReader, ShownLines};
use super::workspace::OpenEntry;
use super::{FileAccess, PathParam, Workspace, WorkspacePath, file_action, line_format, run_blocking};
use crate::tools::ToolContext;
use crate::tools::tool::{Tool, ToolOutcome};

/// Limits on the lines shown at once, and on their bytes.
const MAX_SHOWN_LINES: u64 = 1000;
const MAX_SHOWN_BYTES: usize = 32 << 10;
/// Limit on the bytes read to find lines.
const MAX_READ_BYTES: u64 = 64 << 20;
/// Bytes at the beginning that are searched for NUL to detect binary files.
const BINARY_CHECK_LEN: usize = 8 << 10;
/// Limits on the entries of a folder that are shown, and that are read.
const MAX_SHOWN_ENTRIES: usize = 500;
const MAX_LISTED_ENTRIES: usize = 20_000;

pub(crate) struct View;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// For example `src/main.rs`. `.` is the workspace itself.
    path: PathParam,
    /// From 1.
    start_line: Option<u64>,
    end_line: Option<u64>,
}

/// A range of lines; both ends are included.
#[derive(Debug, Clone, Copy, Default)]
pub struct LineRange {
    pub start: Option<u64>,
    pub end: Option<u64>,
}

impl Tool for View {
    const NAME: &'static str = "view";
    const DESCRIPTION: &'static str = "Shows a file of the workspace with line numbers, or lists a folder. Long \
     files are shown in parts: continue with start_line.";
    const IN_ORDER: bool = true;
    const USES_WORKSPACE: bool = true;
    type Params = Params;

    fn action(params: &Params, ctx: &ToolContext) -> Result<String, String> {
        file_action(Self::NAME, &params.path, ctx)
    }

    async fn run(Params { path, start_line, end_line }: Params, ctx: Arc<ToolContext>) -> ToolOutcome {
        let range = LineRange { start: start_line, end: end_line };
        run_blocking(path, ctx, async move |workspace, place, access| workspace.view_as(place, range, access).await)
            .await
    }
}

impl Workspace {
    /// Returns lines of a file, or the entries of a folder. Blocks.
    pub fn view(&self, place: &WorkspacePath, range: LineRange) -> Result<String, String> {
        match self.open_entry(place)? {
            OpenEntry::Folder(folder) => list_folder(place, folder),
            OpenEntry::File { file, length } => Ok(view_file(place, file, length, range)?.text),
        }
    }

    /// Like [`Workspace::view`], for the conversation in `access`, which has seen this version of the file then. Waits
    /// until nobody writes the file. Blocks.
    pub(super) async fn view_as(
        &self,
        place: &WorkspacePath,
        range: LineRange,
        access: &FileAccess<'_>,
    ) -> Result<String, String> {
        let Some(files) = access.conversation else { return self.view(place, range) };
        let _lock = match place.components().split_last() {
            Some((name, folders)) => match self.walk_folders(folders, |_, _| Ok(None)) {
                Ok(folder) => access.lock(&folder, name).await.ok(),
                Err(_) => None,
            },
            None => None,
        };
        let position = files.next_position();
        let (file, length) = match self.open_entry(place)? {
            OpenEntry::Folder(folder) => return list_folder(place, folder),
            OpenEntry::File { file, length } => (file, length),
        };
        let mut reader = HashingReader::new(file);
        let viewed = view_file(place, &mut reader, length, range);
        #[cfg(test)]
        super::versions::pause().await;
        let shown = match &viewed {
            Ok(shown) => Some(shown.lines),
            // There is nothing more to see of it.
            Err(ViewError::Binary(_)) => Some(ShownLines::ALL),
            Err(ViewError::Other(_)) => None,
        };
        if let Some(lines) = shown
            && let Ok(hash) = reader.finish()
        {
            files.note_viewed(&place.to_string(), hash, position, lines);
        }
        Ok(viewed?.text)
    }
}

/// Lines of a file for the model.
struct Viewed {
    text: String,
    lines: ShownLines,
}

/// The reason why a file is not shown.
enum ViewError {
    /// There is nothing more to see of this file.
    Binary(String),
    Other(String),
}

impl From<String> for ViewError {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl From<ViewError> for String {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::Binary(why) | ViewError::Other(why) => why,
        }
    }
}

fn view_file(place: &WorkspacePath, file: impl Read, length: u64, range: LineRange) -> Result<Viewed, ViewError> {
    let failed = |e: std::io::Error| format!("cannot read {place}: {e}");
    let start = range.start.unwrap_or(1);
    if start == 0 {
        return Err("start_line must be at least 1".to_owned().into());
    }
    let last = range.end.unwrap_or(u64::MAX);
    if last < start {
        return Err(format!("end_line {last} is before start_line {start}").into());
    }
    let mut reader = BufReader::with_capacity(64 << 10, file.take(MAX_READ_BYTES));
    let head = reader.fill_buf().map_err(failed)?;
    if head.is_empty() {
        return Ok(Viewed { text: format!("{place} is empty"), lines: ShownLines::ALL });
    }
    if memchr::memchr(0, &head[..head.len().min(BINARY_CHECK_LEN)]).is_some() {
        return Err(ViewError::Binary(format!(
            "{place} is not a text file: {}, with NUL bytes",
            line_format::format_count(length, "byte")
        )));
    }
    let (mut text, mut line) = (String::new(), Vec::new());
    let (mut number, mut shown, mut read, mut plain) = (0, 0_u64, 0_u64, true);
    let mut full = false;
    loop {
        line.clear();
        let taken = reader.read_until(b'\n', &mut line).map_err(failed)?;
        if taken == 0 {
            break;
        }
        (number, read) = (number + 1, read + taken as u64);
        full |= shown >= MAX_SHOWN_LINES || text.len() >= MAX_SHOWN_BYTES;
        if (start..=last).contains(&number) && !full {
            plain &= std::str::from_utf8(&line).is_ok();
            line_format::push_numbered_line(&mut text, number, line.strip_suffix(b"\n").unwrap_or(&line));
            shown += 1;
        }
    }
    let whole = read < MAX_READ_BYTES;
    let lines = pluralize(number, "line");
    let of = if whole { number.to_string() } else { format!("more than {number}") };
    if shown == 0 {
        let more = if whole { "" } else { "; use bash to read beyond that" };
        let all = if whole { lines } else { format!("more than {lines}") };
        return Err(format!("{place} has {all}, so line {start} does not exist{more}").into());
    }
    let end = start + shown - 1;
    if !plain {
        text.push_str("[not UTF-8: invalid bytes are shown as \u{fffd}]\n");
    }
    if full && end < last.min(number) {
        let _ = writeln!(text, "[lines {start} to {end} of {of}; continue with start_line {}]", end + 1);
    } else if start > 1 || end < number || !whole {
        let _ = writeln!(text, "[lines {start} to {end} of {of}]");
    }
    Ok(Viewed { text, lines: ShownLines { first: start, last: end, is_end: whole && end == number } })
}

/// Returns the sorted names in a folder, folders with a slash. Leaves out git's own directory.
fn list_folder(place: &WorkspacePath, folder: OwnedFd) -> Result<String, String> {
    let failed = |e: rustix::io::Errno| format!("cannot read {place}: {e}");
    let mut entries: Vec<(Vec<u8>, String)> = Vec::new();
    let mut more = false;
    for entry in Dir::read_from(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b".." | b".git") {
            continue;
        }
        more = entries.len() >= MAX_LISTED_ENTRIES;
        if more {
            break;
        }
        entries.push((name.to_bytes().to_vec(), String::new()));
    }
    entries.sort();
    let count = entries.len();
    let mut text = match count {
        0 => return Ok(format!("{place}/ is empty")),
        _ => format!(
            "{place}/ has {}{}:\n",
            if more { "more than " } else { "" },
            line_format::format_count(count as u64, "name")
        ),
    };
    for (name, kind) in entries.iter_mut().take(MAX_SHOWN_ENTRIES) {
        // An entry that has disappeared meanwhile is listed by its name alone.
        if let Ok(status) = statat(&folder, &**name, AtFlags::SYMLINK_NOFOLLOW) {
            *kind = match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => "/".into(),
                FileType::RegularFile => {
                    format!("  {}", line_format::format_count(u64::try_from(status.st_size).unwrap_or(0), "byte"))
                }
                FileType::Symlink => match readlinkat(&folder, &**name, Vec::new()) {
                    Ok(target) => format!(" -> {}", escape_name(target.to_bytes())),
                    Err(_) => " (a symbolic link)".into(),
                },
                _ => "  (not a file)".into(),
            };
        }
        let _ = writeln!(text, "{}{kind}", escape_name(name));
    }
    if count > MAX_SHOWN_ENTRIES {
        let _ = writeln!(text, "[{} more]", count - MAX_SHOWN_ENTRIES);
    }
    Ok(text)
}

/// Escapes a name with control characters, so that it stays on one line.
fn escape_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if name.chars().any(char::is_control) { format!("{name:?}") } else { name.into_owned() }
}
