//! Carries out a query.

mod candidates;
mod given_documents;
mod holders;
mod meaning;

use std::collections::{HashMap, HashSet};

use chorus_proto::Role;
use jiff::Timestamp;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery, TermSetQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, Searcher, TantivyDocument, Term};

use self::candidates::{Candidate, ColumnFilter};
use self::holders::Holders;
use crate::error::SearchError;
use crate::holdings::StoredSource;
use crate::index::{SearchIndex, Shared};
use crate::parse::{Parsed, parse};
use crate::query::{Hit, Mode, SearchHits, SearchQuery};
use crate::ranking::{
    self, CANDIDATES, CANDIDATES_OF_ONE_WORD, CANDIDATES_OF_TIME, OwnScore, SPAN, Score, TITLE_ALONE, TITLE_CANDIDATES,
};
use crate::shown_message::ShownMessage;
use crate::snippet;
use crate::source::SourceId;
use crate::time_expressions::{self, TimeSpan};
use crate::writer::agent_number;

/// Words that a begin of a word may stand for.
const MAX_EXPANSIONS: usize = 64;

/// Begins of words in a query, and words of each part of the index that are looked at for one.
const MAX_PREFIXES: usize = 4;
const MAX_LOOKED_AT: usize = 20_000;

/// If fewer than one in so many messages are of the agents that are searched, theirs are looked up first.
const RARE_AGENT: u64 = 8;

/// Weight of words that stand next to each other as in the query.
const COMPOUND_BOOST: f32 = 1.5;

impl SearchIndex {
    /// Finds messages, best first. Blocks; any text is a query.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn search(&self, query: &SearchQuery) -> Result<SearchHits, SearchError> {
        self.search_for(query, None)
    }

    /// The same, but with snippets of so many characters, in which tools that are called are not named.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn search_passages(&self, query: &SearchQuery, snippet_chars: usize) -> Result<SearchHits, SearchError> {
        self.search_for(query, Some(snippet_chars))
    }

    fn search_for(&self, query: &SearchQuery, passage_chars: Option<usize>) -> Result<SearchHits, SearchError> {
        let shared = &*self.shared;
        let parsed = parse(shared, &query.text);
        let has_meaning = query.meaning.is_some() && query.mode != Mode::Text && parsed.excluded.is_empty();
        if parsed.is_empty() && !has_meaning {
            return Ok(SearchHits { only_exclusions: !parsed.excluded.is_empty(), ..SearchHits::default() });
        }
        let searcher = shared.reader.searcher();
        let times = time_expressions::find(&query.text, &query.now);
        Search { shared, searcher, query, parsed, passage_chars, prefix_words: Vec::new(), times }.run()
    }
}

struct Search<'a> {
    shared: &'a Shared,
    searcher: Searcher,
    query: &'a SearchQuery,
    parsed: Parsed,
    /// The length of passages, if they are what is asked for.
    passage_chars: Option<usize>,
    /// The words that the begins of words stand for.
    prefix_words: Vec<String>,
    /// The spans of time that the question names.
    times: Vec<TimeSpan>,
}

/// A message or a source in the order of hits.
#[derive(Debug)]
enum Ranked {
    Message { group: u64, number: u64, address: Option<DocAddress>, score: Score, at: i64 },
    Source { stored: Box<StoredSource>, score: Score },
}

impl Ranked {
    fn score(&self) -> Score {
        match self {
            Self::Message { score, .. } | Self::Source { score, .. } => *score,
        }
    }

    fn score_mut(&mut self) -> &mut Score {
        match self {
            Self::Message { score, .. } | Self::Source { score, .. } => score,
        }
    }

    fn at(&self) -> i64 {
        match self {
            Self::Message { at, .. } => *at,
            Self::Source { stored, .. } => stored.source.at.as_microsecond(),
        }
    }
}

impl Search<'_> {
    fn run(mut self) -> Result<SearchHits, SearchError> {
        self.prefix_words = self.expand_prefixes()?;
        let mut holders = Holders::new(self.shared, &self.searcher, &self.query.filter);
        let groups = if self.query.filter.concerns_sources() { Some(holders.groups_of_filter()?) } else { None };
        let filter = ColumnFilter::new(&self.query.filter, groups, holders.hidden_groups()?)
            .leave_out(holders.groups_without()?);
        let words = self.words_query(self.shared.fields.text);
        let query = self.filtered(words)?;
        let mut found = match self.parsed.is_empty() {
            true => Vec::new(),
            false => candidates::best(self.shared, &self.searcher, &*query, &filter, self.candidates())?,
        };
        // Messages of the time that is asked about may have words that are too common for the best ones.
        let mut known: HashSet<DocAddress> = found.iter().map(|candidate| candidate.address).collect();
        for span in &self.times {
            let of_span =
                candidates::best(self.shared, &self.searcher, &*query, &filter.within(*span), CANDIDATES_OF_TIME)?;
            found.extend(of_span.into_iter().filter(|candidate| known.insert(candidate.address)));
        }
        let meaning_failure = self.add_meaning(&mut found, &filter)?;
        let titles = match self.query.mode {
            Mode::Semantic if meaning_failure.is_none() => Vec::new(),
            _ => self.matching_sources(&mut holders)?,
        };
        let known = Known(found.iter().map(|candidate| ((candidate.group, candidate.number), candidate)).collect());
        let ranked = self.rank(&found, &known, &titles, &filter);
        let hits = self.hits(ranked, &known, &mut holders, &filter)?;
        Ok(SearchHits { hits, only_exclusions: false, meaning_failure })
    }

    /// Returns the words in the index that begin as asked for.
    fn expand_prefixes(&self) -> Result<Vec<String>, SearchError> {
        let mut words: Vec<String> = Vec::new();
        for prefix in self.parsed.prefixes.iter().take(MAX_PREFIXES) {
            let mut counts: HashMap<String, u32> = HashMap::new();
            for segment in self.searcher.segment_readers() {
                let index = segment.inverted_index(self.shared.fields.text)?;
                let mut terms =
                    index.terms().range().ge(prefix.as_bytes()).into_stream().map_err(tantivy::TantivyError::from)?;
                let mut looked_at = 0;
                while looked_at < MAX_LOOKED_AT && terms.advance() {
                    looked_at += 1;
                    match std::str::from_utf8(terms.key()) {
                        Ok(word) if word.starts_with(prefix.as_str()) => {
                            *counts.entry(word.to_owned()).or_default() += terms.value().doc_freq;
                        }
                        _ => break,
                    }
                }
            }
            let mut counts: Vec<(String, u32)> = counts.into_iter().collect();
            counts.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
            words.extend(counts.into_iter().take(MAX_EXPANSIONS).map(|(word, _)| word));
        }
        Ok(words)
    }

    /// Returns how many messages are ranked. With one word there is less to choose from: all that count have it.
    fn candidates(&self) -> usize {
        if self.parsed.is_one_word() { CANDIDATES_OF_ONE_WORD } else { CANDIDATES }
    }

    /// Returns the query of the words in a field.
    fn words_query(&self, field: Field) -> Box<dyn Query> {
        let one = |word: &String| adjacent(field, std::slice::from_ref(word));
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for word in self.parsed.words.iter().chain(&self.prefix_words) {
            clauses.push((Occur::Should, one(word)));
        }
        for compound in &self.parsed.compounds {
            clauses.push((Occur::Should, Box::new(BoostQuery::new(adjacent(field, compound), COMPOUND_BOOST))));
        }
        clauses.extend(self.conditions(field));
        // Of one word, documents are skipped several times as fast.
        match clauses.pop_if(|(occur, _)| *occur == Occur::Should && self.parsed.is_one_word()) {
            Some((_, word)) => word,
            None => Box::new(BooleanQuery::new(clauses)),
        }
    }

    /// Returns the phrases that a message must have, and the words that it must not have.
    fn conditions(&self, field: Field) -> impl Iterator<Item = (Occur, Box<dyn Query>)> {
        let phrases = self.parsed.phrases.iter().map(move |phrase| (Occur::Must, adjacent(field, phrase)));
        phrases.chain(self.parsed.excluded.iter().map(move |words| (Occur::MustNot, adjacent(field, words))))
    }

    /// Adds what only the index can filter well.
    fn filtered(&self, words: Box<dyn Query>) -> Result<Box<dyn Query>, SearchError> {
        let fields = &self.shared.fields;
        let filter = &self.query.filter;
        let mut must: Vec<Box<dyn Query>> = Vec::new();
        let exact = |field: Field, text: &str| -> Box<dyn Query> {
            Box::new(TermQuery::new(Term::from_field_text(field, &text.to_lowercase()), IndexRecordOption::Basic))
        };
        must.extend(filter.tool.iter().map(|tool| exact(fields.tool, tool)));
        must.extend(filter.origin.iter().map(|origin| exact(fields.origin, origin)));
        if let Some(agents) = &filter.agents {
            let terms: Vec<Term> =
                agents.iter().map(|agent| Term::from_field_u64(fields.agent, agent_number(*agent))).collect();
            let count = terms.iter().map(|term| self.searcher.doc_freq(term)).sum::<tantivy::Result<u64>>()?;
            if count * RARE_AGENT < self.searcher.num_docs() {
                must.push(Box::new(TermSetQuery::new(terms)));
            }
        }
        if must.is_empty() {
            return Ok(words);
        }
        let must = must
            .into_iter()
            .map(|query| -> (Occur, Box<dyn Query>) { (Occur::Must, Box::new(ConstScoreQuery::new(query, 0.0))) });
        let all = std::iter::once((Occur::Must, words)).chain(must);
        Ok(Box::new(BooleanQuery::new(all.collect())))
    }

    /// Returns the sources whose title has the words, with the score of that.
    fn matching_sources(&self, holders: &mut Holders<'_>) -> Result<Vec<(StoredSource, f32)>, SearchError> {
        let words = self.words_query(self.shared.fields.title);
        let none = crate::query::Filter { agents: self.query.filter.agents.clone(), ..Default::default() };
        let found = candidates::best(
            self.shared,
            &self.searcher,
            &*words,
            &ColumnFilter::new(&none, None, HashMap::new()),
            TITLE_CANDIDATES,
        )?;
        let mut sources = Vec::with_capacity(found.len());
        for candidate in found {
            let stored = self.shared.read_source(&self.searcher, candidate.address)?;
            if holders.admits(&stored) {
                sources.push((stored, candidate.words));
            }
        }
        Ok(sources)
    }

    fn rank(
        &self,
        found: &[Candidate],
        known: &Known<'_>,
        titles: &[(StoredSource, f32)],
        filter: &ColumnFilter,
    ) -> Vec<Ranked> {
        let own = |candidate: &Candidate| OwnScore { words: candidate.words, meaning: candidate.meaning };
        let own: Vec<(u64, u64, OwnScore)> =
            found.iter().map(|candidate| (candidate.group, candidate.number, own(candidate))).collect();
        let mut by_group: HashMap<u64, f32> = HashMap::new();
        for (stored, score) in titles {
            for holding in &stored.holdings {
                let best = by_group.entry(holding.group).or_default();
                *best = best.max(*score);
            }
        }
        // A message without the words can only be a neighbour if nothing else is asked of it.
        let is_plain = self.parsed.phrases.is_empty() && self.parsed.excluded.is_empty();
        let with_neighbours = is_plain && !self.query.filter.concerns_messages() && !filter.has_times();
        let scores = ranking::rank(&own, &by_group, with_neighbours);
        let mut ranked: Vec<Ranked> = scores
            .into_iter()
            .map(|((group, number), score)| {
                let candidate = known.0.get(&(group, number));
                let address = candidate.map(|known| known.address);
                // One without the words is about as old as those beside it.
                let beside = || if self.times.is_empty() { None } else { known.nearest(group, number) };
                let at = candidate.copied().or_else(beside).map_or(i64::MIN, |known| known.at);
                Ranked::Message { group, number, address, score, at }
            })
            .collect();
        // Several saves of a conversation have the same title: the newest stands for them.
        let mut seen: HashMap<(u64, String), usize> = HashMap::new();
        let mut alone: Vec<(StoredSource, f32)> = Vec::new();
        if !self.query.filter.concerns_messages() && !filter.has_times() {
            for (stored, score) in titles {
                let group = stored.holdings.first().map_or(0, |holding| holding.group);
                match seen.entry((group, stored.source.title.clone())) {
                    std::collections::hash_map::Entry::Vacant(free) => {
                        free.insert(alone.len());
                        alone.push((stored.clone(), *score));
                    }
                    std::collections::hash_map::Entry::Occupied(known) => {
                        let known = &mut alone[*known.get()];
                        if stored.source.at > known.0.source.at {
                            known.0 = stored.clone();
                        }
                    }
                }
            }
        }
        ranked.extend(alone.into_iter().map(|(stored, score)| Ranked::Source {
            stored: Box::new(stored),
            score: Score { title: TITLE_ALONE * score, ..Score::default() },
        }));
        if !self.times.is_empty() {
            ranking::add_time(ranked.iter_mut().map(|entry| {
                let at = entry.at();
                let closeness = self.times.iter().map(|span| span.closeness(at)).fold(0.0, f32::max);
                (entry.score_mut(), closeness)
            }));
        }
        ranked.sort_by(|a, b| {
            let by_score = b.score().total().total_cmp(&a.score().total());
            by_score.then_with(|| b.at().cmp(&a.at()))
        });
        ranked
    }

    /// Makes the first hits.
    fn hits(
        &self,
        ranked: Vec<Ranked>,
        known: &Known<'_>,
        holders: &mut Holders<'_>,
        filter: &ColumnFilter,
    ) -> Result<Vec<Hit>, SearchError> {
        let mut hits: Vec<Hit> = Vec::new();
        let mut shown: Vec<(u64, u64)> = Vec::new();
        for entry in ranked {
            if hits.len() >= self.query.limit {
                break;
            }
            let made = match entry {
                Ranked::Source { stored, score } => {
                    // Messages that it holds say more.
                    let is_shown = shown.iter().any(|(group, number)| stored.last_of(*group) >= *number);
                    (!is_shown).then(|| self.source_hit(*stored, score))
                }
                Ranked::Message { group, number, address, score, .. } => {
                    let own = (number, address);
                    // The one that matches best stands for those next to it, in their place.
                    let best = known.nearest(group, number).filter(|near| near.score() > score.own());
                    let best = best.filter(|_| self.query.merge);
                    let (number, address) = best.map_or((number, address), |near| (near.number, Some(near.address)));
                    let Some(stored) = holders.newest(group, number)? else { continue };
                    let is_covered = |number| {
                        self.query.merge && hits.iter().any(|hit: &Hit| is_near(hit, stored.source.id, number))
                    };
                    // If a hit has the best one already, the message itself may be too far away from that.
                    let (number, address) = match is_covered(number) {
                        false => (number, address),
                        true if own.0 == number || score.own() == 0.0 || is_covered(own.0) => continue,
                        true => own,
                    };
                    shown.push((group, number));
                    let last = stored.last_of(group);
                    let nearby = if self.query.merge { known.count_next_to(group, number, last) } else { 0 };
                    let hit = self.message_hit(stored, (group, number), address, score, filter)?;
                    hit.map(|hit| Hit { nearby, ..hit })
                }
            };
            hits.extend(made);
        }
        if !self.query.explain {
            hits.iter_mut().for_each(|hit| hit.parts.clear());
        }
        Ok(hits)
    }

    fn source_hit(&self, stored: StoredSource, score: Score) -> Hit {
        let source = stored.source;
        let text = std::iter::once(&source.title).chain(&source.texts).filter(|text| !text.is_empty()).cloned();
        let text = text.collect::<Vec<_>>().join(" · ");
        Hit {
            source: source.id,
            kind: source.kind,
            agent: source.agent,
            conversation: source.conversation,
            name: source.name,
            title: source.title,
            number: None,
            role: None,
            speaker: None,
            at: source.at,
            snippet: self.snippet(&text),
            nearby: 0,
            score: score.total(),
            parts: score.parts(),
        }
    }

    /// Makes the hit of a message; `None` if there is no such message, or the filter does not admit it.
    fn message_hit(
        &self,
        stored: StoredSource,
        (group, number): (u64, u64),
        address: Option<DocAddress>,
        score: Score,
        filter: &ColumnFilter,
    ) -> Result<Option<Hit>, SearchError> {
        let address = match address {
            Some(address) => Some(address),
            None => candidates::find(self.shared, &self.searcher, group, number, filter)?,
        };
        let Some(address) = address else { return Ok(None) };
        let document: TantivyDocument = self.searcher.doc(address)?;
        let shown = ShownMessage::read(&document, self.shared.fields.shown)?;
        let columns = self.shared.columns.of(self.searcher.segment_reader(address.segment_ord))?;
        let at = columns.at.first(address.doc_id).unwrap_or_default();
        let role = columns.role.first(address.doc_id).and_then(role_of);
        let source = stored.source;
        Ok(Some(Hit {
            source: source.id,
            kind: source.kind,
            agent: source.agent,
            conversation: source.conversation,
            name: source.name,
            title: source.title,
            number: Some(number),
            role,
            speaker: Some(shown.speaker.clone()).filter(|speaker| !speaker.is_empty()),
            at: Timestamp::from_microsecond(at).unwrap_or_default(),
            snippet: self.snippet(&if self.passage_chars.is_some() { shown.text } else { shown.text_and_calls() }),
            nearby: 0,
            score: score.total(),
            parts: score.parts(),
        }))
    }

    fn snippet(&self, text: &str) -> crate::query::Snippet {
        let parsed = &self.parsed;
        let words = parsed.words.iter().chain(&self.prefix_words).chain(parsed.phrases.iter().flatten());
        let (mut analyzer, mut plain) = (self.shared.analyzer.clone(), self.shared.prefix_analyzer.clone());
        let words = words.map(String::as_str).collect();
        snippet::make(&mut analyzer, &mut plain, text, &words, self.passage_chars.unwrap_or(snippet::LENGTH))
    }
}

/// Returns the query of words that stand next to each other.
fn adjacent(field: Field, words: &[String]) -> Box<dyn Query> {
    let term = |word: &String| Term::from_field_text(field, word);
    match words {
        [word] => Box::new(TermQuery::new(term(word), IndexRecordOption::WithFreqs)),
        _ => Box::new(PhraseQuery::new(words.iter().map(term).collect())),
    }
}

/// The messages with the words.
struct Known<'a>(HashMap<(u64, u64), &'a Candidate>);

impl Known<'_> {
    /// Returns how many others there are in the span around a message, up to the number `last`.
    fn count_next_to(&self, group: u64, number: u64, last: u64) -> u64 {
        let near = number.saturating_sub(SPAN)..=number.saturating_add(SPAN).min(last);
        near.filter(|near| *near != number && self.0.contains_key(&(group, *near))).count() as u64
    }

    /// Returns the best one in the span around a message.
    fn nearest(&self, group: u64, number: u64) -> Option<&Candidate> {
        let near = number.saturating_sub(SPAN)..=number.saturating_add(SPAN);
        let near = near.filter_map(|number| self.0.get(&(group, number)));
        near.max_by(|a, b| a.score().total_cmp(&b.score())).copied()
    }
}

/// Returns true if the hit stands for messages next to this one.
fn is_near(hit: &Hit, source: SourceId, number: u64) -> bool {
    hit.source == source && hit.number.is_some_and(|shown| shown.abs_diff(number) <= SPAN)
}

fn role_of(number: u64) -> Option<Role> {
    [Role::System, Role::User, Role::Assistant, Role::ToolResult].into_iter().find(|role| *role as u64 == number)
}
