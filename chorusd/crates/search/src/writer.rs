//! Puts sources into the index, and takes them out.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use chorus_proto::Role;
use sha2::{Digest as _, Sha256};
use tantivy::query::{BooleanQuery, Occur, Query, RangeQuery, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{IndexWriter as TantivyWriter, TantivyDocument, Term};
use uuid::Uuid;

use crate::analysis::begin_of;
use crate::error::SearchError;
use crate::fields::column;
use crate::files;
use crate::group_lengths::GroupLengths;
use crate::holdings::{Holding, StoredSource};
use crate::index::{IndexedSource, Shared, describe, documents_with, first_document};
use crate::purge::Purge;
use crate::shown_message::ShownMessage;
use crate::source::{MessageText, Source, SourceId, SourceKind};

/// Bytes of a text that are indexed; what is behind them is not found.
const MAX_INDEXED_BYTES: usize = 256 << 10;

/// Writes to an index. What it has written is found after [`commit`](Self::commit).
pub struct IndexWriter {
    shared: Arc<Shared>,
    writer: TantivyWriter,
    /// Declared after the writer: it goes last.
    note: WritingNote,
    pending: Pending,
    lengths: GroupLengths,
    purge: Purge,
}

/// The changes since the last commit, which searches of the index do not show.
#[derive(Default)]
struct Pending {
    /// `None`: it was removed.
    sources: HashMap<SourceId, Option<StoredSource>>,
    /// Group and number of new messages, by key.
    messages: HashMap<[u8; 16], (u64, u64)>,
    /// Pending sources that hold a group.
    holders: HashMap<u64, HashSet<SourceId>>,
    /// Numbers beyond which the messages of a group were deleted.
    cut: HashMap<u64, u64>,
    /// True if texts are deleted.
    has_deleted: bool,
    /// How many sources there are more, or fewer.
    added_sources: i64,
}

impl std::fmt::Debug for IndexWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IndexWriter")
    }
}

/// The note that the index is written, which is there as long as this value.
struct WritingNote(Arc<Shared>);

impl Drop for WritingNote {
    fn drop(&mut self) {
        // Merges go on after this, into files that are not part of the index before they are complete.
        // If the note stays, the next start checks the files.
        let _ = files::set_writing(&self.0.dir, false);
    }
}

impl IndexWriter {
    pub(crate) fn new(shared: Arc<Shared>, writer: TantivyWriter) -> Self {
        let (pending, lengths) = (Pending::default(), GroupLengths::default());
        let note = WritingNote(shared.clone());
        Self { shared, writer, note, pending, lengths, purge: Purge::default() }
    }

    /// Ends the writer once the merges that it has started have ended. If it is dropped instead, they go on for nothing, and hold the
    /// files that they read. Blocks.
    ///
    /// # Errors
    /// Fails if a merge does.
    pub fn finish(self) -> Result<(), SearchError> {
        let Self { writer, note, .. } = self;
        writer.wait_merging_threads()?;
        drop(note);
        Ok(())
    }

    /// Puts a source with all of its messages, from number 1 on. Returns true if messages that it held before were deleted.
    ///
    /// # Errors
    /// Fails if the index cannot be read or written.
    pub fn put(
        &mut self,
        source: &Source,
        messages: impl IntoIterator<Item = MessageText>,
    ) -> Result<bool, SearchError> {
        let before = self.stored(source.id)?;
        let mut run = Run::default();
        for message in messages {
            self.put_message(source.agent, message, &mut run)?;
        }
        self.replace(source, before, run.holdings)
    }

    /// Puts messages that come after the `held` ones that a source has. Returns false, and does nothing, if it does not have
    /// exactly that many.
    ///
    /// # Errors
    /// Fails if the index cannot be read or written.
    pub fn extend(
        &mut self,
        source: &Source,
        held: u64,
        messages: impl IntoIterator<Item = MessageText>,
    ) -> Result<bool, SearchError> {
        let Some(before) = self.stored(source.id)?.filter(|before| before.messages() == held) else { return Ok(false) };
        // Messages behind the end of a group are added to it, unless another source has gone on there.
        let own = match before.holdings.last() {
            Some(last) if self.length(last.group)? == last.last => Some(last.group),
            _ => None,
        };
        let mut run = Run { number: held, holdings: before.holdings.clone(), own };
        for message in messages {
            self.put_message(source.agent, message, &mut run)?;
        }
        self.replace(source, Some(before), run.holdings)?;
        Ok(true)
    }

    /// Puts what has changed of a source besides its messages. Does nothing if it is not there.
    ///
    /// # Errors
    /// Fails if the index cannot be read or written.
    pub fn put_header(&mut self, source: &Source) -> Result<(), SearchError> {
        let Some(before) = self.stored(source.id)? else { return Ok(()) };
        if before.source == *source {
            return Ok(());
        }
        let holdings = before.holdings.clone();
        self.replace(source, Some(before), holdings).map(drop)
    }

    /// Removes a source, and the messages that no other source holds. Returns true if texts of messages or of a session are deleted.
    ///
    /// # Errors
    /// Fails if the index cannot be read or written.
    pub fn remove(&mut self, id: SourceId) -> Result<bool, SearchError> {
        let Some(before) = self.stored(id)? else { return Ok(false) };
        self.writer.delete_term(Term::from_field_bytes(self.shared.fields.source, id.as_bytes()));
        self.note(id, None);
        self.pending.added_sources -= 1;
        let mut deleted = before.source.kind == SourceKind::Session;
        self.pending.has_deleted |= deleted;
        for holding in before.holdings {
            deleted |= self.let_go(holding, 0)?;
        }
        Ok(deleted)
    }

    /// Returns what there will be of a source after the next commit.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn source(&self, id: SourceId) -> Result<Option<IndexedSource>, SearchError> {
        Ok(self.stored(id)?.map(|stored| describe(&stored)))
    }

    /// Makes what was written visible to searches, and durable.
    ///
    /// # Errors
    /// Fails if the index cannot be written.
    pub fn commit(&mut self) -> Result<(), SearchError> {
        if self.pending.has_deleted {
            // Before, so that a crash in between is noticed.
            files::set_purging(&self.shared.dir, true)?;
        }
        self.writer.commit()?;
        self.shared.reload(self.pending.added_sources)?;
        self.pending = Pending::default();
        Ok(())
    }

    /// Begins to overwrite what was deleted: notes which parts of the index have deleted entries. That it is due outlives a crash
    /// ([`SearchIndex::is_purge_due`](crate::SearchIndex::is_purge_due)).
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn begin_purge(&mut self) -> Result<(), SearchError> {
        self.purge.begin(&self.shared)
    }

    /// Has the parts that [`begin_purge`](Self::begin_purge) noted rewritten without the deleted entries, in the background, and
    /// removes the old files. Returns true once nothing is left; until then, call it again after a while.
    ///
    /// # Errors
    /// Fails if the index cannot be written.
    pub fn purge(&mut self) -> Result<bool, SearchError> {
        self.purge.advance(&self.shared, &mut self.writer)
    }

    /// Puts the next message of a run: finds it, or adds its document.
    fn put_message(&mut self, agent: Uuid, message: MessageText, run: &mut Run) -> Result<(), SearchError> {
        run.number += 1;
        let number = run.number;
        let key = key_of(agent, message.key);
        if let Some((group, _)) = self.find(key)?.filter(|(_, known)| *known == number) {
            let last = run.holdings.last_mut();
            if let Some(last) = last.filter(|last| last.group == group && last.last + 1 == number) {
                last.last = number;
                run.own = None;
                return Ok(());
            }
            let is_new = run.holdings.iter().all(|holding| holding.group != group);
            if is_new && self.first(group)? == Some(number) {
                run.holdings.push(Holding { group, first: number, last: number });
                run.own = None;
                return Ok(());
            }
        }
        let group = match (run.own, run.holdings.last_mut()) {
            (Some(own), Some(last)) if last.group == own => {
                last.last = number;
                own
            }
            _ => {
                let group = fastrand::u64(..);
                run.holdings.push(Holding { group, first: number, last: number });
                run.own = Some(group);
                group
            }
        };
        self.pending.messages.insert(key, (group, number));
        self.writer.add_document(self.document(agent, key, (group, number), message))?;
        Ok(())
    }

    fn document(
        &self,
        agent: Uuid,
        key: [u8; 16],
        (group, number): (u64, u64),
        message: MessageText,
    ) -> TantivyDocument {
        let fields = &self.shared.fields;
        let mut document = TantivyDocument::default();
        document.add_bytes(fields.key, &key);
        document.add_u64(fields.group, group);
        document.add_u64(fields.number, number);
        document.add_u64(fields.agent, agent_number(agent));
        document.add_u64(fields.role, message.role as u64);
        document.add_i64(fields.at, message.at.as_microsecond());
        let text = begin_of(&message.text, MAX_INDEXED_BYTES);
        for words in [&*message.speaker, text]
            .into_iter()
            .chain(message.commands.iter().map(|command| begin_of(command, MAX_INDEXED_BYTES)))
        {
            if !words.is_empty() {
                document.add_text(fields.text, words);
            }
        }
        for tool in &message.tools {
            document.add_text(fields.tool, tool.to_lowercase());
        }
        // The name in a result is that of the call before it, which says more.
        let calls: &[String] = if message.role == Role::ToolResult { &[] } else { &message.tools };
        calls.iter().for_each(|tool| document.add_text(fields.text, tool));
        for origin in &message.origins {
            document.add_text(fields.origin, origin.to_lowercase());
        }
        let shown = ShownMessage::new(message.speaker, text, &message.commands, calls);
        // What says nothing has no vector, and is not looked at for one.
        if !shown.text.trim().is_empty() {
            document.add_u64(fields.short_key, short_key(&key));
        }
        document.add_bytes(fields.shown, &serde_json::to_vec(&shown).unwrap_or_default());
        document
    }

    /// Replaces the document of a source. Returns true if messages that it held before were deleted.
    fn replace(
        &mut self,
        source: &Source,
        before: Option<StoredSource>,
        holdings: Vec<Holding>,
    ) -> Result<bool, SearchError> {
        let fields = self.shared.fields;
        self.writer.delete_term(Term::from_field_bytes(fields.source, source.id.as_bytes()));
        let stored = StoredSource { source: source.clone(), holdings };
        let mut document = TantivyDocument::default();
        document.add_bytes(fields.source, source.id.as_bytes());
        document.add_u64(fields.agent, agent_number(source.agent));
        document.add_i64(fields.at, source.at.as_microsecond());
        document.add_bytes(fields.conversation, source.conversation.unwrap_or(source.agent).as_bytes());
        let groups: HashSet<u64> = stored.holdings.iter().map(|holding| holding.group).collect();
        groups.into_iter().for_each(|group| document.add_u64(fields.held, group));
        let texts = source.texts.iter().chain(&source.tags).map(String::as_str);
        for words in [&*source.title, &source.name].into_iter().chain(texts) {
            document.add_text(fields.title, begin_of(words, MAX_INDEXED_BYTES));
        }
        source.tags.iter().for_each(|tag| document.add_text(fields.tag, tag));
        source.model.iter().for_each(|model| document.add_text(fields.model, model));
        document.add_bytes(fields.header, &serde_json::to_vec(&stored).map_err(|_| SearchError::Entry)?);
        self.writer.add_document(document)?;
        self.note(source.id, Some(stored.clone()));
        self.pending.added_sources += i64::from(before.is_none());
        let mut deleted = false;
        for holding in before.into_iter().flat_map(|before| before.holdings) {
            let now = stored.last_of(holding.group);
            if now < holding.last {
                deleted |= self.let_go(holding, now)?;
            }
        }
        Ok(deleted)
    }

    /// Deletes the messages of a group that no source holds any more, after one let go of those beyond `now`.
    fn let_go(&mut self, holding: Holding, now: u64) -> Result<bool, SearchError> {
        if self.lengths.get(holding.group).is_some_and(|length| length > holding.last) {
            return Ok(false);
        }
        self.lengths.forget(holding.group);
        let mut kept = now;
        self.for_each_holding(holding.group, |other| {
            kept = kept.max(other.last);
            kept < holding.last
        })?;
        if kept >= holding.last {
            return Ok(false);
        }
        self.pending.has_deleted = true;
        let fields = &self.shared.fields;
        let of_group = Term::from_field_u64(fields.group, holding.group);
        if kept < holding.first {
            self.writer.delete_term(of_group);
        } else {
            let of_group: Box<dyn Query> = Box::new(TermQuery::new(of_group, IndexRecordOption::Basic));
            let behind = Bound::Excluded(Term::from_field_u64(fields.number, kept));
            let behind: Box<dyn Query> = Box::new(RangeQuery::new(behind, Bound::Unbounded));
            self.writer
                .delete_query(Box::new(BooleanQuery::new(vec![(Occur::Must, of_group), (Occur::Must, behind)])))?;
        }
        self.pending.messages.retain(|_, (group, number)| *group != holding.group || *number <= kept);
        let cut = self.pending.cut.entry(holding.group).or_insert(kept);
        *cut = kept.min(*cut);
        Ok(true)
    }

    fn note(&mut self, id: SourceId, stored: Option<StoredSource>) {
        for holding in stored.iter().flat_map(|stored| &stored.holdings) {
            self.lengths.extend(holding.group, holding.last);
            self.pending.holders.entry(holding.group).or_default().insert(id);
        }
        self.pending.sources.insert(id, stored);
    }

    /// Returns a source as it will be after the commit.
    fn stored(&self, id: SourceId) -> Result<Option<StoredSource>, SearchError> {
        match self.pending.sources.get(&id) {
            Some(pending) => Ok(pending.clone()),
            None => self.shared.stored_source(id),
        }
    }

    /// Returns group and number of a message as they will be after the commit.
    fn find(&self, key: [u8; 16]) -> Result<Option<(u64, u64)>, SearchError> {
        if let Some(pending) = self.pending.messages.get(&key) {
            return Ok(Some(*pending));
        }
        let searcher = self.shared.reader.searcher();
        let term = Term::from_field_bytes(self.shared.fields.key, &key);
        let Some(address) = first_document(&searcher, &term)? else { return Ok(None) };
        let columns = searcher.segment_reader(address.segment_ord).fast_fields();
        let value = |column: &str| Ok::<_, SearchError>(columns.u64(column)?.first(address.doc_id));
        let (Some(group), Some(number)) = (value(column::GROUP)?, value(column::NUMBER)?) else { return Ok(None) };
        let is_cut = self.pending.cut.get(&group).is_some_and(|kept| number > *kept);
        Ok((!is_cut).then_some((group, number)))
    }

    /// Calls `each` with the holdings that sources will have of a group after the commit, until it returns false.
    fn for_each_holding(&self, group: u64, mut each: impl FnMut(Holding) -> bool) -> Result<(), SearchError> {
        let of_group = |stored: &StoredSource| stored.holdings.iter().find(|holding| holding.group == group).copied();
        for id in self.pending.holders.get(&group).into_iter().flatten() {
            let stored = self.pending.sources.get(id).and_then(Option::as_ref);
            if let Some(holding) = stored.and_then(of_group)
                && !each(holding)
            {
                return Ok(());
            }
        }
        let searcher = self.shared.reader.searcher();
        let term = Term::from_field_u64(self.shared.fields.held, group);
        for (ord, segment) in searcher.segment_readers().iter().enumerate() {
            for doc in documents_with(segment, &term)? {
                let address = tantivy::DocAddress::new(u32::try_from(ord).unwrap_or(u32::MAX), doc);
                let stored = self.shared.read_source(&searcher, address)?;
                if !self.pending.sources.contains_key(&stored.source.id)
                    && let Some(holding) = of_group(&stored)
                    && !each(holding)
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the greatest number of a group; 0 if no source holds it.
    fn length(&mut self, group: u64) -> Result<u64, SearchError> {
        if let Some(known) = self.lengths.get(group) {
            return Ok(known);
        }
        let mut length = 0;
        self.for_each_holding(group, |holding| {
            length = length.max(holding.last);
            true
        })?;
        self.lengths.set(group, length);
        Ok(length)
    }

    /// Returns the first number of a group; `None` if no source holds it.
    fn first(&self, group: u64) -> Result<Option<u64>, SearchError> {
        let mut first = None;
        self.for_each_holding(group, |holding| {
            first = Some(holding.first);
            false
        })?;
        Ok(first)
    }
}

/// The messages of a source that were put so far.
#[derive(Default)]
struct Run {
    /// The number of the last one.
    number: u64,
    holdings: Vec<Holding>,
    /// The group to which new messages are added, if the last holding is of it.
    own: Option<u64>,
}

/// Returns the number by which documents are filtered by their agent.
pub(crate) fn agent_number(agent: Uuid) -> u64 {
    let (first, second) = agent.as_u64_pair();
    first ^ second
}

/// Returns the key under which a message has its vector.
pub(crate) fn short_key(key: &[u8]) -> u64 {
    key.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// A message is indexed once for each agent: the sources of one agent are not searched for another.
fn key_of(agent: Uuid, message: [u8; 16]) -> [u8; 16] {
    let hash = Sha256::new().chain_update(agent).chain_update(message).finalize();
    let mut key = [0; 16];
    key.copy_from_slice(&hash[..16]);
    key
}
