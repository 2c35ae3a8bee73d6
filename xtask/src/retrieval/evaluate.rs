//! Searches for the answers to all questions.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use chorus_embeddings::LocalModel;
use chorus_proto::Role;
use chorus_search::{
    Filter, IndexOptions, MessageText, SearchError, SearchIndex, SearchQuery, Source, SourceId, SourceKind,
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use uuid::Uuid;

use super::corpus::{Question, Sample};
use super::mode::Mode;
use super::vectors::Vectors;
use crate::error::{Error, Result};

/// The first hits of which the share of turns is measured.
pub const TURNS_AMONG: [usize; 4] = [1, 5, 10, 20];

/// The first sessions among which a right one is looked for.
pub const SESSIONS_AMONG: [usize; 3] = [1, 5, 10];

/// Number of hits that are asked for, so that the first ten sessions are among them.
const HITS: usize = 100;

/// Memory of the writer in bytes.
const MEMORY: usize = 64 << 20;

/// Sums over the questions of a category.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    pub questions: usize,
    /// Questions of which the turns with the answer are known.
    pub with_turns: usize,
    /// Sum of the share of these turns among the first hits.
    pub turns: [f64; TURNS_AMONG.len()],
    pub reciprocal_rank: f64,
    /// Questions with a right session among the first.
    pub sessions: [usize; SESSIONS_AMONG.len()],
}

/// The result of a measurement.
#[derive(Debug, Default)]
pub struct Measured {
    pub messages: u64,
    pub index_time: Duration,
    pub modes: BTreeMap<Mode, Found>,
}

/// What one way of searching has found.
#[derive(Debug, Default)]
pub struct Found {
    pub by_category: BTreeMap<String, Sums>,
    pub all: Sums,
    /// Times of the searches, sorted.
    pub latencies: Vec<Duration>,
    /// Sample and number of each question without a right turn among the first ten.
    pub missed: Vec<(usize, usize)>,
}

/// Indexes each sample by itself, as in a home of its own, and asks its questions in each mode. Modes that need a model are those of
/// `model`.
pub fn evaluate(samples: &[Sample], modes: &[Mode], model: Option<&LocalModel>) -> Result<Measured> {
    let dir = std::env::temp_dir().join(format!("chorus-retrieval-{}", std::process::id()));
    let mut measured = Measured::default();
    let evaluated =
        samples.iter().enumerate().try_for_each(|(number, sample)| measured.add(&dir, number, sample, modes, model));
    let _ = std::fs::remove_dir_all(&dir);
    measured.modes.values_mut().for_each(|found| found.latencies.sort());
    evaluated.map(|()| measured)
}

fn failed(error: SearchError) -> Error {
    Error::new(error.to_string()).hint("is there room in the directory for temporary files?")
}

impl Measured {
    fn add(
        &mut self,
        dir: &Path,
        number: usize,
        sample: &Sample,
        modes: &[Mode],
        model: Option<&LocalModel>,
    ) -> Result<()> {
        let (index, _) =
            SearchIndex::create(dir, IndexOptions::new("english", false), "it is of another sample".into())
                .map_err(failed)?;
        let begun = Instant::now();
        let mut writer = index.writer(MEMORY).map_err(failed)?;
        for (place, session) in sample.sessions.iter().enumerate() {
            let texts = session.turns.iter().enumerate().map(|(turn, said)| MessageText {
                key: *Uuid::from_u64_pair(place as u64, turn as u64).as_bytes(),
                role: if said.is_assistant { Role::Assistant } else { Role::User },
                at: session.at,
                speaker: said.speaker.clone(),
                text: said.text.clone(),
                commands: Vec::new(),
                tools: Vec::new(),
                origins: Vec::new(),
            });
            writer.put(&source(place, session.at), texts).map_err(failed)?;
        }
        writer.commit().map_err(failed)?;
        self.messages += index.message_count();
        self.index_time += begun.elapsed();
        let vectors = model.map(|model| Vectors::make(model, &index, dir)).transpose()?;
        for mode in modes {
            let found = self.modes.entry(*mode).or_default();
            found.ask_all(&index, number, sample, (*mode, vectors.as_ref()))?;
        }
        Ok(())
    }
}

impl Found {
    /// Asks the questions of a sample.
    fn ask_all(
        &mut self,
        index: &SearchIndex,
        number: usize,
        sample: &Sample,
        (mode, vectors): (Mode, Option<&Vectors<'_>>),
    ) -> Result<()> {
        let last = sample.sessions.iter().map(|session| session.at).max().unwrap_or_default();
        for (asked, question) in sample.questions.iter().enumerate() {
            let next_day = last.checked_add(SignedDuration::from_hours(24)).unwrap_or(last);
            let asked_at = question.at.unwrap_or(next_day);
            let meaning = vectors.filter(|_| mode.needs_model()).map(|vectors| vectors.view(&question.text));
            let query = SearchQuery {
                text: question.text.clone(),
                filter: Filter::default(),
                limit: HITS,
                merge: false,
                explain: false,
                mode: mode.into(),
                meaning: meaning.transpose()?,
                now: asked_at.to_zoned(TimeZone::UTC),
            };
            // The first search reads from the disk, so the second one is timed.
            let found = index.search(&query).map_err(failed)?;
            let begun = Instant::now();
            index.search(&SearchQuery { limit: 10, merge: true, ..query }).map_err(failed)?;
            self.latencies.push(begun.elapsed());
            let hits = found.hits.iter().filter_map(|hit| Some((place_of(hit.source)?, hit.number?)));
            let hits: Vec<(usize, usize)> = hits
                .filter_map(|(place, number)| Some((place, usize::try_from(number).ok()?.checked_sub(1)?)))
                .collect();
            if self.count(sample, question, &hits) {
                self.missed.push((number, asked));
            }
        }
        Ok(())
    }

    /// Adds a question with its hits: the places of session and turn. Returns true if no right turn is among the first ten.
    fn count(&mut self, sample: &Sample, question: &Question, hits: &[(usize, usize)]) -> bool {
        let mut places = HashMap::new();
        for (place, session) in sample.sessions.iter().enumerate() {
            places.extend(session.turns.iter().enumerate().map(|(turn, said)| (&*said.id, (place, turn))));
        }
        let wanted: Vec<(usize, usize)> = question.turns.iter().filter_map(|id| places.get(&**id)).copied().collect();
        let ranks: Vec<Option<usize>> = wanted.iter().map(|place| hits.iter().position(|hit| hit == place)).collect();
        let mut sessions: Vec<usize> = Vec::new();
        for (place, _) in hits {
            if !sessions.contains(place) {
                sessions.push(*place);
            }
        }
        let is_right = |place: &usize| question.sessions.contains(&sample.sessions[*place].id);
        let right = sessions.iter().position(is_right);
        for sums in [self.by_category.entry(question.category.clone()).or_default(), &mut self.all] {
            sums.questions += 1;
            for (sum, among) in sums.sessions.iter_mut().zip(SESSIONS_AMONG) {
                *sum += usize::from(right.is_some_and(|rank| rank < among));
            }
            if wanted.is_empty() {
                continue;
            }
            sums.with_turns += 1;
            for (sum, among) in sums.turns.iter_mut().zip(TURNS_AMONG) {
                let found = ranks.iter().flatten().filter(|rank| **rank < among).count();
                *sum += found as f64 / wanted.len() as f64;
            }
            sums.reciprocal_rank += ranks.iter().flatten().min().map_or(0.0, |rank| 1.0 / (*rank as f64 + 1.0));
        }
        !wanted.is_empty() && ranks.iter().flatten().all(|rank| *rank >= 10)
    }
}

/// The source of a session: its place is in its id.
fn source(place: usize, at: Timestamp) -> Source {
    Source {
        id: SourceId::from(Uuid::from_u64_pair(0, place as u64)),
        kind: SourceKind::Session,
        agent: Uuid::nil(),
        conversation: None,
        name: String::new(),
        title: String::new(),
        texts: Vec::new(),
        tags: Vec::new(),
        model: None,
        at,
        stamp: String::new(),
        header_stamp: String::new(),
    }
}

fn place_of(source: SourceId) -> Option<usize> {
    usize::try_from(source.to_uuid().as_u64_pair().1).ok()
}
