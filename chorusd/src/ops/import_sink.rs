//! Imported sessions on their way to the disk: read on a blocking thread, saved as each is complete.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_proto::Message;
use chorus_proto::methods::import::{CommitResult, Skipped};
use tokio::sync::mpsc;

use super::secrets::Search;
use crate::message::Totals;
use crate::redact::Redactor;
use crate::session::import::{About, Sink};
use crate::session::slug;
use crate::store::session_files::Body;
use crate::summary::Digest;

/// Most skipped lines that are told one by one.
pub const MAX_SKIPPED: usize = 1000;

/// A session that is complete.
#[derive(Debug)]
pub struct Imported {
    pub about: About,
    pub body: Body,
    pub totals: Totals,
    pub digest: Digest,
    /// Slug where there is no description.
    pub content_slug: String,
    pub first_at: jiff::Timestamp,
}

/// Collects one session at a time and hands it on.
pub struct Collector {
    /// Where bodies wait.
    dir: PathBuf,
    current: Option<Current>,
    done: mpsc::Sender<Imported>,
    progress: Box<dyn FnMut(u64) + Send>,
    pub skipped: Vec<Skipped>,
    pub skipped_total: u64,
    messages: u64,
    redactor: Arc<Redactor>,
    redact: bool,
    /// Secrets that were found.
    pub secrets: u64,
}

struct Current {
    body: Body,
    totals: Totals,
    digest: Digest,
    first: Option<(String, jiff::Timestamp)>,
}

impl Collector {
    /// `redact`: secrets that `redactor` finds are replaced, not only counted.
    pub fn new(
        dir: PathBuf,
        done: mpsc::Sender<Imported>,
        progress: Box<dyn FnMut(u64) + Send>,
        (redactor, redact): (Arc<Redactor>, bool),
    ) -> Self {
        let (skipped, skipped_total) = (Vec::new(), 0);
        let (messages, secrets) = (0, 0);
        Self { dir, current: None, done, progress, skipped, skipped_total, messages, redactor, redact, secrets }
    }

    /// What was found besides the sessions.
    #[must_use]
    pub fn result(self) -> CommitResult {
        let warning = self.warning();
        let Self { skipped, skipped_total, secrets, .. } = self;
        CommitResult { sessions: Vec::new(), skipped, skipped_total, secrets_found: Some(secrets), warning }
    }

    /// What is to be said loudly of the file: more than a tenth of what it has was skipped.
    fn warning(&self) -> Option<String> {
        let (skipped, all) = (self.skipped_total, self.skipped_total + self.messages);
        (skipped > all / 10).then(|| {
            format!("{skipped} of {all} entries were skipped: much of the conversation may be missing, or the format was guessed wrong")
        })
    }
}

impl Sink for Collector {
    fn begin(&mut self) -> io::Result<()> {
        let body = Body::new(&self.dir)?;
        self.current = Some(Current { body, totals: Totals::default(), digest: Digest::new(), first: None });
        Ok(())
    }

    fn message(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        let Some(current) = &mut self.current else { return Err(io::Error::other("a message before its session")) };
        let search = Search { redactor: &self.redactor, redact: self.redact };
        let (clean, found) = search.message(message, std::str::from_utf8(json).unwrap_or_default());
        self.secrets += found;
        let (message, json) = clean.as_ref().map_or((message, json), |(message, json)| (message, json));
        current.body.add(json)?;
        current.totals.add(message.role, message.chars());
        self.messages += 1;
        current.digest.push(message);
        if current.first.is_none() {
            current.first = Some((slug::of_content(&message.content), message.timestamp));
        }
        Ok(())
    }

    fn end(&mut self, mut about: About) -> io::Result<()> {
        let Some(Current { body, totals, digest, first }) = self.current.take() else { return Ok(()) };
        let Some((content_slug, first_at)) = first else { return Ok(()) };
        self.secrets += Search { redactor: &self.redactor, redact: self.redact }.about(&mut about);
        let imported = Imported { about, body, totals, digest, content_slug, first_at };
        self.done.blocking_send(imported).map_err(|_| io::Error::other("the import was given up"))
    }

    fn skip(&mut self, line: u64, reason: String) {
        self.skipped_total += 1;
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(Skipped { line, reason });
        }
    }

    fn progress(&mut self, bytes: u64) {
        (self.progress)(bytes);
    }
}

/// A file without a name in `dir`, for what does not fit into memory.
pub fn spool(dir: &std::path::Path) -> io::Result<File> {
    tempfile::tempfile_in(dir)
}
