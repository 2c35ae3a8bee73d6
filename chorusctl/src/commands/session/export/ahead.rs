//! What is exported next is asked for, and its file read, while what came before it is written.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::{thread, vec};

use chorus_proto::Client;
use chorus_proto::methods::export::{ExportFormat, Select, SelectParams, SelectResult};

use super::selected::Selected;
use super::text::own_bytes;
use crate::app::read;
use crate::cli::Global;
use crate::connect;
use crate::error::Failure;

/// Sessions that are held ready.
const AHEAD: usize = 8;

/// Files that are longer, in bytes, are not read ahead: they would fill the memory.
const SHORT: u64 = 1 << 20;

/// A session, and what its file holds where that could be read and will do.
pub type Next = Result<(Selected, Option<Vec<u8>>), Failure>;

/// All sessions that are meant, page by page. Only the first page is known when it begins.
#[derive(Debug)]
pub struct Source {
    page: vec::IntoIter<Selected>,
    more: Option<SelectParams>,
    form: ExportFormat,
    client: Option<Client>,
    socket: PathBuf,
    global: Global,
}

impl Source {
    /// Begins with what `params` gave; further pages are asked for at `socket`.
    pub fn new(
        params: SelectParams,
        first: SelectResult<Selected>,
        form: ExportFormat,
        socket: PathBuf,
        global: Global,
    ) -> Self {
        let more = following(params, first.next);
        Self { page: first.sessions.into_iter(), more, form, client: None, socket, global }
    }

    /// Goes ahead on a thread of its own; a few sessions are not worth one.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn ahead(self) -> Result<Box<dyn Iterator<Item = Next>>, Failure> {
        if self.more.is_none() && self.page.len() <= AHEAD {
            return Ok(Box::new(self));
        }
        let (give, take) = sync_channel(AHEAD);
        let run = move || {
            for next in self {
                if give.send(next).is_err() {
                    break;
                }
            }
        };
        let started = thread::Builder::new().name("ahead".into()).spawn(run);
        started.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
        Ok(Box::new(take.into_iter()))
    }

    fn ask(&mut self, params: SelectParams) -> Result<(), Failure> {
        if self.client.is_none() {
            self.client = connect::reach(&self.socket, &self.global)?;
        }
        let client = self.client.as_mut().ok_or_else(|| connect::nobody(&self.socket))?;
        let raw = client.call_raw(<Select as chorus_proto::Method>::NAME, &params, &mut |_| ())?;
        let page: SelectResult<Selected> = read(&raw)?;
        self.more = following(params, page.next);
        self.page = page.sessions.into_iter();
        Ok(())
    }
}

impl Iterator for Source {
    type Item = Next;

    fn next(&mut self) -> Option<Next> {
        loop {
            if let Some(session) = self.page.next() {
                let short = fs::metadata(&session.file_path).is_ok_and(|file| file.len() <= SHORT);
                let bytes = if short { own_bytes(&session, self.form) } else { None };
                return Some(Ok((session, bytes)));
            }
            let more = self.more.take()?;
            if let Err(failure) = self.ask(more) {
                return Some(Err(failure));
            }
        }
    }
}

/// How the page after is asked for, where there is one.
fn following(params: SelectParams, next: Option<u64>) -> Option<SelectParams> {
    let next = next.filter(|next| Some(*next) > params.offset)?;
    Some(SelectParams { offset: Some(next), ..params })
}
