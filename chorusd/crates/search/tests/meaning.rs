//! A query finds messages that mean the same in other words, with the vectors of a small model.

use std::path::Path;
use std::sync::Arc;

use chorus_embeddings::{LocalModel, TextUse, VectorStore};
use chorus_proto::Role;
use chorus_search::{
    Filter, Hit, IndexOptions, Meaning, MessageText, Mode, QueryVector, SearchIndex, SearchQuery, SeenSegments, Source,
    SourceId, SourceKind,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tempfile::TempDir;
use uuid::Uuid;

struct Fixture {
    _dir: TempDir,
    index: SearchIndex,
    model: LocalModel,
    store: Arc<VectorStore>,
}

/// Vectors that cannot be read.
#[derive(Debug)]
struct Unreadable;

impl Meaning for Unreadable {
    fn nearest(&self, _: usize) -> Result<Vec<(u64, f32)>, String> {
        Err("they are gone".into())
    }

    fn similarities(&self, _: &[u64]) -> Result<Vec<Option<f32>>, String> {
        Err("they are gone".into())
    }
}

fn source(number: u128, agent: u128) -> Source {
    Source {
        id: SourceId::from(Uuid::from_u128(number)),
        kind: SourceKind::Session,
        agent: Uuid::from_u128(agent),
        conversation: None,
        name: format!("s{number}"),
        title: String::new(),
        texts: Vec::new(),
        tags: Vec::new(),
        model: None,
        at: Timestamp::UNIX_EPOCH,
        stamp: number.to_string(),
        header_stamp: String::new(),
    }
}

impl Fixture {
    /// An index of sessions, each of the agent with this number.
    fn new(sessions: &[(u128, &[&str])]) -> Self {
        let dir = TempDir::new().expect("a directory");
        let options = IndexOptions::new("english", false);
        let (index, _) = SearchIndex::open(&dir.path().join("index"), options).expect("an index");
        let mut writer = index.writer(15 << 20).expect("a writer");
        for (number, (agent, texts)) in (1_u64..).zip(sessions) {
            let messages = (0_u64..).zip(*texts).map(|(place, text)| MessageText {
                key: *Uuid::from_u64_pair(number, place).as_bytes(),
                role: if place % 2 == 0 { Role::User } else { Role::Assistant },
                at: Timestamp::UNIX_EPOCH,
                speaker: String::new(),
                text: (*text).to_owned(),
                commands: Vec::new(),
                tools: Vec::new(),
                origins: Vec::new(),
            });
            writer.put(&source(u128::from(number), *agent), messages).expect("it is put");
        }
        writer.commit().expect("a commit");
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../embeddings/tests/model");
        let model = LocalModel::open(&model).expect("a model");
        let store = VectorStore::open(&dir.path().join("vectors.db"), model.dimensions()).expect("a store");
        let fixture = Self { _dir: dir, index, model, store: Arc::new(store) };
        fixture.embed();
        fixture
    }

    /// Makes the vectors that are missing, and removes those that are too many. Returns how many of each.
    fn embed(&self) -> (usize, usize) {
        let gone = self.index.gone_keys(self.store.keys()).expect("keys");
        let is_known = |key| self.store.contains(key).expect("it is read");
        let mut missing = self.index.unembedded(&mut SeenSegments::default(), is_known).expect("messages");
        let count = missing.len();
        while !missing.is_empty() {
            let messages = missing.take(3).expect("messages");
            let texts: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
            let vectors = self.model.embed(&texts, TextUse::Passage).expect("vectors");
            let vectors: Vec<_> =
                messages.iter().zip(vectors).map(|(message, vector)| (message.key, vec![vector])).collect();
            self.store.insert(&vectors).expect("they are written");
        }
        (count, self.store.retain(|key| !gone.contains(&key)).expect("they are removed"))
    }

    fn query(&self, mode: Mode, text: &str) -> SearchQuery {
        let vector = self.model.embed(&[text], TextUse::Query).expect("a vector").remove(0);
        SearchQuery {
            text: text.into(),
            filter: Filter::default(),
            limit: 10,
            merge: false,
            explain: true,
            mode,
            meaning: Some(Arc::new(QueryVector::new(self.store.clone(), vector))),
            now: Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC),
        }
    }

    fn search(&self, query: &SearchQuery) -> Vec<Hit> {
        let found = self.index.search(query).expect("a search");
        assert_eq!(found.meaning_failure, None);
        found.hits
    }
}

fn place(hit: &Hit) -> (u128, u64) {
    (hit.source.to_uuid().as_u128(), hit.number.expect("a message"))
}

const SESSIONS: [(u128, &[&str]); 4] = [
    (1, &["the automobile is huge", "yes, it is", "and the weather was fine"]),
    (1, &["my dinner was small", "eat more", "I will"]),
    (1, &["the physician is ill", "which one", "the tutor, too"]),
    (2, &["a tiny vehicle", "no", "never mind"]),
];

#[test]
fn other_words_with_the_same_meaning_are_found() {
    let fixture = Fixture::new(&SESSIONS);
    let first = |mode, text: &str| fixture.search(&fixture.query(mode, text)).first().map(place);
    assert_eq!(first(Mode::Text, "big car"), None);
    assert_eq!(first(Mode::Semantic, "big car"), Some((1, 1)));
    assert_eq!(first(Mode::Hybrid, "big car"), Some((1, 1)));
    assert_eq!(first(Mode::Hybrid, "the sick doctor"), Some((3, 1)));
    // Words that are there count more.
    assert_eq!(first(Mode::Hybrid, "dinner with the doctor"), Some((2, 1)));
    let hit = fixture.search(&fixture.query(Mode::Hybrid, "tutor")).remove(0);
    let parts: Vec<&str> = hit.parts.iter().map(|(name, _)| *name).collect();
    assert!(place(&hit) == (3, 3) && parts.contains(&"words") && parts.contains(&"meaning"), "{hit:?}");
    let total: f32 = hit.parts.iter().map(|(_, value)| value).sum();
    assert!((total - hit.score).abs() < 1e-3);
    // Only words that say nothing.
    assert!(!fixture.search(&fixture.query(Mode::Semantic, "what is it")).is_empty());
}

#[test]
fn filters_and_conditions_hold_for_meaning_too() {
    let many: Vec<String> = (0..400).map(|n| format!("an automobile {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut sessions = SESSIONS.to_vec();
    // All of these are closer than what the filter leaves.
    sessions.push((3, &many));
    let fixture = Fixture::new(&sessions);
    let found = |filter: Filter, text: &str| {
        let query = SearchQuery { filter, ..fixture.query(Mode::Semantic, text) };
        fixture.search(&query).iter().map(place).collect::<Vec<_>>()
    };
    let of = |agent: u128| Filter { agents: Some(vec![Uuid::from_u128(agent)]), ..Filter::default() };
    assert_eq!(found(of(2), "an automobile")[0], (4, 1));
    assert!(found(of(2), "an automobile").iter().all(|(source, _)| *source == 4));
    let replies = found(Filter { role: Some(Role::Assistant), ..of(1) }, "an automobile");
    assert!(!replies.is_empty() && replies.iter().all(|(_, number)| *number == 2), "{replies:?}");
    assert_eq!(found(of(3), "\"automobile 7\""), [(5, 8)]);
    let without = found(of(1), "car -huge");
    assert!(!without.is_empty() && !without.contains(&(1, 1)), "{without:?}");
}

#[test]
fn vectors_follow_the_messages() {
    let fixture = Fixture::new(&SESSIONS);
    assert_eq!(fixture.embed(), (0, 0));
    let mut writer = fixture.index.writer(15 << 20).expect("a writer");
    writer.remove(SourceId::from(Uuid::from_u128(1))).expect("it is removed");
    writer.commit().expect("a commit");
    // Before they are removed, they find nothing.
    let query = fixture.query(Mode::Semantic, "the automobile is huge");
    assert!(fixture.search(&query).iter().all(|hit| place(hit).0 != 1));
    assert_eq!(fixture.embed(), (0, 3));
    assert_eq!(fixture.store.len(), 9);
}

#[test]
fn what_has_no_text_is_not_looked_at_for_a_vector() {
    let fixture = Fixture::new(&[(7, &["", " \n"]), (7, &["a car", ""])]);
    assert_eq!((fixture.embed(), fixture.store.len()), ((0, 0), 1));
}

#[test]
fn without_vectors_words_count_and_it_is_said() {
    let fixture = Fixture::new(&SESSIONS);
    let query = SearchQuery { meaning: Some(Arc::new(Unreadable)), ..fixture.query(Mode::Hybrid, "dinner") };
    let found = fixture.index.search(&query).expect("a search");
    assert_eq!((found.hits.len(), found.meaning_failure.as_deref()), (3, Some("they are gone")));
    let query = SearchQuery { meaning: None, ..query };
    assert_eq!(fixture.search(&query).len(), 3);
}
