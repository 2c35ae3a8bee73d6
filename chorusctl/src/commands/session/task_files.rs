//! Tasks of Cline, Roo Code and Kilo Code. Each is a directory of several files, which are put into one document for the
//! daemon: `cline` with what describes the task, `ui_messages`, and `transcript`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The messages of the API, in newer and older versions.
const TRANSCRIPTS: [&str; 2] = ["api_conversation_history.json", "claude_messages.json"];

/// The file with the messages as the person saw them, with times and usage.
const UI_MESSAGES: &str = "ui_messages.json";

const TASK_METADATA: &str = "task_metadata.json";

const HISTORY_ITEM: &str = "history_item.json";

/// Lists of all tasks, of Cline and of Roo Code.
const TASK_LISTS: [&str; 2] = ["taskHistory.json", "_index.json"];

/// The end of the names of transcripts of Cline's command line. The session is described in a file with the same beginning.
const CLI_TRANSCRIPT: &str = ".messages.json";

/// Returns whether a file has the transcript of a task.
pub(super) fn is_transcript(path: &Path) -> bool {
    let name = file_name(path);
    TRANSCRIPTS.contains(&name) || name.ends_with(CLI_TRANSCRIPT)
}

/// Returns whether a file belongs to tasks whose transcripts are in other files.
pub(super) fn is_part(path: &Path) -> bool {
    let is_beside = |name: &str| path.with_file_name(name).exists();
    let of_cli = path.file_stem().and_then(OsStr::to_str).map(|stem| format!("{stem}{CLI_TRANSCRIPT}"));
    let name = file_name(path);
    TASK_LISTS.contains(&name)
        || !is_transcript(path) && of_cli.is_some_and(|transcript| is_beside(&transcript))
        || [UI_MESSAGES, TASK_METADATA, HISTORY_ITEM].contains(&name) && TRANSCRIPTS.into_iter().any(is_beside)
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// Opens the document of the task that a file belongs to; `None` if it belongs to none.
///
/// # Errors
/// The transcript cannot be read.
pub(super) fn open(file: &str) -> io::Result<Option<Box<dyn Read>>> {
    let path = Path::new(file);
    let name = file_name(path);
    if let Some(id) = name.strip_suffix(CLI_TRANSCRIPT) {
        // Without a description it is imported as it is.
        let session = read_json(&path.with_file_name(format!("{id}.json")));
        let about = session.map(|session| format!("{{\"session\":{session}}}"));
        return about.map(|about| document(&about, "null", Some(path))).transpose();
    }
    if !TRANSCRIPTS.contains(&name) && name != UI_MESSAGES {
        return Ok(None);
    }
    let dir = fs::canonicalize(path)?.parent().map(Path::to_path_buf).unwrap_or_default();
    let (task, extension) = (file_name(&dir), dir.ancestors().nth(2).map(file_name).unwrap_or_default());
    let or_null = |json: Option<Box<RawValue>>| json.map_or_else(|| "null".to_owned(), |json| json.get().to_owned());
    let item = read_json(&dir.join(HISTORY_ITEM)).or_else(|| history_item(&dir, task));
    let about = format!(
        "{{\"task\":{},\"extension\":{},\"history_item\":{},\"task_metadata\":{}}}",
        serde_json::to_string(task)?,
        serde_json::to_string(extension)?,
        or_null(item),
        or_null(read_json(&dir.join(TASK_METADATA))),
    );
    let transcript = TRANSCRIPTS.iter().map(|name| dir.join(name)).find(|path| path.exists());
    document(&about, &or_null(read_json(&dir.join(UI_MESSAGES))), transcript.as_deref()).map(Some)
}

/// Finds a task of Cline in the list of all tasks, which is beside their directories.
fn history_item(dir: &Path, task: &str) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Item {
        id: String,
    }
    let list = read_json(&dir.ancestors().nth(2)?.join("state").join(TASK_LISTS[0]))?;
    let items: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    let is_task = |raw: &&RawValue| serde_json::from_str::<Item>(raw.get()).is_ok_and(|item| item.id == task);
    items.into_iter().find(is_task).map(ToOwned::to_owned)
}

/// Reads a file that is valid JSON. The programs may be writing others.
fn read_json(path: &Path) -> Option<Box<RawValue>> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Builds the document. The transcript, which can be long, is read when the document is.
fn document(about: &str, ui_messages: &str, transcript: Option<&Path>) -> io::Result<Box<dyn Read>> {
    let start = format!("{{\"cline\":{about},\"ui_messages\":{ui_messages},\"transcript\":");
    let transcript: Box<dyn Read> = match transcript {
        Some(path) => Box::new(File::open(path)?),
        None => Box::new(Cursor::new("null")),
    };
    Ok(Box::new(Cursor::new(start).chain(transcript).chain(Cursor::new("}"))))
}
