//! The messages of the index for which vectors are made.

use std::collections::HashSet;

use chorus_proto::Role;
use tantivy::index::SegmentId;
use tantivy::{DocAddress, Searcher, TantivyDocument};

use crate::error::SearchError;
use crate::fields::column;
use crate::index::SearchIndex;
use crate::shown_message::ShownMessage;

/// A message, and the key under which it has its vector: the same in every index of the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageToEmbed {
    pub key: u64,
    pub speaker: String,
    pub text: String,
}

/// The messages of one state of the index that have no vector, the newest parts of the index first.
pub struct Unembedded {
    searcher: Searcher,
    /// Those that are not looked at yet, the next one last.
    rest: Vec<DocAddress>,
}

impl std::fmt::Debug for Unembedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unembedded").field("rest", &self.rest.len()).finish_non_exhaustive()
    }
}

/// The parts of the index that were looked through. A part never changes, except that messages are removed.
#[derive(Debug, Clone, Default)]
pub struct SeenSegments(HashSet<SegmentId>);

impl SearchIndex {
    /// Returns the messages of people and agents that have a text, in parts of the last commit that are not in `seen`, except for those whose
    /// key is known. Adds these parts to `seen`. Reads columns of the index, no text.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn unembedded(
        &self,
        seen: &mut SeenSegments,
        is_known: impl Fn(u64) -> bool,
    ) -> Result<Unembedded, SearchError> {
        let searcher = self.shared.reader.searcher();
        let mut rest = Vec::new();
        let mut there = HashSet::new();
        for (ord, segment) in searcher.segment_readers().iter().enumerate() {
            there.insert(segment.segment_id());
            if seen.0.contains(&segment.segment_id()) {
                continue;
            }
            let columns = segment.fast_fields();
            let (keys, roles) = (columns.u64(column::SHORT_KEY)?, columns.u64(column::ROLE)?);
            let is_spoken = |role| role == Role::User as u64 || role == Role::Assistant as u64;
            for doc in segment.doc_ids_alive() {
                let key = keys.first(doc).filter(|_| roles.first(doc).is_some_and(is_spoken));
                if key.is_some_and(|key| !is_known(key)) {
                    rest.push(DocAddress::new(u32::try_from(ord).unwrap_or(u32::MAX), doc));
                }
            }
        }
        seen.0 = there;
        Ok(Unembedded { searcher, rest })
    }

    /// Returns those of the keys that no message of the last commit has.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn gone_keys(&self, mut keys: HashSet<u64>) -> Result<HashSet<u64>, SearchError> {
        let searcher = self.shared.reader.searcher();
        for segment in searcher.segment_readers() {
            let column = segment.fast_fields().u64(column::SHORT_KEY)?;
            for doc in segment.doc_ids_alive() {
                if let Some(key) = column.first(doc) {
                    keys.remove(&key);
                }
            }
        }
        Ok(keys)
    }
}

impl Unembedded {
    /// Number of messages that are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Returns true if none are left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes the next messages, at most `limit`.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn take(&mut self, limit: usize) -> Result<Vec<MessageToEmbed>, SearchError> {
        let start = self.rest.len().saturating_sub(limit);
        let mut taken = Vec::with_capacity(limit);
        for address in self.rest.drain(start..).rev() {
            let document: TantivyDocument = self.searcher.doc(address)?;
            let key = self.searcher.segment_reader(address.segment_ord).fast_fields().u64(column::SHORT_KEY)?;
            let field = self.searcher.schema().get_field("shown")?;
            let ShownMessage { speaker, text, .. } = ShownMessage::read(&document, field)?;
            taken.push(MessageToEmbed { key: key.first(address.doc_id).unwrap_or_default(), speaker, text });
        }
        Ok(taken)
    }
}
