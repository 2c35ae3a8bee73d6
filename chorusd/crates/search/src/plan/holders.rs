//! The sources that hold the messages that were found.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tantivy::query::{BooleanQuery, Occur, Query, TermQuery, TermSetQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, Searcher, Term};

use crate::error::SearchError;
use crate::holdings::StoredSource;
use crate::index::{Shared, documents_with};
use crate::query::Filter;

/// Finds the newest source that holds a message.
pub(super) struct Holders<'a> {
    shared: &'a Shared,
    searcher: &'a Searcher,
    filter: &'a Filter,
    by_group: HashMap<u64, GroupHolders>,
}

/// The holders of a group, the newest first; those that were read so far, and the others.
struct GroupHolders {
    read: Vec<StoredSource>,
    unread: std::vec::IntoIter<DocAddress>,
}

impl<'a> Holders<'a> {
    pub(super) fn new(shared: &'a Shared, searcher: &'a Searcher, filter: &'a Filter) -> Self {
        Self { shared, searcher, filter, by_group: HashMap::new() }
    }

    /// Returns true if the filter admits messages of this source.
    pub(super) fn admits(&self, stored: &StoredSource) -> bool {
        let (source, filter) = (&stored.source, self.filter);
        filter.conversation.is_none_or(|conversation| source.conversation == conversation)
            && !source.conversation.is_some_and(|conversation| filter.hidden.contains(&conversation))
            && !filter.without.contains(&source.id)
            && filter.only.as_ref().is_none_or(|only| only.contains(&source.id))
            && filter.tag.as_ref().is_none_or(|tag| source.tags.contains(tag))
            && filter.model.as_ref().is_none_or(|model| source.model.as_ref() == Some(model))
    }

    /// Returns the groups that the sources hold which the filter admits, each with the last number that one holds.
    pub(super) fn groups_of_filter(&self) -> Result<HashMap<u64, u64>, SearchError> {
        let fields = &self.shared.fields;
        let mut must: Vec<Term> = Vec::new();
        must.extend(self.filter.tag.iter().map(|tag| Term::from_field_text(fields.tag, tag)));
        must.extend(self.filter.model.iter().map(|model| Term::from_field_text(fields.model, model)));
        if let Some(conversation) = self.filter.conversation {
            let main = self.filter.agents.as_ref().and_then(|agents| agents.first().copied());
            let id = conversation.or(main).unwrap_or_default();
            must.push(Term::from_field_bytes(fields.conversation, id.as_bytes()));
        }
        let clause = |term| -> (Occur, Box<dyn Query>) {
            (Occur::Must, Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
        };
        let query = BooleanQuery::new(must.into_iter().map(clause).collect());
        let found = self.searcher.search(&query, &tantivy::collector::DocSetCollector)?;
        let mut groups: HashMap<u64, u64> = HashMap::new();
        for address in found {
            let stored = self.shared.read_source(self.searcher, address)?;
            if self.admits(&stored) {
                for holding in &stored.holdings {
                    let last = groups.entry(holding.group).or_default();
                    *last = holding.last.max(*last);
                }
            }
        }
        Ok(groups)
    }

    /// Returns the groups that sources of hidden conversations hold, each up to the last number that a source holds which the filter
    /// admits.
    pub(super) fn hidden_groups(&self) -> Result<HashMap<u64, u64>, SearchError> {
        let mut groups: HashMap<u64, u64> = HashMap::new();
        if self.filter.hidden.is_empty() {
            return Ok(groups);
        }
        let field = self.shared.fields.conversation;
        let terms = self.filter.hidden.iter().map(|id| Term::from_field_bytes(field, id.as_bytes()));
        let found = self.searcher.search(&TermSetQuery::new(terms), &tantivy::collector::DocSetCollector)?;
        for address in found {
            let stored = self.shared.read_source(self.searcher, address)?;
            for holding in &stored.holdings {
                if let Entry::Vacant(free) = groups.entry(holding.group) {
                    free.insert(self.last_admitted(holding.group)?);
                }
            }
        }
        Ok(groups)
    }

    /// Returns the groups of the sources that are left out, each up to the last number that one of them holds.
    pub(super) fn groups_without(&self) -> Result<HashMap<u64, u64>, SearchError> {
        let mut groups: HashMap<u64, u64> = HashMap::new();
        for id in &self.filter.without {
            for holding in self.shared.stored_source(*id)?.into_iter().flat_map(|stored| stored.holdings) {
                let last = groups.entry(holding.group).or_default();
                *last = holding.last.max(*last);
            }
        }
        Ok(groups)
    }

    /// Returns the last number of a group that a source holds which the filter admits; 0 if none does.
    fn last_admitted(&self, group: u64) -> Result<u64, SearchError> {
        let mut last = 0;
        for address in self.of_group(group)? {
            let stored = self.shared.read_source(self.searcher, address)?;
            if self.admits(&stored) {
                last = last.max(stored.last_of(group));
            }
        }
        Ok(last)
    }

    /// Returns the newest source that holds a message and that the filter admits.
    pub(super) fn newest(&mut self, group: u64, number: u64) -> Result<Option<StoredSource>, SearchError> {
        if !self.by_group.contains_key(&group) {
            let unread = self.of_group(group)?.into_iter();
            self.by_group.insert(group, GroupHolders { read: Vec::new(), unread });
        }
        let holds = |stored: &StoredSource| stored.holdings.iter().any(|holding| holding.contains(group, number));
        let known = self.by_group.get(&group).and_then(|known| known.read.iter().find(|stored| holds(stored)));
        if let Some(known) = known {
            return Ok(Some(known.clone()));
        }
        while let Some(address) = self.by_group.get_mut(&group).and_then(|known| known.unread.next()) {
            let stored = self.shared.read_source(self.searcher, address)?;
            if !self.admits(&stored) {
                continue;
            }
            if let Some(known) = self.by_group.get_mut(&group) {
                known.read.push(stored.clone());
            }
            if holds(&stored) {
                return Ok(Some(stored));
            }
        }
        Ok(None)
    }

    /// Returns the documents of the sources that hold a group, the newest first.
    fn of_group(&self, group: u64) -> Result<Vec<DocAddress>, SearchError> {
        let term = Term::from_field_u64(self.shared.fields.held, group);
        let mut holders: Vec<(i64, DocAddress)> = Vec::new();
        for (ord, segment) in self.searcher.segment_readers().iter().enumerate() {
            let mut documents = documents_with(segment, &term)?.peekable();
            if documents.peek().is_none() {
                continue;
            }
            let columns = self.shared.columns.of(segment)?;
            let ord = u32::try_from(ord).unwrap_or(u32::MAX);
            holders.extend(documents.map(|doc| (columns.at.first(doc).unwrap_or_default(), DocAddress::new(ord, doc))));
        }
        holders.sort_by(|a, b| b.cmp(a));
        Ok(holders.into_iter().map(|(_, address)| address).collect())
    }
}
