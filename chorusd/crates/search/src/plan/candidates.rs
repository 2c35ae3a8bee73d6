//! The messages with the best words.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use tantivy::query::{EnableScoring, Query};
use tantivy::{DocAddress, DocId, Searcher, Term};

use crate::columns::Columns;
use crate::error::SearchError;
use crate::index::{Shared, documents_with};
use crate::query::Filter;
use crate::time_expressions::TimeSpan;
use crate::writer::agent_number;

/// A message that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) address: DocAddress,
    pub(super) group: u64,
    pub(super) number: u64,
    /// Microseconds since 1970.
    pub(super) at: i64,
    /// Score of its words.
    pub(super) words: f32,
    /// Score of what it means.
    pub(super) meaning: f32,
}

impl Candidate {
    pub(super) fn score(&self) -> f32 {
        self.words + self.meaning
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Candidate {}
impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Candidate {
    /// The worst is the greatest, so that a heap has it on top.
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .score()
            .total_cmp(&self.score())
            .then_with(|| other.at.cmp(&self.at))
            .then_with(|| self.address.cmp(&other.address))
    }
}

/// The conditions on the columns of a document, checked after its words were found.
#[derive(Debug, Clone)]
pub(super) struct ColumnFilter {
    agents: Option<HashSet<u64>>,
    /// Groups, each up to a number.
    groups: Option<HashMap<u64, u64>>,
    /// Groups that hidden conversations hold, each up to the number that others hold, too.
    hidden: HashMap<u64, u64>,
    /// Groups that are left out up to a number.
    without: HashMap<u64, u64>,
    role: Option<u64>,
    since: Option<i64>,
    until: Option<i64>,
}

impl ColumnFilter {
    /// Only messages of `groups`, each up to a number, if they are given; of `hidden` ones only those up to the number.
    pub(super) fn new(filter: &Filter, groups: Option<HashMap<u64, u64>>, hidden: HashMap<u64, u64>) -> Self {
        Self {
            agents: filter.agents.as_ref().map(|agents| agents.iter().map(|agent| agent_number(*agent)).collect()),
            groups,
            hidden,
            without: HashMap::new(),
            role: filter.role.map(|role| role as u64),
            since: filter.since.map(|time| time.as_microsecond()),
            until: filter.until.map(|time| time.as_microsecond()),
        }
    }

    /// Returns the same filter for messages of a span of time.
    pub(super) fn within(&self, span: TimeSpan) -> Self {
        let (start, end) = (span.start.as_microsecond(), span.end.as_microsecond());
        Self {
            since: Some(self.since.map_or(start, |since| since.max(start))),
            until: Some(self.until.map_or(end, |until| until.min(end))),
            ..self.clone()
        }
    }

    /// Leaves out messages of `without`, each group up to a number.
    pub(super) fn leave_out(mut self, without: HashMap<u64, u64>) -> Self {
        self.without = without;
        self
    }

    pub(super) fn has_times(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    fn admits(&self, columns: &Columns, doc: DocId) -> bool {
        let is_of_agents =
            |agents: &HashSet<u64>| columns.agent.first(doc).is_some_and(|agent| agents.contains(&agent));
        let last_in =
            |groups: &HashMap<u64, u64>| columns.group.first(doc).and_then(|group| groups.get(&group).copied());
        let is_up_to = |last: u64| columns.number.first(doc).is_some_and(|number| number <= last);
        let is_held = |groups: &HashMap<u64, u64>| last_in(groups).is_some_and(is_up_to);
        self.agents.as_ref().is_none_or(is_of_agents)
            && self.groups.as_ref().is_none_or(is_held)
            && (self.hidden.is_empty() || last_in(&self.hidden).is_none_or(is_up_to))
            && (self.without.is_empty() || !last_in(&self.without).is_some_and(is_up_to))
            && self.role.is_none_or(|role| columns.role.first(doc) == Some(role))
            && self.since.is_none_or(|since| columns.at.first(doc).is_some_and(|at| at >= since))
            && self.until.is_none_or(|until| columns.at.first(doc).is_some_and(|at| at < until))
    }
}

/// Returns at most `limit` documents that `query` finds and `filter` admits, best first.
pub(super) fn best(
    shared: &Shared,
    searcher: &Searcher,
    query: &dyn Query,
    filter: &ColumnFilter,
    limit: usize,
) -> Result<Vec<Candidate>, SearchError> {
    let weight = query.weight(EnableScoring::enabled_from_searcher(searcher))?;
    let mut heap: BinaryHeap<Candidate> = BinaryHeap::with_capacity(limit + 1);
    let mut threshold = f32::MIN;
    for (ord, segment) in searcher.segment_readers().iter().enumerate() {
        let ord = u32::try_from(ord).unwrap_or(u32::MAX);
        // Looked up when something is found.
        let (mut columns, mut failure) = (None, None);
        // Documents that cannot reach the threshold are skipped block by block.
        weight.for_each_pruning(threshold, segment, &mut |doc, score| {
            if columns.is_none() {
                columns = shared.columns.of(segment).map_err(|error| failure = Some(error)).ok();
            }
            let Some(columns) = &columns else { return f32::MAX };
            if segment.is_deleted(doc) || !filter.admits(columns, doc) {
                return threshold;
            }
            heap.push(Candidate {
                address: DocAddress::new(ord, doc),
                group: columns.group.first(doc).unwrap_or_default(),
                number: columns.number.first(doc).unwrap_or_default(),
                at: columns.at.first(doc).unwrap_or_default(),
                words: score,
                meaning: 0.0,
            });
            if heap.len() > limit {
                heap.pop();
                threshold = heap.peek().map_or(threshold, |worst| worst.words);
            }
            threshold
        })?;
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
    let mut found = heap.into_vec();
    found.sort();
    Ok(found)
}

/// Finds the message with this number in a group, if the filter admits it.
pub(super) fn find(
    shared: &Shared,
    searcher: &Searcher,
    group: u64,
    number: u64,
    filter: &ColumnFilter,
) -> Result<Option<DocAddress>, SearchError> {
    let term = Term::from_field_u64(shared.fields.group, group);
    for (ord, segment) in searcher.segment_readers().iter().enumerate() {
        let mut documents = documents_with(segment, &term)?.peekable();
        if documents.peek().is_none() {
            continue;
        }
        let columns = shared.columns.of(segment)?;
        let found = documents.find(|doc| columns.number.first(*doc) == Some(number));
        if let Some(doc) = found.filter(|doc| filter.admits(&columns, *doc)) {
            return Ok(Some(DocAddress::new(u32::try_from(ord).unwrap_or(u32::MAX), doc)));
        }
    }
    Ok(None)
}
