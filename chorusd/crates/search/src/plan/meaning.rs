//! The messages that mean what the query does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tantivy::query::{BooleanQuery, Occur, Query};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocId, DocSet as _, TERMINATED};

use super::Search;
use super::candidates::{self, Candidate, ColumnFilter};
use super::given_documents::GivenDocuments;
use crate::error::SearchError;
use crate::fields::column;
use crate::query::{Meaning, Mode};
use crate::ranking::{ENOUGH_OF_NEAREST, MEANING_WEIGHT, MOST_NEAREST, NEAREST};

/// The similarities of messages, by short key.
type Similarities = HashMap<u64, f32>;

impl Search<'_> {
    /// Adds messages that are close in meaning, and gives each message its part of the score for that. Returns why it cannot.
    pub(super) fn add_meaning(
        &self,
        found: &mut Vec<Candidate>,
        filter: &ColumnFilter,
    ) -> Result<Option<String>, SearchError> {
        let meaning = match (&self.query.meaning, self.query.mode) {
            (None, _) | (_, Mode::Text) => return Ok(None),
            (Some(meaning), Mode::Semantic | Mode::Hybrid) => &**meaning,
        };
        let (near, mut similarities) = match self.nearest(meaning, filter)? {
            Ok(nearest) => nearest,
            Err(why) => return Ok(Some(why)),
        };
        if self.query.mode == Mode::Semantic {
            found.clear();
        }
        let mut known: HashSet<DocAddress> = found.iter().map(|candidate| candidate.address).collect();
        found.extend(near.into_iter().filter(|candidate| known.insert(candidate.address)));
        let keys = self.short_keys(found)?;
        let unknown: Vec<u64> = keys.iter().copied().filter(|key| !similarities.contains_key(key)).collect();
        match meaning.similarities(&unknown) {
            Ok(values) => similarities
                .extend(unknown.into_iter().zip(values).filter_map(|(key, similarity)| Some((key, similarity?)))),
            Err(why) => return Ok(Some(why)),
        }
        self.score(found, &keys, &similarities);
        Ok(None)
    }

    /// Returns the closest messages that the filter admits, and the similarities of all that were looked at.
    fn nearest(
        &self,
        meaning: &dyn Meaning,
        filter: &ColumnFilter,
    ) -> Result<Result<(Vec<Candidate>, Similarities), String>, SearchError> {
        let mut limit = NEAREST;
        loop {
            let near = match meaning.nearest(limit) {
                Ok(near) => near,
                Err(why) => return Ok(Err(why)),
            };
            let are_all = near.len() < limit;
            let similarities: Similarities = near.into_iter().collect();
            let candidates = self.with_short_keys(&similarities, filter)?;
            if candidates.len() >= ENOUGH_OF_NEAREST || are_all || limit >= MOST_NEAREST {
                return Ok(Ok((candidates, similarities)));
            }
            // The filter leaves few of them: farther ones count, too.
            limit *= 8;
        }
    }

    /// Returns the messages with these short keys that the query and the filter admit.
    fn with_short_keys(&self, keys: &Similarities, filter: &ColumnFilter) -> Result<Vec<Candidate>, SearchError> {
        let mut sorted: Vec<u64> = keys.keys().copied().collect();
        sorted.sort_unstable();
        let mut documents = HashMap::new();
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(self.shared.fields.key)?;
            let mut found: Vec<DocId> = Vec::new();
            for key in &sorted {
                let from = index.terms().range().ge(key.to_be_bytes());
                let until = key.checked_add(1).map(u64::to_be_bytes);
                let range = until.map_or_else(|| index.terms().range().ge(key.to_be_bytes()), |until| from.lt(until));
                let mut terms = range.into_stream().map_err(tantivy::TantivyError::from)?;
                while terms.advance() {
                    let mut postings = index
                        .read_postings_from_terminfo(terms.value(), IndexRecordOption::Basic)
                        .map_err(tantivy::TantivyError::from)?;
                    while postings.doc() != TERMINATED {
                        found.push(postings.doc());
                        postings.advance();
                    }
                }
            }
            found.sort_unstable();
            documents.insert(segment.segment_id(), found);
        }
        let limit = documents.values().map(Vec::len).sum::<usize>();
        let mut clauses: Vec<(Occur, Box<dyn Query>)> =
            vec![(Occur::Must, Box::new(GivenDocuments(Arc::new(documents))))];
        clauses.extend(self.conditions(self.shared.fields.text));
        let query = self.filtered(Box::new(BooleanQuery::new(clauses)))?;
        candidates::best(self.shared, &self.searcher, &*query, filter, limit.max(1))
    }

    fn short_keys(&self, found: &[Candidate]) -> Result<Vec<u64>, SearchError> {
        let mut columns = HashMap::new();
        let mut keys = Vec::with_capacity(found.len());
        for DocAddress { segment_ord, doc_id } in found.iter().map(|candidate| candidate.address) {
            let column = match columns.entry(segment_ord) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(self.searcher.segment_reader(segment_ord).fast_fields().u64(column::SHORT_KEY)?)
                }
            };
            keys.push(column.first(doc_id).unwrap_or_default());
        }
        Ok(keys)
    }

    /// Gives each message the part of its score for its similarity: by how many standard deviations it is closer than is usual among them. So
    /// one that stands out counts much, and where none does, the words decide.
    fn score(&self, found: &mut [Candidate], keys: &[u64], similarities: &Similarities) {
        let of_found: Vec<f32> = keys.iter().filter_map(|key| similarities.get(key).copied()).collect();
        #[expect(clippy::cast_precision_loss, reason = "there are some hundreds")]
        let mean_of = |values: &mut dyn Iterator<Item = f32>| values.sum::<f32>() / of_found.len().max(1) as f32;
        let usual = mean_of(&mut of_found.iter().copied());
        let deviation = mean_of(&mut of_found.iter().map(|similarity| (similarity - usual).powi(2))).sqrt();
        let deviation = if deviation > 0.0 { deviation } else { 1.0 };
        let farthest = of_found.iter().copied().fold(f32::INFINITY, f32::min);
        let best = found.iter().map(|candidate| candidate.words).fold(0.0, f32::max);
        for (candidate, key) in found.iter_mut().zip(keys) {
            let Some(similarity) = similarities.get(key) else { continue };
            // The farthest one is still closer than those that have no vector.
            candidate.meaning = match self.query.mode {
                Mode::Semantic => (similarity - farthest) / deviation,
                _ if best > 0.0 => MEANING_WEIGHT * best * (similarity - usual) / deviation,
                _ => (similarity - farthest) / deviation,
            }
            .max(f32::EPSILON);
            if self.query.mode == Mode::Semantic {
                candidate.words = 0.0;
            }
        }
    }
}
