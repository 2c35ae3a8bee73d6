//! Session files that are read while those before them are written.

use std::fs;
use std::sync::mpsc::sync_channel;
use std::thread;

use chorus_proto::methods::export::ExportFormat;

use super::selected::Selected;
use super::text::own_bytes;
use crate::error::Failure;

/// Files that are held ready.
const AHEAD: usize = 8;

/// Those that are longer, in bytes, are not read ahead: they would fill the memory.
const SHORT: u64 = 1 << 20;

/// A session, and what its file holds where that could be read and will do.
pub type Next = (Selected, Option<Vec<u8>>);

/// Gives `sessions` away one after the other; the files of more than a few are read on a thread of its own.
///
/// # Errors
/// A thread that cannot be started.
pub fn ahead(sessions: Vec<Selected>, form: ExportFormat) -> Result<Box<dyn Iterator<Item = Next>>, Failure> {
    let few = sessions.len() <= AHEAD;
    let mut all = sessions.into_iter().map(move |session| with_file(session, form));
    if few || form != ExportFormat::Json {
        return Ok(Box::new(all));
    }
    let (give, take) = sync_channel(AHEAD);
    let run = move || _ = all.all(|next| give.send(next).is_ok());
    let started = thread::Builder::new().name("ahead".into()).spawn(run);
    started.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    Ok(Box::new(take.into_iter()))
}

fn with_file(session: Selected, form: ExportFormat) -> Next {
    let short = fs::metadata(&session.file_path).is_ok_and(|file| file.len() <= SHORT);
    let bytes = if short { own_bytes(&session, form) } else { None };
    (session, bytes)
}
