//! Bench: a search by words among 1,000,000 messages in 10,000 sessions, compared with SQLite's FTS5 over the same texts, and how
//! fast they are indexed; and a search by words and meaning, with a vector for each message.

use std::time::{Duration, Instant};

use std::sync::Arc;

use chorus_embeddings::{VectorStore, normalised};
use chorus_proto::Role;
use chorus_search::{
    Filter, IndexOptions, Meaning, MessageText, Mode, SearchIndex, SearchQuery, SeenSegments, Source, SourceId,
    SourceKind,
};
use chorus_tests::measure::{print_report, time};
use jiff::{Timestamp, tz::TimeZone};
use rusqlite::Connection;
use uuid::Uuid;

const SESSIONS: usize = 10_000;
const EACH: usize = 100;
const WORDS_EACH: usize = 30;
const VOCABULARY: usize = 200_000;
const SEARCHES: usize = 500;
/// Searches of the peer, which is slow for common words.
const PEER_SEARCHES: usize = 5;
const MEMORY: usize = 128 << 20;
/// As of all-MiniLM-L6-v2.
const DIMENSIONS: usize = 384;
/// Messages about the same have similar vectors: as many groups there are.
const TOPICS: u64 = 2_000;

/// Pseudo-random words of which few are common and most are rare.
struct Words(u64);

impl Words {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = ((self.0 >> 11) as f64 / (1_u64 << 53) as f64).max(1e-9);
        // The word of rank n comes with a probability of about 1/n.
        ((VOCABULARY as f64).powf(uniform) as usize).min(VOCABULARY) - 1
    }

    fn text(&mut self) -> String {
        (0..WORDS_EACH).map(|_| word(self.next())).collect::<Vec<_>>().join(" ")
    }
}

fn word(rank: usize) -> String {
    format!("w{rank:x}q")
}

fn source(number: usize) -> Source {
    Source {
        id: SourceId::from(Uuid::from_u64_pair(1, number as u64)),
        kind: SourceKind::Session,
        agent: Uuid::from_u64_pair(7, (number % 5) as u64),
        conversation: None,
        name: format!("2026-02-12_session-{number}"),
        title: String::new(),
        texts: Vec::new(),
        tags: Vec::new(),
        model: None,
        at: Timestamp::from_second(1_770_000_000 + number as i64).expect("a time"),
        stamp: String::new(),
        header_stamp: String::new(),
    }
}

fn message(number: u64, text: &str) -> MessageText {
    MessageText {
        key: *Uuid::from_u64_pair(2, number).as_bytes(),
        role: Role::User,
        at: Timestamp::from_second(1_770_000_000).expect("a time"),
        speaker: String::new(),
        text: text.to_owned(),
        commands: Vec::new(),
        tools: Vec::new(),
        origins: Vec::new(),
    }
}

fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * share) as usize]
}

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut words = Words(42);
    let texts: Vec<String> = (0..SESSIONS * EACH).map(|_| words.text()).collect();
    let (index, _) =
        SearchIndex::open(&dir.path().join("index"), IndexOptions::new("english", false)).expect("an index");
    let begun = Instant::now();
    let mut writer = index.writer(MEMORY).expect("a writer");
    for (number, texts) in texts.chunks(EACH).enumerate() {
        let messages = texts.iter().enumerate().map(|(place, text)| message((number * EACH + place) as u64, text));
        writer.put(&source(number), messages).expect("put");
        if number % 500 == 499 {
            writer.commit().expect("committed");
        }
    }
    writer.commit().expect("committed");
    let rate = texts.len() as f64 / begun.elapsed().as_secs_f64();
    let verdict = if rate >= 30_000.0 { "met" } else { "MISSED" };
    print_report(format_args!("{} messages indexed, 20 commits: {rate:.0}/s  target 30000  {verdict}", texts.len()));
    drop(writer);
    let peer = Connection::open(dir.path().join("peer.db")).expect("a database");
    peer.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE VIRTUAL TABLE m USING fts5 (text);",
    )
    .expect("a table");
    let took = time(|| {
        peer.execute_batch("BEGIN").expect("begun");
        let mut insert = peer.prepare("INSERT INTO m VALUES (?1)").expect("a statement");
        texts.iter().for_each(|text| _ = insert.execute([text]).expect("inserted"));
        peer.execute_batch("COMMIT").expect("committed");
    });
    print_report(format_args!("the same in FTS5, one commit: {:.0}/s", texts.len() as f64 / took.as_secs_f64()));
    let one = |first: usize, count: usize| (0..SEARCHES).map(move |n| word(first + n % count)).collect::<Vec<_>>();
    let three: Vec<String> =
        (0..SEARCHES).map(|n| format!("{} {} {}", word(50 + n), word(3000 + n), word(60_000 + n))).collect();
    let agent = Filter { agents: Some(vec![Uuid::from_u64_pair(7, 3)]), ..Filter::default() };
    for (what, queries, filter, target) in [
        ("a rare word", one(100_000, SEARCHES), Filter::default(), 0.2),
        ("a word in 1 of 100 messages", one(200, 100), Filter::default(), 5.0),
        ("one of the 5 most common words", one(0, 5), Filter::default(), 5.0),
        ("one of these, of one agent of five", one(0, 5), agent, 5.0),
        ("three words", three, Filter::default(), 5.0),
    ] {
        measure(&index, &peer, what, &queries, &filter, target);
    }
    measure_hybrid(&index, &dir.path().join("vectors.db"));
    measure_appends();
}

/// A query, seen from the vectors.
#[derive(Debug)]
struct View {
    store: Arc<VectorStore>,
    vector: Vec<f32>,
}

impl Meaning for View {
    fn nearest(&self, limit: usize) -> Result<Vec<(u64, f32)>, String> {
        let found = self.store.nearest(&self.vector, limit).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|found| (found.key, found.similarity)).collect())
    }

    fn similarities(&self, keys: &[u64]) -> Result<Vec<Option<f32>>, String> {
        self.store.similarities(&self.vector, keys).map_err(|error| error.to_string())
    }
}

/// A pseudo-random vector of one of the topics, of length 1.
fn vector(number: u64) -> Vec<f32> {
    let draw = |seed: u64| {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
    };
    let topic = draw(number % TOPICS + 1);
    let own = draw(number + 1_000_003);
    normalised(topic.zip(own).take(DIMENSIONS).map(|(topic, own)| topic + own).collect()).expect("a direction")
}

/// Measures a search by words and meaning, without the time that a model takes for the query.
fn measure_hybrid(index: &SearchIndex, path: &std::path::Path) {
    let store = Arc::new(VectorStore::open(path, DIMENSIONS).expect("a store"));
    let mut waiting = index.unembedded(&mut SeenSegments::default(), |_| false).expect("messages");
    let begun = Instant::now();
    while !waiting.is_empty() {
        let taken = waiting.take(10_000).expect("messages");
        let rows: Vec<_> = taken.iter().map(|message| (message.key, vec![vector(message.key)])).collect();
        store.insert(&rows).expect("inserted");
    }
    print_report(format_args!("{} vectors stored in {:.0?}", store.len(), begun.elapsed()));
    for mode in [Mode::Semantic, Mode::Hybrid] {
        let mut times: Vec<Duration> = (0..SEARCHES + 20)
            .map(|n| {
                let text = format!("{} {} {}", word(50 + n), word(3000 + n), word(60_000 + n));
                let meaning = View { store: store.clone(), vector: vector(n as u64 * 7919) };
                let query = SearchQuery { mode, meaning: Some(Arc::new(meaning)), ..query(&text, Filter::default()) };
                time(|| assert!(!index.search(&query).expect("a search").hits.is_empty()))
            })
            .skip(20)
            .collect();
        let (p50, p99) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
        let verdict = if p50.as_secs_f64() * 1e3 <= 15.0 { "met" } else { "MISSED" };
        print_report(format_args!("three words, {mode:?}: p50 {p50:.1?}, p99 {p99:.1?}  target 15 ms  {verdict}"));
    }
}

fn query(text: &str, filter: Filter) -> SearchQuery {
    SearchQuery {
        text: text.to_owned(),
        filter,
        limit: 10,
        merge: true,
        explain: false,
        mode: Mode::Text,
        meaning: None,
        now: Timestamp::from_second(1_770_000_000).expect("a time").to_zoned(TimeZone::UTC),
    }
}

/// Measures how long it takes to index a message of a conversation that is saved again and again.
fn measure_appends() {
    for saves in [1, 10, 100] {
        let dir = tempfile::tempdir().expect("a directory");
        let (index, _) = SearchIndex::open(dir.path(), IndexOptions::new("english", false)).expect("an index");
        let mut writer = index.writer(MEMORY).expect("a writer");
        let text = |number: u64| message(number, &word(number as usize));
        let conversation = Source { agent: source(0).agent, kind: SourceKind::Live, ..source(1) };
        writer.put(&conversation, (0..1).map(text)).expect("put");
        let mut appends: Vec<Duration> = Vec::new();
        for number in 1..=1000 {
            let message = text(number);
            appends.push(time(|| assert!(writer.extend(&conversation, number, [message]).expect("extended"))));
            if number % (1000 / saves) == 0 {
                let save = Source { agent: conversation.agent, ..source(number as usize + 10) };
                writer.put(&save, (0..=number).map(text)).expect("put");
            }
            if number % 20 == 0 {
                writer.commit().expect("committed");
            }
        }
        let p50 = percentile(&mut appends[900..], 0.5);
        print_report(format_args!("an append after {saves} saves: p50 {p50:.1?}"));
    }
}

fn measure(index: &SearchIndex, peer: &Connection, what: &str, queries: &[String], filter: &Filter, target: f64) {
    let search = |text: &String| {
        let query = query(text, filter.clone());
        let mut found = 0;
        let took = time(|| found = index.search(&query).expect("a search").hits.len());
        assert!(found > 0, "{text}");
        took
    };
    queries.iter().take(20).for_each(|text| _ = search(text));
    let mut times: Vec<Duration> = queries.iter().map(search).collect();
    let mut statement =
        peer.prepare_cached("SELECT rowid FROM m WHERE m MATCH ?1 ORDER BY bm25(m) LIMIT 10").expect("a statement");
    let mut floor: Vec<Duration> = queries
        .iter()
        .take(PEER_SEARCHES)
        .map(|text| {
            let text = text.split(' ').collect::<Vec<_>>().join(" OR ");
            time(|| _ = statement.query_map([text], |row| row.get::<_, i64>(0)).expect("a search").count())
        })
        .collect();
    let (p50, p99, peer) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99), percentile(&mut floor, 0.5));
    let ratio = peer.as_secs_f64() / p50.as_secs_f64();
    let verdict = if p99.as_secs_f64() * 1e3 <= target { "met" } else { "MISSED" };
    print_report(format_args!(
        "{what}: p50 {p50:.1?}, p99 {p99:.1?}  target {target} ms  {verdict}; FTS5 with bm25 {peer:.1?}, {ratio:.0} times"
    ));
}
