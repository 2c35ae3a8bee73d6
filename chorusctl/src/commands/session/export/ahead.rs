//! Session files that are read while those before them are written.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use chorus_proto::methods::export::ExportFormat;

use super::selected::Selected;
use super::text::own_bytes;

/// Files that are read ahead.
const AHEAD: usize = 8;

/// Longer ones, in bytes, are not: they would fill the memory.
const SHORT: u64 = 1 << 20;

/// Gives away what the files of some sessions hold, one after the other.
#[derive(Debug)]
pub struct Ahead(Option<Receiver<Option<Vec<u8>>>>);

impl Ahead {
    /// Begins to read; a few are not worth a thread.
    pub fn of(sessions: Arc<Vec<Selected>>, form: ExportFormat) -> Self {
        if sessions.len() <= AHEAD || form != ExportFormat::Json {
            return Self(None);
        }
        let (give, take) = sync_channel(AHEAD);
        let read = move || {
            for session in sessions.iter() {
                let short = fs::metadata(&session.file_path).is_ok_and(|file| file.len() <= SHORT);
                let bytes = if short { own_bytes(session, form) } else { None };
                if give.send(bytes).is_err() {
                    break;
                }
            }
        };
        Self(thread::Builder::new().name("ahead".into()).spawn(read).is_ok().then_some(take))
    }

    /// The next session's file; `None` where it is to be read in another way.
    pub fn bytes(&mut self) -> Option<Vec<u8>> {
        self.0.as_ref()?.recv().ok()?
    }
}
