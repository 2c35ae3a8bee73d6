//! Messages in memory: their serialised bytes, with the few properties that are needed often.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use bytes::Bytes;
use chorus_proto::{Message, Role, SourceKind};
use jiff::Timestamp;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::message_skim::skim;
use crate::token_estimate::{MessageSize, tokens_of_bytes};

/// A message in its serialised form: one line of JSON, shared and immutable.
#[derive(Debug, Clone)]
pub struct StoredMessage {
    json: Bytes,
    role: Role,
    finding_kinds: CachedFindingKinds,
    tokens: CachedTokens,
    chars: u64,
}

/// The kinds of findings that the rules of [`crate::summary::collect_findings()`] may find in a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FindingKinds {
    pub files: bool,
    pub decisions: bool,
    pub tasks: bool,
}

/// [`FindingKinds`], computed at most once.
#[derive(Debug, Default)]
struct CachedFindingKinds(AtomicU8);

impl CachedFindingKinds {
    const KNOWN: u8 = 1;
    const FILES: u8 = 2;
    const DECISIONS: u8 = 4;
    const TASKS: u8 = 8;

    fn get(&self) -> Option<FindingKinds> {
        let bits = self.0.load(Ordering::Relaxed);
        let has = |bit: u8| bits & bit != 0;
        let names = FindingKinds { files: has(Self::FILES), decisions: has(Self::DECISIONS), tasks: has(Self::TASKS) };
        has(Self::KNOWN).then_some(names)
    }

    fn set(&self, names: FindingKinds) {
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        let bits =
            bit(names.files, Self::FILES) | bit(names.decisions, Self::DECISIONS) | bit(names.tasks, Self::TASKS);
        self.0.store(bits | Self::KNOWN, Ordering::Relaxed);
    }
}

impl Clone for CachedFindingKinds {
    fn clone(&self) -> Self {
        Self(AtomicU8::new(self.0.load(Ordering::Relaxed)))
    }
}

/// The estimated tokens of a message, computed at most once, and only of the messages that somebody measures. No
/// message has zero tokens, so zero is unknown.
#[derive(Debug, Default)]
struct CachedTokens(AtomicU32);

impl Clone for CachedTokens {
    fn clone(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }
}

/// The fields that are checked when a message is parsed; everything else stays in the bytes.
#[derive(Deserialize)]
struct MessageProbe<'a> {
    #[serde(borrow, rename = "id")]
    _id: Cow<'a, str>,
    role: Role,
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(rename = "timestamp")]
    _timestamp: Timestamp,
    #[serde(borrow, default)]
    tool_calls: Vec<CallProbe<'a>>,
    /// Counted if they have the expected form.
    #[serde(borrow, default)]
    attachments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    author: Option<&'a RawValue>,
    #[serde(borrow, default)]
    source: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AuthorProbe<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct SourceProbe {
    kind: SourceKind,
}

#[derive(Deserialize)]
struct AttachmentProbe<'a> {
    #[serde(borrow, default)]
    media_type: Option<Cow<'a, str>>,
    /// Base64, which needs no escapes in JSON.
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct CallProbe<'a> {
    #[serde(borrow, rename = "id")]
    _id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) params: &'a RawValue,
}

impl StoredMessage {
    /// Serialises `message`.
    pub fn new(message: &Message) -> serde_json::Result<Self> {
        Ok(Self::from_serialised(message, serde_json::to_vec(message)?.into()))
    }

    /// Serialises `messages` into one buffer that they share.
    pub fn from_messages(messages: &[Message]) -> serde_json::Result<Vec<Self>> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(messages.len()));
        for message in messages {
            serde_json::to_writer(&mut bytes, message)?;
            ends.push(bytes.len());
        }
        let bytes = Bytes::from(bytes.into_boxed_slice());
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let parts = starts.zip(&ends).zip(messages);
        let stored =
            |((start, end), of): ((usize, &usize), &Message)| Self::from_serialised(of, bytes.slice(start..*end));
        Ok(parts.map(stored).collect())
    }

    fn from_serialised(message: &Message, json: Bytes) -> Self {
        Self::with_chars(json, message.role, message.char_count())
    }

    fn with_chars(json: Bytes, role: Role, chars: u64) -> Self {
        Self { json, role, finding_kinds: CachedFindingKinds::default(), tokens: CachedTokens::default(), chars }
    }

    /// Parses the bytes of one message, which must be on one line.
    pub fn parse(json: Bytes) -> serde_json::Result<Self> {
        match skim(&json) {
            Some((role, chars)) => Ok(Self::with_chars(json, role, chars)),
            None => Self::parse_whole(json),
        }
    }

    /// Does the same for a message in any form.
    pub(crate) fn parse_whole(json: Bytes) -> serde_json::Result<Self> {
        let probe: MessageProbe<'_> = serde_json::from_slice(&json)?;
        let params: u64 = probe.tool_calls.iter().map(|call| count_chars(call.params.get())).sum();
        let (role, chars) = (probe.role, count_json_chars(probe.content.get())? + params);
        Ok(Self::with_chars(json, role, chars))
    }

    /// Returns the serialised form, without a newline.
    #[must_use]
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the characters of content and tool parameters.
    #[must_use]
    pub fn chars(&self) -> u64 {
        self.chars
    }

    /// Returns the estimated tokens, including those of everything besides the text ([`crate::token_estimate`]).
    /// Computes them the first time, and caches them.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let known = self.tokens.0.load(Ordering::Relaxed);
        if known > 0 {
            return known.into();
        }
        // Parsing cannot fail, because the bytes were parsed or serialised before.
        let tokens = measure_json(&self.json)
            .map_or_else(|_| tokens_of_bytes(self.json.len() as u64), MessageSize::tokens)
            .clamp(1, u32::MAX.into());
        self.tokens.0.store(u32::try_from(tokens).unwrap_or(u32::MAX), Ordering::Relaxed);
        tokens
    }

    /// Returns what it may contain: computes it with `find` the first time, and caches it.
    pub(crate) fn finding_kinds(&self, find: impl FnOnce(&Self) -> FindingKinds) -> FindingKinds {
        self.finding_kinds.get().unwrap_or_else(|| {
            let names = find(self);
            self.finding_kinds.set(names);
            names
        })
    }

    /// Deserialises the message.
    ///
    /// # Errors
    /// Fails only if an optional field has a wrong type; everything else was checked by [`StoredMessage::parse`].
    pub fn to_message(&self) -> serde_json::Result<Message> {
        serde_json::from_slice(&self.json)
    }
}

/// Measures a serialised message.
fn measure_json(json: &[u8]) -> serde_json::Result<MessageSize> {
    let skim: MessageProbe<'_> = serde_json::from_slice(json)?;
    let mut size = MessageSize::of_text(skim.role, &serde_json::from_str::<Cow<'_, str>>(skim.content.get())?);
    skim.tool_calls.iter().for_each(|call| size.add_call(&call.name, call.params.get()));
    let attached = skim.attachments.and_then(|raw| serde_json::from_str::<Vec<AttachmentProbe<'_>>>(raw.get()).ok());
    for attachment in attached.iter().flatten() {
        let encoded = attachment.data.map_or(0, |data| data.get().len().saturating_sub(2));
        size.add_attachment(attachment.media_type.as_deref(), encoded);
    }
    if let Some((author, source)) = skim.author.zip(skim.source)
        && let (Ok(AuthorProbe { name }), Ok(SourceProbe { kind })) =
            (serde_json::from_str(author.get()), serde_json::from_str(source.get()))
    {
        size.add_author(skim.role, Some(kind), &name);
    }
    Ok(size)
}

/// Counts the characters of a JSON string, given with its quotes and escapes.
fn count_json_chars(raw: &str) -> serde_json::Result<u64> {
    // Most contents are long and have only single-character escapes, so they are counted without unescaping them.
    let Some(inner) = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) else {
        return serde_json::from_str::<&str>(raw).map(count_chars);
    };
    let (mut escapes, mut rest) = (0, inner.as_bytes());
    while let Some(at) = memchr::memchr(b'\\', rest) {
        if rest.get(at + 1) == Some(&b'u') {
            return serde_json::from_str::<Cow<'_, str>>(raw).map(|text| count_chars(&text));
        }
        escapes += 1;
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    Ok(count_chars(inner) - escapes)
}

fn count_chars(text: &str) -> u64 {
    text.chars().count() as u64
}

impl Serialize for StoredMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.json).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Whether a message starts with its author's name in the window.
#[must_use]
pub fn has_author_label(role: Role, source: Option<SourceKind>) -> bool {
    role == Role::User && source == Some(SourceKind::Discord)
}

/// Totals of a list of messages, as in journal heads and session headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub messages: u64,
    /// Messages of users.
    pub queries: u64,
    pub chars: u64,
}

impl Totals {
    /// Counts `messages`.
    #[must_use]
    pub fn count(messages: &[StoredMessage]) -> Self {
        let mut totals = Self::default();
        for message in messages {
            totals.add(message.role(), message.chars());
        }
        totals
    }

    /// Counts one more message.
    pub fn add(&mut self, role: Role, chars: u64) {
        self.messages += 1;
        self.queries += u64::from(role == Role::User);
        self.chars += chars;
    }

    /// Adds the totals of another list.
    pub fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        self.queries += other.queries;
        self.chars += other.chars;
    }

    /// Returns the estimated tokens: one per four characters.
    #[must_use]
    pub fn tokens(self) -> u64 {
        self.chars / 4
    }
}

/// Number of a live context in the journal; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextNo(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_and_are_counted() {
        let line = r#"{"id":"m1","role":"assistant","content":"hé","timestamp":"2026-01-02T03:04:05Z","tool_calls":[{"id":"c","name":"view","params":{"n":1e400}}],"later":true}"#;
        let stored = StoredMessage::parse(Bytes::from_static(line.as_bytes())).unwrap();
        assert_eq!(stored.role(), Role::Assistant);
        assert_eq!(stored.chars(), 2 + 11);
        assert_eq!(serde_json::to_string(&stored).unwrap(), line);
    }

    #[test]
    fn escapes_are_one_character_and_what_is_no_string_is_refused() {
        let chars = |content: &str| {
            let line = format!(r#"{{"id":"1","role":"user","timestamp":"2026-01-02T03:04:05Z","content":{content}}}"#);
            StoredMessage::parse(line.into()).map(|stored| stored.chars())
        };
        for text in ["", "a", "\\", "\\\\n", "a\nb\"c\\", "\u{1}é\n", "🎉\\u0041"] {
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(chars(&json).unwrap(), text.chars().count() as u64, "{json}");
        }
        assert_eq!(chars(r#""\ud83c\udf89 \u00e9""#).unwrap(), 3);
        for wrong in ["null", "7", "[\"a\"]", r#""\ud83c""#, r#""\x""#] {
            assert!(chars(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_message_names_is_found_out_once_and_takes_no_room() {
        let line = r#"{"id":"m1","role":"user","content":"","timestamp":"2026-01-02T03:04:05Z"}"#;
        let stored = StoredMessage::parse(Bytes::from_static(line.as_bytes())).unwrap();
        let found = FindingKinds { tasks: true, ..FindingKinds::default() };
        assert_eq!(stored.finding_kinds(|_| found), found);
        assert_eq!(stored.clone().finding_kinds(|_| unreachable!("it is known")), found);
        assert_eq!(size_of::<StoredMessage>(), size_of::<Bytes>() + 16);
    }

    #[test]
    fn an_unknown_role_is_refused() {
        let line = r#"{"id":"m1","role":"robot","content":"","timestamp":"2026-01-02T03:04:05Z"}"#;
        assert!(StoredMessage::parse(Bytes::from_static(line.as_bytes())).is_err());
    }
}
