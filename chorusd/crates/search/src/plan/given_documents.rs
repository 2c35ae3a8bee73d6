//! A query for documents that are known already, to be combined with others.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::query::{ConstScorer, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError};

/// Documents by segment, in ascending order in each.
#[derive(Debug, Clone)]
pub(super) struct GivenDocuments(pub(super) Arc<HashMap<SegmentId, Vec<DocId>>>);

impl Query for GivenDocuments {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for GivenDocuments {
    fn scorer(&self, segment: &SegmentReader, _: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let id = segment.segment_id();
        if self.0.get(&id).is_none_or(Vec::is_empty) {
            return Ok(Box::new(EmptyScorer));
        }
        Ok(Box::new(ConstScorer::new(Cursor { all: self.0.clone(), id, place: 0 }, 0.0)))
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let is_given = self.0.get(&segment.segment_id()).is_some_and(|docs| docs.binary_search(&doc).is_ok());
        let missing = || TantivyError::InvalidArgument(format!("document {doc} is not among them"));
        is_given.then(|| Explanation::new("given", 0.0)).ok_or_else(missing)
    }
}

struct Cursor {
    all: Arc<HashMap<SegmentId, Vec<DocId>>>,
    id: SegmentId,
    place: usize,
}

impl DocSet for Cursor {
    fn advance(&mut self) -> DocId {
        self.place += 1;
        self.doc()
    }

    fn doc(&self) -> DocId {
        self.all.get(&self.id).and_then(|docs| docs.get(self.place)).copied().unwrap_or(TERMINATED)
    }

    fn size_hint(&self) -> u32 {
        self.all.get(&self.id).map_or(0, |docs| u32::try_from(docs.len()).unwrap_or(u32::MAX))
    }
}
