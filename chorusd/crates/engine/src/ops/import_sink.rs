//! Receives imported sessions from a parser on a blocking thread and passes each one on to be saved as soon as it is
//! complete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::hex::hex;
use chorus_catalog::ImportedUsage;
use chorus_proto::methods::import::{CommitResult, Skipped};
use chorus_proto::pluralize::pluralize;
use chorus_proto::{Message, Role};
use chorus_redact::Redactor;
use chorus_session::import::{ImportSink, ImportedCall, ImportedMetadata};
use chorus_session::slug;
use chorus_session::stored_message::Totals;
use chorus_session::summary::ConversationSample;
use chorus_store::message_spool::{MessageSpool, SpooledMessages};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::import_usage::UsageBuilder;
use super::redact_import::ImportRedactor;

/// The limit on skipped lines that are reported individually.
pub(super) const MAX_REPORTED_SKIPS: usize = 1000;

/// A session that was read completely, with the secrets in it.
#[derive(Debug)]
pub(super) struct ImportedSession {
    pub about: ImportedMetadata,
    pub body: Arc<SpooledMessages>,
    pub totals: Totals,
    pub digest: ConversationSample,
    /// The slug for a session without a description.
    pub content_slug: String,
    pub first_at: Timestamp,
    /// The time of the latest message.
    pub last_at: Timestamp,
    /// Messages that have secrets, counted from 0, and the number of secrets in each.
    pub secrets: Vec<(u64, u64)>,
    pub opening: Opening,
    /// The model calls of the conversation.
    pub usage: Arc<ImportedUsage>,
}

impl ImportedSession {
    /// Returns the number of secrets in the messages from `from` on.
    pub(super) fn secrets_after(&self, from: u64) -> u64 {
        self.secrets.iter().filter(|(at, _)| *at >= from).map(|(_, count)| count).sum()
    }

    /// Returns the slug for the name of the session.
    pub(super) fn name_slug(&self) -> String {
        let described = self.about.description.as_deref().and_then(slug::from_description);
        described.unwrap_or_else(|| self.content_slug.clone())
    }

    /// Returns a copy without secrets. Blocks.
    pub(super) fn redacted(&self, redactor: &Redactor, dir: &Path) -> io::Result<Self> {
        let search = ImportRedactor { redactor, redact: true };
        let mut copy = SessionBuilder::new(dir)?;
        let mut lines = self.body.lines()?;
        let mut secrets = self.secrets.iter().map(|(at, _)| *at).peekable();
        let mut at = 0;
        while let Some(json) = lines.next()? {
            let message: Message = serde_json::from_slice(json)?;
            let clean = match secrets.next_if_eq(&at) {
                Some(_) => search.redact_message(&message, std::str::from_utf8(json).unwrap_or_default()).0,
                None => None,
            };
            let (message, json) = clean.as_ref().map_or((&message, json), |(message, json)| (message, json));
            copy.push(message, json)?;
            at += 1;
        }
        let mut about = self.about.clone();
        search.redact_metadata(&mut about);
        let copy = copy.finish(about)?.ok_or_else(|| io::Error::other("a session without messages"))?;
        // The conversation is the same, whatever was redacted in it.
        let (secrets, opening, usage) = (self.secrets.clone(), self.opening.clone(), self.usage.clone());
        Ok(Self { secrets, opening, usage, ..copy })
    }
}

/// Identifies a conversation by how it begins, if its program gives it no id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Opening {
    /// Hash of the messages up to the first reply.
    pub with_reply: String,
    /// Hash of the messages up to the first one of a user. It stays the same if the conversation grows.
    pub question: String,
}

/// Computes an [`Opening`].
#[derive(Debug, Default)]
struct OpeningHash {
    hash: Sha256,
    question: Option<String>,
    with_reply: Option<String>,
}

impl OpeningHash {
    fn push(&mut self, message: &Message) {
        if self.with_reply.is_some() {
            return;
        }
        self.hash.update(message.role.as_str());
        self.hash.update([0]);
        self.hash.update(&message.content);
        self.hash.update([0]);
        if message.role == Role::User && self.question.is_none() {
            self.question = Some(hex(&self.hash.clone().finalize()));
        }
        if message.role == Role::Assistant {
            self.with_reply = Some(hex(&self.hash.clone().finalize()));
        }
    }

    fn finish(self) -> Opening {
        let Self { hash, question, with_reply } = self;
        let question = question.or(with_reply.clone()).unwrap_or_else(|| hex(&hash.finalize()));
        Opening { with_reply: with_reply.unwrap_or_else(|| question.clone()), question }
    }
}

/// Collects the messages of one session.
struct SessionBuilder {
    body: MessageSpool,
    totals: Totals,
    digest: ConversationSample,
    first: Option<(String, Timestamp)>,
    last_at: Timestamp,
    secrets: Vec<(u64, u64)>,
    opening: OpeningHash,
    usage: UsageBuilder,
}

impl SessionBuilder {
    /// The messages are in an unnamed file in `dir`.
    fn new(dir: &Path) -> io::Result<Self> {
        Ok(Self {
            body: MessageSpool::new(dir)?,
            totals: Totals::default(),
            digest: ConversationSample::new(),
            first: None,
            last_at: Timestamp::MIN,
            secrets: Vec::new(),
            opening: OpeningHash::default(),
            usage: UsageBuilder::default(),
        })
    }

    fn push(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        self.body.append(json)?;
        self.totals.add(message.role, message.char_count());
        self.digest.push(message);
        self.opening.push(message);
        self.last_at = self.last_at.max(message.timestamp);
        if self.first.is_none() {
            self.first = Some((slug::from_content(&message.content), message.timestamp));
        }
        Ok(())
    }

    /// Returns `None` if there was no message.
    fn finish(self, about: ImportedMetadata) -> io::Result<Option<ImportedSession>> {
        let Self { body, totals, digest, first, last_at, secrets, opening, usage } = self;
        let Some((content_slug, first_at)) = first else { return Ok(None) };
        let (body, opening) = (Arc::new(body.finish()?), opening.finish());
        let usage = Arc::new(usage.finish(about.model.as_deref()));
        Ok(Some(ImportedSession {
            about,
            body,
            totals,
            digest,
            content_slug,
            first_at,
            last_at,
            secrets,
            opening,
            usage,
        }))
    }
}

/// Collects one session at a time and passes it on.
pub(super) struct SessionCollector {
    /// The directory for the spool files of messages.
    dir: PathBuf,
    current: Option<SessionBuilder>,
    complete_sessions: mpsc::Sender<ImportedSession>,
    progress: Box<dyn FnMut(u64) + Send>,
    pub skipped: Vec<Skipped>,
    pub skipped_total: u64,
    /// How many of the skipped lines were read.
    left_out: u64,
    messages: u64,
    redactor: Arc<Redactor>,
}

impl SessionCollector {
    /// Secrets that `redactor` finds are counted.
    pub(super) fn new(
        dir: PathBuf,
        complete_sessions: mpsc::Sender<ImportedSession>,
        progress: Box<dyn FnMut(u64) + Send>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self {
            dir,
            current: None,
            complete_sessions,
            progress,
            skipped: Vec::new(),
            skipped_total: 0,
            left_out: 0,
            messages: 0,
            redactor,
        }
    }

    /// Returns the counts and warnings of the import, without the sessions.
    #[must_use]
    pub(super) fn into_result(self) -> CommitResult {
        let warning = self.warning();
        let Self { skipped, skipped_total, left_out, .. } = self;
        CommitResult {
            sessions: Vec::new(),
            conversations: Vec::new(),
            skipped,
            skipped_total,
            lines_left_out: Some(left_out).filter(|count| *count > 0),
            secrets_found: None,
            warning,
            known: None,
            known_sessions: Vec::new(),
            left_out: None,
        }
    }

    /// Returns a warning if more than a tenth of the entries could not be read.
    fn warning(&self) -> Option<String> {
        let skipped = self.skipped_total - self.left_out;
        let all = skipped + self.messages;
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
        self.current = Some(SessionBuilder::new(&self.dir)?);
        Ok(())
    }

    fn add_message(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        let Some(current) = &mut self.current else {
            return Err(io::Error::other("a message came before its session"));
        };
        let search = ImportRedactor { redactor: &self.redactor, redact: false };
        let secrets = search.count_secrets(std::str::from_utf8(json).unwrap_or_default());
        if secrets > 0 {
            current.secrets.push((current.totals.messages, secrets));
        }
        self.messages += 1;
        current.push(message, json)
    }

    fn add_call(&mut self, call: ImportedCall) {
        if let Some(current) = &mut self.current {
            current.usage.add(&call);
        }
    }

    fn end_session(&mut self, about: ImportedMetadata) -> io::Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let Some(imported) = current.finish(about)? else { return Ok(()) };
        self.complete_sessions.blocking_send(imported).map_err(|_| io::Error::other("the import was aborted"))
    }

    fn report_skipped(&mut self, line: u64, reason: String) {
        self.add_skipped(Skipped { line, reason, left_out: false });
    }

    fn report_left_out(&mut self, line: u64, reason: String) {
        self.left_out += 1;
        self.add_skipped(Skipped { line, reason, left_out: true });
    }

    fn report_progress(&mut self, bytes: u64) {
        (self.progress)(bytes);
    }
}

impl SessionCollector {
    fn add_skipped(&mut self, skipped: Skipped) {
        self.skipped_total += 1;
        if self.skipped.len() < MAX_REPORTED_SKIPS {
            self.skipped.push(skipped);
        }
    }
}

/// Creates an unnamed file in `dir`, for data that does not fit into memory.
pub(crate) fn create_spool(dir: &Path) -> io::Result<File> {
    tempfile::tempfile_in(dir)
}
