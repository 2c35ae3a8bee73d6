//! The columns of the parts of an index, opened once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chorus_base::sync::Mutex;
use tantivy::columnar::Column;
use tantivy::index::SegmentId;
use tantivy::{Searcher, SegmentReader};

use crate::error::SearchError;
use crate::fields::column;

/// The columns of a segment.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) agent: Column<u64>,
    pub(crate) group: Column<u64>,
    pub(crate) number: Column<u64>,
    pub(crate) role: Column<u64>,
    pub(crate) at: Column<i64>,
}

impl Columns {
    fn open(segment: &SegmentReader) -> Result<Self, SearchError> {
        let fields = segment.fast_fields();
        Ok(Self {
            agent: fields.u64(column::AGENT)?,
            group: fields.u64(column::GROUP)?,
            number: fields.u64(column::NUMBER)?,
            role: fields.u64(column::ROLE)?,
            at: fields.i64(column::AT)?,
        })
    }
}

/// The open columns of the segments. To open them takes longer than to search a segment for a rare word.
#[derive(Debug, Default)]
pub(crate) struct OpenColumns(Mutex<HashMap<SegmentId, Arc<Columns>>>);

impl OpenColumns {
    /// Returns the columns of a segment.
    pub(crate) fn of(&self, segment: &SegmentReader) -> Result<Arc<Columns>, SearchError> {
        let id = segment.segment_id();
        if let Some(open) = self.0.lock().get(&id) {
            return Ok(open.clone());
        }
        let columns = Arc::new(Columns::open(segment)?);
        self.0.lock().insert(id, columns.clone());
        Ok(columns)
    }

    /// Closes the columns of segments that are no longer part of the index.
    pub(crate) fn retain(&self, searcher: &Searcher) {
        let current: HashSet<SegmentId> = searcher.segment_readers().iter().map(SegmentReader::segment_id).collect();
        self.0.lock().retain(|id, _| current.contains(id));
    }
}
