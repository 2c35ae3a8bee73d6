//! Receives imported sessions from a parser on a blocking thread and passes each one on to be saved as soon as it is
//! complete.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use chorus_proto::Message;
use chorus_proto::methods::import::{CommitResult, Skipped};
use chorus_proto::pluralize::pluralize;
use chorus_redact::Redactor;
use chorus_session::import::{ImportSink, ImportedMetadata};
use chorus_session::slug;
use chorus_session::stored_message::Totals;
use chorus_session::summary::ConversationSample;
use chorus_store::session_files::MessageSpool;
use tokio::sync::mpsc;

use super::redact_import::ImportRedactor;

/// The limit on skipped lines that are reported individually.
pub(super) const MAX_REPORTED_SKIPS: usize = 1000;

/// A session that was read completely.
#[derive(Debug)]
pub(super) struct ImportedSession {
    pub about: ImportedMetadata,
    pub body: MessageSpool,
    pub totals: Totals,
    pub digest: ConversationSample,
    /// The slug for a session without a description.
    pub content_slug: String,
    pub first_at: jiff::Timestamp,
}

/// Collects one session at a time and passes it on.
pub(super) struct SessionCollector {
    /// The directory for the spool files of messages.
    dir: PathBuf,
    current: Option<PartialSession>,
    complete_sessions: mpsc::Sender<ImportedSession>,
    progress: Box<dyn FnMut(u64) + Send>,
    pub skipped: Vec<Skipped>,
    pub skipped_total: u64,
    messages: u64,
    redactor: Arc<Redactor>,
    redact: bool,
    /// The number of secrets that were found.
    pub secrets_found: u64,
}

struct PartialSession {
    body: MessageSpool,
    totals: Totals,
    digest: ConversationSample,
    first: Option<(String, jiff::Timestamp)>,
}

impl SessionCollector {
    /// With `redact`, secrets that `redactor` finds are replaced, otherwise only counted.
    pub(super) fn new(
        dir: PathBuf,
        complete_sessions: mpsc::Sender<ImportedSession>,
        progress: Box<dyn FnMut(u64) + Send>,
        (redactor, redact): (Arc<Redactor>, bool),
    ) -> Self {
        let (skipped, skipped_total) = (Vec::new(), 0);
        let (messages, secrets_found) = (0, 0);
        Self {
            dir,
            current: None,
            complete_sessions,
            progress,
            skipped,
            skipped_total,
            messages,
            redactor,
            redact,
            secrets_found,
        }
    }

    /// Returns the counts and warnings of the import, without the sessions.
    #[must_use]
    pub(super) fn into_result(self) -> CommitResult {
        let warning = self.warning();
        let Self { skipped, skipped_total, secrets_found: secrets, .. } = self;
        CommitResult {
            sessions: Vec::new(),
            skipped,
            skipped_total,
            secrets_found: Some(secrets),
            warning,
            known: None,
        }
    }

    /// Returns a warning if more than a tenth of the entries were skipped.
    fn warning(&self) -> Option<String> {
        let (skipped, all) = (self.skipped_total, self.skipped_total + self.messages);
        (skipped > all / 10).then(|| {
            let all = pluralize(all, "entry");
            format!(
                "skipped {skipped} of {all}: parts of the conversation may be missing, or the \
             detected format is wrong"
            )
        })
    }
}

impl ImportSink for SessionCollector {
    fn begin_session(&mut self) -> io::Result<()> {
        let body = MessageSpool::new(&self.dir)?;
        self.current =
            Some(PartialSession { body, totals: Totals::default(), digest: ConversationSample::new(), first: None });
        Ok(())
    }

    fn add_message(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        let Some(current) = &mut self.current else {
            return Err(io::Error::other("a message came before its session"));
        };
        let search = ImportRedactor { redactor: &self.redactor, redact: self.redact };
        let (clean, found) = search.redact_message(message, std::str::from_utf8(json).unwrap_or_default());
        self.secrets_found += found;
        let (message, json) = clean.as_ref().map_or((message, json), |(message, json)| (message, json));
        current.body.append(json)?;
        current.totals.add(message.role, message.char_count());
        self.messages += 1;
        current.digest.push(message);
        if current.first.is_none() {
            current.first = Some((slug::from_content(&message.content), message.timestamp));
        }
        Ok(())
    }

    fn end_session(&mut self, mut about: ImportedMetadata) -> io::Result<()> {
        let Some(PartialSession { body, totals, digest, first }) = self.current.take() else { return Ok(()) };
        let Some((content_slug, first_at)) = first else { return Ok(()) };
        self.secrets_found +=
            ImportRedactor { redactor: &self.redactor, redact: self.redact }.redact_metadata(&mut about);
        let imported = ImportedSession { about, body, totals, digest, content_slug, first_at };
        self.complete_sessions.blocking_send(imported).map_err(|_| io::Error::other("the import was aborted"))
    }

    fn report_skipped(&mut self, line: u64, reason: String) {
        self.skipped_total += 1;
        if self.skipped.len() < MAX_REPORTED_SKIPS {
            self.skipped.push(Skipped { line, reason });
        }
    }

    fn report_progress(&mut self, bytes: u64) {
        (self.progress)(bytes);
    }
}

/// Creates an unnamed file in `dir`, for data that does not fit into memory.
pub(super) fn create_spool(dir: &std::path::Path) -> io::Result<File> {
    tempfile::tempfile_in(dir)
}
