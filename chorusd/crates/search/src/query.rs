//! Queries and their results.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use chorus_proto::Role;
use jiff::{Timestamp, Zoned};
use uuid::Uuid;

use crate::source::{SourceId, SourceKind};

/// A query. Any text is one: `"a phrase"`, `begin*` and `-without` mean what they do elsewhere, the rest is plain words.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    pub text: String,
    pub filter: Filter,
    /// Number of hits.
    pub limit: usize,
    /// True if hits close to each other in a source are one. A measurement of the order of messages wants each.
    pub merge: bool,
    /// True if hits have the parts of their scores.
    pub explain: bool,
    pub mode: Mode,
    /// The vectors of messages, seen from the query; without them only words count.
    pub meaning: Option<Arc<dyn Meaning>>,
    /// The time, in the time zone of who asks, that words such as "yesterday" are relative to.
    pub now: Zoned,
}

/// The ways of searching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// By words.
    Text,
    /// By meaning.
    Semantic,
    /// By both.
    #[default]
    Hybrid,
}

/// How close messages are to what a query means. Messages have the keys of
/// [`MessageToEmbed`](crate::MessageToEmbed); similarities are at most 1.
pub trait Meaning: std::fmt::Debug + Send + Sync {
    /// Returns the closest messages, about `limit` of them, each with its similarity. Fewer than `limit` are all that there are.
    ///
    /// # Errors
    /// Says why they cannot be compared.
    fn nearest(&self, limit: usize) -> Result<Vec<(u64, f32)>, String>;

    /// Returns the similarity of each of these messages; `None` for those that have no vector.
    ///
    /// # Errors
    /// Says why they cannot be compared.
    fn similarities(&self, keys: &[u64]) -> Result<Vec<Option<f32>>, String>;
}

/// Which messages are searched. `None` and empty mean all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub agents: Option<Vec<Uuid>>,
    /// A conversation of one of the agents; `Some(None)` is `main`.
    pub conversation: Option<Option<Uuid>>,
    /// Conversations whose messages are not found, unless another one holds them, too.
    pub hidden: Vec<Uuid>,
    /// Only messages that one of these sources holds.
    pub only: Option<HashSet<SourceId>>,
    /// Sources whose messages are not found, also if others hold them.
    pub without: Vec<SourceId>,
    /// From then on.
    pub since: Option<Timestamp>,
    /// Before then.
    pub until: Option<Timestamp>,
    pub tag: Option<String>,
    pub role: Option<Role>,
    pub tool: Option<String>,
    pub origin: Option<String>,
    pub model: Option<String>,
}

impl Filter {
    /// Returns true if it asks for something that only sources have.
    pub(crate) fn concerns_sources(&self) -> bool {
        self.conversation.is_some() || self.only.is_some() || self.tag.is_some() || self.model.is_some()
    }

    /// Returns true if it asks for something that only messages have.
    pub(crate) fn concerns_messages(&self) -> bool {
        self.role.is_some() || self.tool.is_some() || self.origin.is_some()
    }
}

/// The result of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchHits {
    /// Best first.
    pub hits: Vec<Hit>,
    /// The query has no word to find, only words to leave out.
    pub only_exclusions: bool,
    /// Why the meaning of messages did not count, though it was asked for.
    pub meaning_failure: Option<String>,
}

/// A message, or a source whose title, summary or tags have the words.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The newest source with the message.
    pub source: SourceId,
    pub kind: SourceKind,
    pub agent: Uuid,
    /// `None` for `main`.
    pub conversation: Option<Uuid>,
    /// The name of the session or conversation.
    pub name: String,
    pub title: String,
    /// The number of the message in the source, from 1; `None` if the source itself was found.
    pub number: Option<u64>,
    /// `None` without a message.
    pub role: Option<Role>,
    /// `None` without a message, or if nobody is named.
    pub speaker: Option<String>,
    pub at: Timestamp,
    pub snippet: Snippet,
    /// Number of other messages next to it that match, too, and are no hits of their own.
    pub nearby: u64,
    pub score: f32,
    /// Name and value of each part of the score, if it is to be explained.
    pub parts: Vec<(&'static str, f32)>,
}

/// A part of a text, on one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snippet {
    pub text: String,
    /// The words in it that were looked for, in bytes.
    pub marks: Vec<Range<usize>>,
}
