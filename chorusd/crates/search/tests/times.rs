//! A question that names a time or a speaker finds what was said then, or by them. Of messages next to each other, the best is shown.

use chorus_proto::Role;
use chorus_search::{
    Filter, Hit, IndexOptions, MessageText, Mode, SearchIndex, SearchQuery, Source, SourceId, SourceKind,
};
use jiff::Timestamp;
use tempfile::TempDir;
use uuid::Uuid;

/// An index of sessions with the given messages: time, speaker and text.
struct Fixture {
    _dir: TempDir,
    index: SearchIndex,
}

impl Fixture {
    fn new(sessions: &[&[(&str, &str, &str)]]) -> Self {
        let dir = TempDir::new().expect("it works");
        let (index, _) =
            SearchIndex::open(&dir.path().join("index"), IndexOptions::new("english", false)).expect("it works");
        let mut writer = index.writer(15 << 20).expect("it works");
        for (number, messages) in sessions.iter().enumerate() {
            let messages: Vec<MessageText> = messages
                .iter()
                .enumerate()
                .map(|(place, (at, speaker, text))| message((number, place), at, speaker, text))
                .collect();
            let at = messages.last().map_or(Timestamp::UNIX_EPOCH, |message| message.at);
            writer.put(&session(number, at), messages).expect("it works");
        }
        writer.commit().expect("it works");
        drop(writer);
        Self { _dir: dir, index }
    }

    /// Searches on Thursday, 12 February 2026, in the time zone of Tokyo.
    fn search(&self, text: &str) -> Vec<Hit> {
        let now = "2026-02-12T10:00:00+09:00[Asia/Tokyo]".parse().expect("it works");
        let query = SearchQuery {
            text: text.into(),
            filter: Filter::default(),
            limit: 10,
            merge: true,
            explain: true,
            mode: Mode::Text,
            meaning: None,
            now,
        };
        self.index.search(&query).expect("it works").hits
    }

    /// Session and message of each hit.
    fn places(&self, text: &str) -> Vec<(u128, u64)> {
        let place = |hit: &Hit| (hit.source.to_uuid().as_u128(), hit.number.unwrap_or_default());
        self.search(text).iter().map(place).collect()
    }
}

fn session(number: usize, at: Timestamp) -> Source {
    Source {
        id: SourceId::from(Uuid::from_u128(number as u128)),
        kind: SourceKind::Session,
        agent: Uuid::from_u128(7),
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

fn message(place: (usize, usize), at: &str, speaker: &str, text: &str) -> MessageText {
    MessageText {
        key: *Uuid::from_u64_pair(place.0 as u64, place.1 as u64).as_bytes(),
        role: Role::User,
        at: at.parse().expect("it works"),
        speaker: speaker.into(),
        text: text.into(),
        commands: Vec::new(),
        tools: Vec::new(),
        origins: Vec::new(),
    }
}

fn time_of(hit: &Hit) -> f32 {
    hit.parts.iter().find(|(name, _)| *name == "time").map_or(0.0, |(_, value)| *value)
}

#[test]
fn a_time_in_the_question_puts_what_was_said_then_first() {
    let of = Fixture::new(&[
        &[("2025-05-10T10:00:00Z", "Ada", "the deploy failed: space")],
        &[("2026-01-20T10:00:00Z", "Ada", "the deploy failed: key")],
        &[("2026-02-04T10:00:00Z", "Ada", "the deploy failed: no more memory left")],
        &[("2026-02-12T00:30:00Z", "Ada", "the deploy failed: network")],
    ]);
    assert_eq!(of.places("why did the deploy fail in May")[0], (0, 1));
    assert_eq!(of.places("why did the deploy fail in January")[0], (1, 1));
    assert_eq!(of.places("why did the deploy fail last week")[0], (2, 1), "although it has more words besides");
    assert_eq!(of.places("why did the deploy fail today")[0], (3, 1), "today has begun in Tokyo, not in UTC");
    assert_eq!(of.places("why did the deploy fail on 9 May 2025")[0], (0, 1), "the nearest, if none is of that day");
    let hits = of.search("why did the deploy fail last week");
    assert_eq!(hits.len(), 4, "the time filters nothing");
    let times: Vec<f32> = hits.iter().map(time_of).collect();
    assert!(times[0] > 0.0 && times[1..].iter().all(|time| *time < times[0]), "{times:?}");
    let of_parts: f32 = hits[0].parts.iter().map(|(_, value)| value).sum();
    assert!((of_parts - hits[0].score).abs() < 1e-4, "{hits:?}");
    assert!(of.search("why did the deploy fail").iter().all(|hit| time_of(hit) == 0.0));
}

#[test]
fn words_of_time_are_words_as_well() {
    let of = Fixture::new(&[
        &[("2026-02-11T10:00:00Z", "Ada", "we had soup")],
        &[("2025-06-01T10:00:00Z", "Ada", "yesterday the cat was ill")],
    ]);
    assert_eq!(of.places("yesterday"), [(1, 1)]);
    let hits = of.search("\"yesterday the\" cat");
    assert_eq!((hits.len(), time_of(&hits[0])), (1, 0.0), "what is quoted was said");
}

#[test]
fn many_messages_with_the_words_do_not_hide_those_of_the_time() {
    let old: &[(&str, &str, &str)] = &[("2025-06-01T10:00:00Z", "", "redis is slow again")];
    let new: &[(&str, &str, &str)] = &[("2026-02-11T02:00:00Z", "", "redis is slow because of the disk")];
    let mut sessions = vec![old; 600];
    sessions.push(new);
    let of = Fixture::new(&sessions);
    assert_eq!(of.places("redis slow yesterday")[0], (600, 1));
}

#[test]
fn a_message_beside_the_words_has_the_time_of_its_neighbour() {
    let turns = |day: &'static str, city: &'static str| [(day, "", "which city shall we visit"), (day, "", city)];
    let of = Fixture::new(&[&turns("2025-03-01T10:00:00Z", "Porto"), &turns("2025-04-01T10:00:00Z", "Lisbon")]);
    let now = "2026-02-12T10:00:00[UTC]".parse().expect("it works");
    let query = SearchQuery {
        text: "the city in March".into(),
        filter: Filter::default(),
        limit: 10,
        merge: false,
        explain: true,
        mode: Mode::Text,
        meaning: None,
        now,
    };
    let hits = of.index.search(&query).expect("it works").hits;
    let porto = hits.iter().find(|hit| hit.snippet.text == "Porto").expect("it is found");
    let lisbon = hits.iter().find(|hit| hit.snippet.text == "Lisbon").expect("it is found");
    assert!(time_of(porto) > time_of(lisbon), "{hits:?}");
}

#[test]
fn the_name_of_a_speaker_in_the_question_counts() {
    let day = "2026-02-11T10:00:00Z";
    let of = Fixture::new(&[
        &[(day, "Ada", "I would keep the old cache"), (day, "", "fine"), (day, "", "next")],
        &[(day, "Grace Hopper", "I would keep the old cache"), (day, "", "fine"), (day, "", "next")],
        &[(day, "Linus", "I would keep the old cache"), (day, "", "fine"), (day, "", "next")],
    ]);
    for (question, session) in [
        ("what did Ada say about the cache", 0),
        ("what did grace say about the cache", 1),
        ("did Hopper want to keep the cache", 1),
        ("Linus's opinion of the cache", 2),
    ] {
        let hit = &of.search(question)[0];
        assert_eq!(hit.source.to_uuid().as_u128(), session, "{question}");
    }
}

/// The one between two that match better would be first, because both lend to it.
#[test]
fn the_best_of_close_hits_is_shown_and_counts_the_others() {
    const AT: &str = "2026-02-01T10:00:00Z";
    let long = "a harbour and much else that makes this message about other things, so that the word counts less";
    let texts = ["harbour harbour lights", long, "harbour harbour walls", "x", "y", "one more harbour"];
    let fixture = Fixture::new(&[&texts.map(|text| (AT, "Ada", text))]);
    let hits = fixture.search("harbour");
    let found: Vec<_> = hits.iter().map(|hit| (hit.number, hit.nearby)).collect();
    assert!(matches!(found[0], (Some(1 | 3), 2)), "{found:?}");
    assert!(found.contains(&(Some(6), 0)), "{found:?}");
    assert!(hits.iter().all(|hit| hit.number != Some(2)), "{found:?}");
}

#[test]
fn a_match_that_no_shown_one_is_near_to_is_shown_itself() {
    const AT: &str = "2026-02-01T10:00:00Z";
    let texts = ["one harbour and a few other words", "x", "harbour harbour and other", "y", "harbour harbour harbour"];
    let fixture = Fixture::new(&[&texts.map(|text| (AT, "Ada", text))]);
    let numbers: Vec<_> = fixture.search("harbour").iter().map(|hit| hit.number).collect();
    assert_eq!(numbers, [Some(5), Some(1)]);
}
