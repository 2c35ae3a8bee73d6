//! An open index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::sync::Mutex;
use tantivy::collector::Count;
use tantivy::query::ExistsQuery;
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{
    DocAddress, Index, IndexReader, IndexWriter as TantivyWriter, ReloadPolicy, Searcher, TantivyDocument, Term,
};

use crate::analysis;
use crate::columns::OpenColumns;
use crate::error::SearchError;
use crate::fields::Fields;
use crate::files::{self, Opened};
use crate::holdings::StoredSource;
use crate::options::IndexOptions;
use crate::source::SourceId;
use crate::writer::IndexWriter;

/// Blocks of the document store that each segment keeps in memory.
const STORE_CACHE_BLOCKS: usize = 2;

/// The index of a home. Searches see its last commit.
pub struct SearchIndex {
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SearchIndex")
    }
}

/// The parts that the index and its writer share.
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) index: Index,
    pub(crate) reader: IndexReader,
    pub(crate) fields: Fields,
    pub(crate) options: IndexOptions,
    pub(crate) analyzer: TextAnalyzer,
    pub(crate) prefix_analyzer: TextAnalyzer,
    pub(crate) columns: OpenColumns,
    /// Numbers of documents in the last commit. To count one kind reads a column, so the writer keeps them from then on.
    counts: Mutex<Counts>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    messages: u64,
    sources: u64,
}

/// A source as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedSource {
    pub id: SourceId,
    /// As it was put.
    pub stamp: String,
    /// As it was put.
    pub header_stamp: String,
    /// Number of its messages.
    pub messages: u64,
}

impl SearchIndex {
    /// Opens the index in the directory `dir`. An index that is missing, damaged, of another version or made with other options is
    /// removed and created again, and then holds nothing. Blocks.
    ///
    /// # Errors
    /// Fails if a new index cannot be written.
    pub fn open(dir: &Path, options: IndexOptions) -> Result<(Self, Opened), SearchError> {
        let (index, fields, opened) = files::open(dir, options)?;
        let shared = Shared::new(dir, index, fields, options).and_then(|shared| Ok((shared.count()?, shared).1));
        let (shared, opened) = match shared {
            Ok(shared) => (shared, opened),
            Err(error) if opened == Opened::Existing => {
                let (index, fields, opened) = files::create(dir, options, error.to_string())?;
                (Shared::new(dir, index, fields, options)?, opened)
            }
            Err(error) => return Err(error),
        };
        Ok((Self { shared: Arc::new(shared) }, opened))
    }

    /// The same as [`open`](Self::open), but what is there is removed for the reason `why`.
    ///
    /// # Errors
    /// Fails if a new index cannot be written.
    pub fn create(dir: &Path, options: IndexOptions, why: String) -> Result<(Self, Opened), SearchError> {
        let (index, fields, opened) = files::create(dir, options, why)?;
        Ok((Self { shared: Arc::new(Shared::new(dir, index, fields, options)?) }, opened))
    }

    /// Opens the index again, while nobody writes to it: the last writer was [finished](IndexWriter::finish). The pages of its files that work on it has mapped leave memory when this one
    /// is dropped. Those of the new one are mapped when they are needed, mostly from the system's cache.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub fn reopen(&self) -> Result<Self, SearchError> {
        let Shared { dir, fields, options, .. } = &*self.shared;
        let shared = Shared::new(dir, files::open_again(dir, *options)?, *fields, *options)?;
        *shared.counts.lock() = *self.shared.counts.lock();
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the files that are not as they were written. Reads all of them.
    ///
    /// # Errors
    /// Fails if one cannot be read.
    pub fn damaged_files(&self) -> Result<Vec<PathBuf>, SearchError> {
        Ok(self.shared.index.validate_checksum()?.into_iter().collect())
    }

    /// Returns true if deleted entries may still be in the files, because a purge was cut off.
    #[must_use]
    pub fn is_purge_due(&self) -> bool {
        files::is_purging(&self.shared.dir)
    }

    /// Returns a writer, of which there may be one at a time, with so much memory for documents that are not written yet: at
    /// least 15 MB.
    ///
    /// # Errors
    /// Fails if there is another writer, or if the directory cannot be written.
    pub fn writer(&self, memory_bytes: usize) -> Result<IndexWriter, SearchError> {
        let writer: TantivyWriter = self.shared.index.writer_with_num_threads(1, memory_bytes)?;
        files::set_writing(&self.shared.dir, true)?;
        Ok(IndexWriter::new(self.shared.clone(), writer))
    }

    /// Returns what the last commit has of a source.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn source(&self, id: SourceId) -> Result<Option<IndexedSource>, SearchError> {
        Ok(self.shared.stored_source(id)?.map(|stored| describe(&stored)))
    }

    /// Returns all sources of the last commit.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn sources(&self) -> Result<Vec<IndexedSource>, SearchError> {
        let searcher = self.shared.reader.searcher();
        let mut sources = Vec::new();
        for (ord, segment) in searcher.segment_readers().iter().enumerate() {
            let ids = segment.inverted_index(self.shared.fields.source)?;
            let mut terms = ids.terms().stream().map_err(tantivy::TantivyError::from)?;
            while terms.advance() {
                let info = terms.value();
                let mut postings = ids
                    .read_postings_from_terminfo(info, IndexRecordOption::Basic)
                    .map_err(tantivy::TantivyError::from)?;
                use tantivy::DocSet as _;
                while postings.doc() != tantivy::TERMINATED {
                    if !segment.is_deleted(postings.doc()) {
                        let address = DocAddress::new(u32::try_from(ord).unwrap_or(u32::MAX), postings.doc());
                        sources.push(describe(&self.shared.read_source(&searcher, address)?));
                    }
                    postings.advance();
                }
            }
        }
        Ok(sources)
    }

    /// Returns the number of indexed messages.
    #[must_use]
    pub fn message_count(&self) -> u64 {
        self.shared.counts.lock().messages
    }

    /// Returns the number of indexed sources.
    #[must_use]
    pub fn source_count(&self) -> u64 {
        self.shared.counts.lock().sources
    }
}

pub(crate) fn describe(stored: &StoredSource) -> IndexedSource {
    IndexedSource {
        id: stored.source.id,
        stamp: stored.source.stamp.clone(),
        header_stamp: stored.source.header_stamp.clone(),
        messages: stored.messages(),
    }
}

impl Shared {
    fn new(dir: &Path, index: Index, fields: Fields, options: IndexOptions) -> Result<Self, SearchError> {
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(STORE_CACHE_BLOCKS)
            .try_into()?;
        Ok(Self {
            dir: dir.to_owned(),
            index,
            reader,
            fields,
            options,
            analyzer: analysis::analyzer(options),
            prefix_analyzer: analysis::prefix_analyzer(),
            columns: OpenColumns::default(),
            counts: Mutex::default(),
        })
    }

    /// Makes searches see the last commit, after which there are so many sources more, or fewer.
    pub(crate) fn reload(&self, added_sources: i64) -> Result<(), SearchError> {
        self.reader.reload()?;
        let searcher = self.reader.searcher();
        self.columns.retain(&searcher);
        let mut counts = self.counts.lock();
        counts.sources = counts.sources.saturating_add_signed(added_sources);
        // A document is a source or a message.
        counts.messages = searcher.num_docs().saturating_sub(counts.sources);
        Ok(())
    }

    /// Counts the documents.
    fn count(&self) -> Result<(), SearchError> {
        let searcher = self.reader.searcher();
        let all = searcher.num_docs();
        let messages = searcher.search(&ExistsQuery::new(crate::fields::column::NUMBER.into(), false), &Count)? as u64;
        *self.counts.lock() = Counts { messages, sources: all.saturating_sub(messages) };
        Ok(())
    }

    /// Returns a source of the last commit.
    pub(crate) fn stored_source(&self, id: SourceId) -> Result<Option<StoredSource>, SearchError> {
        let searcher = self.reader.searcher();
        let term = Term::from_field_bytes(self.fields.source, id.as_bytes());
        match first_document(&searcher, &term)? {
            Some(address) => Ok(Some(self.read_source(&searcher, address)?)),
            None => Ok(None),
        }
    }

    /// Reads the source of a document.
    pub(crate) fn read_source(&self, searcher: &Searcher, address: DocAddress) -> Result<StoredSource, SearchError> {
        let document: TantivyDocument = searcher.doc(address)?;
        let header = document.get_first(self.fields.header).and_then(|value| value.as_bytes());
        serde_json::from_slice(header.ok_or(SearchError::Entry)?).map_err(|_| SearchError::Entry)
    }
}

/// Returns a document with this term that is not deleted.
pub(crate) fn first_document(searcher: &Searcher, term: &Term) -> Result<Option<DocAddress>, SearchError> {
    for (ord, segment) in searcher.segment_readers().iter().enumerate() {
        if let Some(doc) = documents_with(segment, term)?.next() {
            return Ok(Some(DocAddress::new(u32::try_from(ord).unwrap_or(u32::MAX), doc)));
        }
    }
    Ok(None)
}

/// Returns the documents of a segment with this term that are not deleted.
pub(crate) fn documents_with<'a>(
    segment: &'a tantivy::SegmentReader,
    term: &Term,
) -> Result<impl Iterator<Item = u32> + 'a, SearchError> {
    use tantivy::DocSet as _;
    let index = segment.inverted_index(term.field())?;
    let mut postings = index.read_postings(term, IndexRecordOption::Basic).map_err(tantivy::TantivyError::from)?;
    let next = move || {
        let postings = postings.as_mut()?;
        let doc = postings.doc();
        postings.advance();
        (doc != tantivy::TERMINATED).then_some(doc)
    };
    Ok(std::iter::from_fn(next).filter(|doc| !segment.is_deleted(*doc)))
}
