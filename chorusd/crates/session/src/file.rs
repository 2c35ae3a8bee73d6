//! The session file: one JSON object. In its native layout, which this module writes, each field of the header and each
//! message in `messages` has a line of its own.

use std::io::{self, Write};

use bytes::Bytes;
use chorus_base::parallel::run_parallel;
use chorus_proto::session::SESSION_SCHEMA;
use chorus_proto::{ConversationRef, SessionHeader, SessionSource, SummarySource, TokenPair, Trigger, WorkingSet};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::hash::MessageHash;
pub use super::header_lines::write_header_over;
use crate::message_defaults::MessageDefaults;
use crate::stored_message::{StoredMessage, Totals};

/// Writes everything before the first message.
pub fn write_header(out: &mut impl Write, header: &SessionHeader) -> io::Result<()> {
    out.write_all(b"{\n")?;
    let mut field = |name: &str, value: &dyn erased::Json| -> io::Result<()> {
        write!(out, "  \"{name}\": ")?;
        value.write(out)?;
        out.write_all(b",\n")
    };
    field("schema", &header.schema)?;
    field("id", &header.id)?;
    field("session_id", &header.session_id)?;
    field("agent_id", &header.agent_id)?;
    field("agent_name", &header.agent_name)?;
    if header.conversation.is_some() {
        field("conversation", &header.conversation)?;
    }
    if header.source.is_some() {
        field("source", &header.source)?;
    }
    field("description", &header.description)?;
    field("summary", &header.summary)?;
    field("summary_source", &header.summary_source)?;
    field("saved_at", &header.saved_at)?;
    field("started_at", &header.started_at)?;
    field("trigger", &header.trigger)?;
    field("model", &header.model)?;
    field("message_count", &header.message_count)?;
    field("query_count", &header.query_count)?;
    field("token_estimate", &header.token_estimate)?;
    field("restoration_tokens", &header.restoration_tokens)?;
    field("parent_id", &header.parent_id)?;
    if header.workspace_commit.is_some() {
        field("workspace_commit", &header.workspace_commit)?;
    }
    field("tags", &header.tags)?;
    field("working_set", &header.working_set)?;
    out.write_all(b"  \"messages\": [")
}

/// Writes one message. `first` is true for the first message of the file.
pub fn write_message(out: &mut impl Write, json: &[u8], first: bool) -> io::Result<()> {
    out.write_all(if first { FIRST_MESSAGE_PREFIX } else { NEXT_MESSAGE_PREFIX })?;
    out.write_all(json)
}

const FIRST_MESSAGE_PREFIX: &[u8] = b"\n    ";
const NEXT_MESSAGE_PREFIX: &[u8] = b",\n    ";

/// Writes everything after the last message.
pub fn write_end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(FOOTER)
}

/// Writes the session file `before` with the header of `file`. In a file of the native layout only the header lines
/// that differ change, so that fields of later versions are preserved. A file of another layout is written anew.
pub fn write_with_header(out: &mut impl Write, before: &[u8], file: &SessionFile) -> io::Result<()> {
    let open = memchr::memmem::find(before, MESSAGES_OPENING)
        .filter(|_| parse_native(&Bytes::copy_from_slice(before)).is_some());
    let Some(open) = open else {
        write_header(out, &file.header)?;
        for (index, message) in file.messages.iter().enumerate() {
            write_message(out, message.json(), index == 0)?;
        }
        return write_end(out);
    };
    write_header_over(out, &before[..open], &file.header)?;
    out.write_all(&before[open + 1..])
}

/// The line after the header of the native layout.
pub const MESSAGES_LINE: &[u8] = b"  \"messages\": [\n";

/// Separates the header from the first message.
pub(super) const MESSAGES_OPENING: &[u8] = b"\n  \"messages\": [\n";
/// The end of the native layout.
pub const FOOTER: &[u8] = b"\n  ]\n}\n";

/// Erases the type of a value that serde can write, so that one closure writes fields of every type.
mod erased {
    use std::io;

    pub(super) trait Json {
        fn write(&self, out: &mut dyn io::Write) -> io::Result<()>;
    }

    impl<T: super::Serialize> Json for T {
        fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
            serde_json::to_writer(out, self).map_err(io::Error::from)
        }
    }
}

/// A parsed session file.
#[derive(Debug, Clone)]
pub struct SessionFile {
    pub header: SessionHeader,
    pub messages: Vec<StoredMessage>,
    /// [`MessageHash`] of the messages as stored in the file.
    pub sha256: String,
}

/// Reason why a file is not a valid session. The text completes a sentence that begins with "the file".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("is not valid JSON: {0}")]
    Json(String),
    #[error("is compressed, and damaged: {0}")]
    Compression(String),
    #[error("has schema {0}, which this version does not support")]
    NewerSchema(u64),
    #[error("has an invalid message (number {number}): {reason}")]
    Message { number: u64, reason: String },
    #[error("should have {said} messages, but has {found}")]
    Count { said: u64, found: u64 },
}

impl FormatError {
    /// Returns why a compressed file is damaged, if `error` says so: then it was read, but has no valid text.
    #[must_use]
    pub fn of_damage(error: &io::Error) -> Option<Self> {
        (error.kind() == io::ErrorKind::InvalidData).then(|| Self::Compression(error.to_string()))
    }
}

/// Fields of both schemas: schema 1 has `session_id` and `timestamp` in place of `id` and `saved_at`.
#[derive(Deserialize)]
struct AnySchema<'a> {
    #[serde(default)]
    schema: Option<u64>,
    #[serde(default)]
    id: Option<Uuid>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    agent_id: Option<Uuid>,
    #[serde(default)]
    agent_name: Option<String>,
    #[serde(default)]
    conversation: Option<ConversationRef>,
    #[serde(default)]
    source: Option<SessionSource>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    summary_source: Option<SummarySource>,
    #[serde(default, alias = "timestamp")]
    saved_at: Option<Timestamp>,
    #[serde(default)]
    started_at: Option<Timestamp>,
    #[serde(default)]
    trigger: Option<Trigger>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    message_count: Option<u64>,
    #[serde(default)]
    restoration_tokens: TokenPair,
    #[serde(default)]
    parent_id: Option<Uuid>,
    #[serde(default)]
    workspace_commit: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    working_set: WorkingSet,
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
}

/// Parses a session file of schema 1 or 2. Messages that are on one line are slices of `bytes`, not copies.
pub fn parse(bytes: &Bytes) -> Result<SessionFile, FormatError> {
    match parse_native(bytes) {
        Some(file) => Ok(file),
        None => parse_any_layout(bytes),
    }
}

/// A parsed session file, whose messages were hashed only if the file is not in the native layout; see
/// [`read_unhashed`](crate::block_reader::read_unhashed).
#[derive(Debug)]
pub struct UnhashedSessionFile {
    pub header: SessionHeader,
    pub messages: Vec<StoredMessage>,
    pub sha256: Option<String>,
}

/// Fast path for the native layout, which [`write_header`], [`write_message`] and [`write_end`] produce. Returns `None`
/// for any other layout and for any error; [`parse_any_layout`] handles both.
fn parse_native(bytes: &Bytes) -> Option<SessionFile> {
    let native = NativeLayout::find(bytes)?;
    let (hash, messages) = run_parallel(
        bytes.len(),
        || MessageHash::from_messages(native.lines.iter().copied()),
        || native.parse_messages(bytes),
    );
    let (header, messages) = native.parse(bytes, messages?)?;
    Some(SessionFile { header, messages, sha256: hash.finish() })
}

/// The parts of a file in the native layout.
struct NativeLayout<'a> {
    /// Length of the header, without the last newline.
    head_bytes: usize,
    /// The messages, without indentation and commas.
    lines: Vec<&'a [u8]>,
}

impl<'a> NativeLayout<'a> {
    fn find(bytes: &'a [u8]) -> Option<Self> {
        let open = memchr::memmem::find(bytes, MESSAGES_OPENING)?;
        let body_start = open + MESSAGES_OPENING.len();
        let body_end = bytes.len().checked_sub(FOOTER.len()).filter(|end| *end >= body_start)?;
        if &bytes[body_end..] != FOOTER {
            return None;
        }
        Some(Self { head_bytes: open, lines: split_message_lines(bytes, body_start, body_end)? })
    }

    fn parse_messages(&self, bytes: &Bytes) -> Option<Vec<StoredMessage>> {
        self.lines.iter().map(|line| StoredMessage::parse(bytes.slice_ref(line)).ok()).collect()
    }

    /// Parses the header, and returns it with the messages that belong to it.
    fn parse(&self, bytes: &[u8], messages: Vec<StoredMessage>) -> Option<(SessionHeader, Vec<StoredMessage>)> {
        let mut head = bytes[..self.head_bytes].to_vec();
        head.push(b'\n');
        Some((parse_native_header(head, Totals::count(&messages))?, messages))
    }
}

/// Parses the header of a file in the native layout. `head` is everything before the line of `messages`; `totals` are
/// the counts over its messages.
pub(super) fn parse_native_header(mut head: Vec<u8>, totals: Totals) -> Option<SessionHeader> {
    // Completes the object with an empty list.
    head.extend_from_slice(b"\"messages\":[]}");
    let any: AnySchema<'_> = serde_json::from_slice(&head).ok()?;
    let ours = any.schema == Some(u64::from(SESSION_SCHEMA));
    ours.then(|| build_header(any, totals).ok())?
}

/// Parses everything before the line of `messages` of a file in the native layout, with the counts that it states.
#[must_use]
pub fn parse_native_header_only(mut head: Vec<u8>) -> Option<SessionHeader> {
    head.push(b'}');
    // Replaces the comma after the last field.
    let comma = head.iter().rposition(|byte| *byte == b',')?;
    head[comma] = b' ';
    let header: SessionHeader = serde_json::from_slice(&head).ok()?;
    (header.schema == SESSION_SCHEMA).then_some(header)
}

/// Splits the range `from..to` into messages, without indentation and commas.
fn split_message_lines(bytes: &[u8], from: usize, to: usize) -> Option<Vec<&[u8]>> {
    let mut lines = Vec::new();
    let mut at = from;
    while at < to {
        let end = memchr::memchr(b'\n', &bytes[at..to]).map_or(to, |n| at + n);
        let mut line = bytes[at..end].strip_prefix(b"    ")?;
        if end < to {
            line = line.strip_suffix(b",")?;
        }
        lines.push(line);
        at = end + 1;
    }
    Some(lines)
}

fn parse_any_layout(bytes: &Bytes) -> Result<SessionFile, FormatError> {
    let mut messages = Vec::new();
    let FileMetadata { header, sha256, .. } = scan_any_layout(bytes, |_, message| messages.push(message))?;
    Ok(SessionFile { header, messages, sha256 })
}

/// The result of [`scan_any_layout`], without the messages.
pub(super) struct FileMetadata {
    pub header: SessionHeader,
    pub sha256: String,
    pub defaults: MessageDefaults,
    /// Offset of the end of the last message.
    pub end: usize,
}

/// Parses a file in any layout. Calls `take` with the byte offset and the value of each message.
pub(super) fn scan_any_layout(
    bytes: &Bytes,
    mut take: impl FnMut(usize, StoredMessage),
) -> Result<FileMetadata, FormatError> {
    let any: AnySchema<'_> = serde_json::from_slice(bytes).map_err(|e| FormatError::Json(e.to_string()))?;
    if let Some(schema) = any.schema.filter(|schema| *schema > u64::from(SESSION_SCHEMA)) {
        return Err(FormatError::NewerSchema(schema));
    }
    let old = any.schema.is_none_or(|schema| schema < u64::from(SESSION_SCHEMA));
    let filling = MessageDefaults(old.then(|| any.saved_at.unwrap_or_default()));
    let (mut totals, mut hash, mut end) = (Totals::default(), MessageHash::default(), 0);
    for (index, raw) in any.messages.iter().enumerate() {
        let text = bytes.slice_ref(raw.get().as_bytes());
        let start = text.as_ptr() as usize - bytes.as_ptr() as usize;
        end = start + text.len();
        let message = filling.parse_message(text, index as u64)?;
        hash.add(message.json());
        totals.add(message.role(), message.chars());
        take(start, message);
    }
    Ok(FileMetadata { header: build_header(any, totals)?, sha256: hash.finish(), defaults: filling, end })
}

fn build_header(any: AnySchema<'_>, totals: Totals) -> Result<SessionHeader, FormatError> {
    if let Some(said) = any.message_count.filter(|said| *said != totals.messages) {
        return Err(FormatError::Count { said, found: totals.messages });
    }
    let missing = |field: &str| FormatError::Json(format!("missing field `{field}`"));
    let session_id = any.session_id.or_else(|| any.id.map(|id| id.to_string())).ok_or_else(|| missing("session_id"))?;
    let saved_at = any.saved_at.ok_or_else(|| missing("saved_at"))?;
    Ok(SessionHeader {
        schema: SESSION_SCHEMA,
        id: any.id.unwrap_or_else(|| derived_id(&session_id)),
        session_id,
        agent_id: any.agent_id.unwrap_or_default(),
        agent_name: any.agent_name.unwrap_or_default(),
        conversation: any.conversation,
        source: any.source,
        description: any.description,
        summary_source: any.summary_source.unwrap_or(match any.summary {
            Some(_) => SummarySource::Given,
            None => SummarySource::None,
        }),
        summary: any.summary,
        saved_at,
        started_at: any.started_at.unwrap_or(saved_at),
        trigger: any.trigger.unwrap_or(Trigger::ManualSave),
        model: any.model,
        message_count: totals.messages,
        query_count: totals.queries,
        token_estimate: totals.tokens(),
        restoration_tokens: any.restoration_tokens,
        parent_id: any.parent_id,
        workspace_commit: any.workspace_commit,
        tags: any.tags,
        working_set: any.working_set,
    })
}

/// Derives the id of a session that has none: a UUIDv8 from the SHA-256 of its name, so that a name always gets the
/// same id.
#[must_use]
pub fn derived_id(name: &str) -> Uuid {
    let hash = Sha256::digest(name.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Uuid::new_v8(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(count: u64) -> SessionHeader {
        SessionHeader {
            schema: SESSION_SCHEMA,
            id: Uuid::from_u128(7),
            session_id: "2026-02-12_x".into(),
            agent_id: Uuid::from_u128(8),
            agent_name: "a".into(),
            conversation: None,
            source: None,
            description: Some("line\nbreak \"messages\": [".into()),
            summary: None,
            summary_source: SummarySource::None,
            saved_at: "2026-02-12T10:00:00Z".parse().unwrap(),
            started_at: "2026-02-12T09:00:00Z".parse().unwrap(),
            trigger: Trigger::ManualSave,
            model: None,
            message_count: count,
            query_count: count,
            token_estimate: 0,
            restoration_tokens: TokenPair::default(),
            parent_id: None,
            workspace_commit: None,
            tags: vec!["t".into()],
            working_set: WorkingSet::default(),
        }
    }

    fn written(lines: &[&str]) -> (Bytes, String) {
        let mut out = Vec::new();
        let mut hash = MessageHash::default();
        write_header(&mut out, &header(lines.len() as u64)).unwrap();
        for (index, line) in lines.iter().enumerate() {
            write_message(&mut out, line.as_bytes(), index == 0).unwrap();
            hash.add(line.as_bytes());
        }
        write_end(&mut out).unwrap();
        (out.into(), hash.finish())
    }

    const ONE: &str = r#"{"id":"1","role":"user","content":"a","timestamp":"2026-02-12T09:00:00Z","later":1.50}"#;
    const TWO: &str = r#"{"id":"2","role":"assistant","content":"b","timestamp":"2026-02-12T09:00:00Z"}"#;

    #[test]
    fn what_is_written_is_read_back_both_ways() {
        for lines in [&[][..], &[ONE][..], &[ONE, TWO][..]] {
            let (bytes, sha256) = written(lines);
            let quick = parse_any_layout(&bytes).unwrap();
            let file = parse_native(&bytes).or((lines.is_empty()).then(|| quick.clone())).unwrap();
            assert_eq!(file.sha256, sha256);
            assert_eq!(quick.sha256, sha256);
            assert_eq!(file.header.description, header(0).description);
            let read: Vec<&[u8]> = file.messages.iter().map(|m| &m.json()[..]).collect();
            assert_eq!(read, lines.iter().map(|l| l.as_bytes()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_layout_is_one_field_and_one_message_a_line() {
        let (bytes, _) = written(&[ONE, TWO]);
        let text = std::str::from_utf8(&bytes).unwrap();
        assert_eq!(text.lines().count(), 1 + 19 + 1 + 2 + 2);
        assert!(text.lines().any(|line| line == format!("    {ONE},")));
    }

    #[test]
    fn a_reformatted_file_is_read() {
        let (bytes, _) = written(&[ONE, TWO]);
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let pretty = Bytes::from(serde_json::to_vec_pretty(&value).unwrap());
        let file = parse(&pretty).unwrap();
        assert_eq!(file.messages.len(), 2);
        assert!(!file.messages[0].json().contains(&b'\n'));
    }

    #[test]
    fn schema_1_is_read() {
        let old =
            br#"{"session_id":"2026-02-12_auth","timestamp":"2026-02-12T14:30:00Z","description":"d","summary":"s",
            "message_count":2,"token_estimate":3,"messages":[{"role":"user","content":"x"},
            {"role":"assistant","content":"", "tool_calls":[{"id":"c","name":"view","params":{}}]}]}"#;
        let file = parse(&Bytes::from_static(old)).unwrap();
        assert_eq!(file.header.session_id, "2026-02-12_auth");
        assert_eq!(file.header.saved_at, "2026-02-12T14:30:00Z".parse().unwrap());
        assert_eq!(file.header.id, derived_id("2026-02-12_auth"));
        assert_eq!(file.messages[1].to_message().unwrap().id, "2");
        assert_eq!(file.header.summary_source, SummarySource::Given);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let (good, _) = written(&[ONE, TWO]);
        let text = std::str::from_utf8(&good).unwrap();
        let said = |text: String| parse(&Bytes::from(text)).unwrap_err().to_string();
        assert!(said(String::new()).contains("not valid JSON"));
        assert!(said(text[..text.len() / 2].to_owned()).contains("not valid JSON"));
        assert!(said(text.replace("\"message_count\": 2", "\"message_count\": 3")).contains("should have 3"));
        assert!(said(text.replace("assistant", "robot")).contains("number 2"));
        assert!(said(text.replace("\"schema\": 2", "\"schema\": 3")).contains("schema 3"));
        assert!(said("[]".into()).contains("not valid JSON"));
    }
}
