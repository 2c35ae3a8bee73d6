//! An index finds each message once, for as long as a source holds it.

use std::fs;
use std::path::Path;

use chorus_proto::Role;
use chorus_search::{
    Filter, Hit, IndexOptions, IndexWriter, MessageText, Mode, Opened, SearchIndex, SearchQuery, Source, SourceId,
    SourceKind,
};
use jiff::Timestamp;
use tempfile::TempDir;
use uuid::Uuid;

const AGENT: Uuid = Uuid::from_u128(7);
const MEMORY: usize = 15 << 20;

struct Fixture {
    dir: TempDir,
    index: SearchIndex,
    writer: Option<IndexWriter>,
}

impl Fixture {
    fn new() -> Self {
        let dir = TempDir::new().expect("it works");
        let (index, opened) = SearchIndex::open(&dir.path().join("index"), options()).expect("it works");
        assert_eq!(opened, Opened::New);
        let writer = Some(index.writer(MEMORY).expect("it works"));
        Self { dir, index, writer }
    }

    fn writer(&mut self) -> &mut IndexWriter {
        self.writer.as_mut().expect("it works")
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("index")
    }

    fn put(&mut self, source: &Source, texts: &[&str]) -> bool {
        self.writer().put(source, messages(texts)).expect("it works")
    }

    fn commit(&mut self) {
        self.writer().commit().expect("it works");
        let sources = self.index.sources().expect("it works").len() as u64;
        assert_eq!(self.index.source_count(), sources, "the writer has counted right");
    }

    fn purge(&mut self) {
        assert!(!self.index.is_purge_due());
        self.commit();
        assert!(self.index.is_purge_due());
        self.writer().begin_purge().expect("it works");
        while !self.writer().purge().expect("it works") {
            std::thread::yield_now();
        }
    }

    fn search(&self, text: &str) -> Vec<Hit> {
        self.index.search(&query(text)).expect("it works").hits
    }

    /// Source and number of each hit.
    fn places(&self, text: &str) -> Vec<(u128, Option<u64>)> {
        self.search(text).iter().map(|hit| (hit.source.to_uuid().as_u128(), hit.number)).collect()
    }
}

fn options() -> IndexOptions {
    IndexOptions::new("english", false)
}

fn query(text: &str) -> SearchQuery {
    let now = "2026-02-12T10:00:00[UTC]".parse().expect("it works");
    SearchQuery {
        text: text.into(),
        filter: Filter::default(),
        limit: 10,
        merge: true,
        explain: true,
        mode: Mode::Text,
        meaning: None,
        now,
    }
}

/// A session with this number, saved so many seconds after another.
fn session(number: u128) -> Source {
    Source {
        id: SourceId::from(Uuid::from_u128(number)),
        kind: SourceKind::Session,
        agent: AGENT,
        conversation: None,
        name: format!("2026-02-12_s{number}"),
        title: String::new(),
        texts: Vec::new(),
        tags: Vec::new(),
        model: None,
        at: Timestamp::from_second(1_770_000_000 + i64::try_from(number).expect("it works")).expect("it works"),
        stamp: number.to_string(),
        header_stamp: String::new(),
    }
}

fn live(number: u128) -> Source {
    Source { kind: SourceKind::Live, ..session(number) }
}

/// Messages whose key is their text.
fn messages(texts: &[&str]) -> Vec<MessageText> {
    texts.iter().map(|text| message(text)).collect()
}

fn message(text: &str) -> MessageText {
    let mut key = [0_u8; 16];
    for (place, byte) in text.bytes().enumerate() {
        key[place % 16] = key[place % 16].wrapping_mul(31) ^ byte;
    }
    MessageText {
        key,
        role: Role::User,
        at: Timestamp::from_second(1_770_000_000).expect("it works"),
        speaker: String::new(),
        text: text.into(),
        commands: Vec::new(),
        tools: Vec::new(),
        origins: Vec::new(),
    }
}

fn is_in_files(dir: &Path, word: &str) -> bool {
    let mut files =
        fs::read_dir(dir).expect("it works").map(|file| fs::read(file.expect("it works").path()).expect("it works"));
    files.any(|bytes| bytes.windows(word.len()).any(|window| window == word.as_bytes()))
}

#[test]
fn a_message_of_several_sources_is_one_hit_in_the_newest() {
    let mut of = Fixture::new();
    of.put(&session(1), &["apples", "bananas"]);
    of.put(&session(2), &["apples", "bananas", "cherries"]);
    of.commit();
    of.put(&session(3), &["apples", "bananas", "cherries", "dates"]);
    of.put(&session(4), &["apples", "elderberries"]);
    of.commit();
    assert_eq!(of.index.message_count(), 5);
    assert_eq!(of.index.source_count(), 4);
    assert_eq!(of.places("apples"), [(4, Some(1))], "a branch");
    assert_eq!(of.places("bananas"), [(3, Some(2))]);
    assert_eq!(of.places("dates"), [(3, Some(4))]);
    assert_eq!(of.places("elderberries"), [(4, Some(2))]);
}

#[test]
fn what_others_hold_stays_when_a_source_goes() {
    let mut of = Fixture::new();
    of.put(&session(1), &["apples", "bananas"]);
    of.commit();
    of.put(&session(2), &["apples", "bananas", "cherries"]);
    of.put(&session(3), &["apples", "dates"]);
    of.commit();
    assert!(of.writer().remove(session(1).id).expect("it works"));
    of.commit();
    assert_eq!(of.places("bananas"), [(2, Some(2))]);
    assert!(of.writer().remove(session(2).id).expect("it works"));
    of.commit();
    assert_eq!(of.places("bananas cherries"), []);
    assert_eq!(of.places("apples"), [(3, Some(1))]);
    assert_eq!(of.index.message_count(), 2);
    // Within one commit, too: what is deleted is not taken for something that is there.
    of.writer().remove(session(3).id).expect("it works");
    of.put(&session(5), &["apples", "dates", "figs"]);
    of.commit();
    assert_eq!(of.places("apples"), [(5, Some(1))]);
    assert_eq!(of.index.message_count(), 3);
    assert!(!of.writer().remove(session(9).id).expect("it works"));
}

#[test]
fn a_live_source_grows_is_taken_back_and_becomes_a_session() {
    let mut of = Fixture::new();
    let now = live(100);
    of.put(&now, &["apples"]);
    of.commit();
    assert!(of.writer().extend(&now, 1, messages(&["bananas"])).expect("it works"));
    of.put(&session(1), &["apples", "bananas"]);
    assert!(of.writer().extend(&now, 2, messages(&["cherries"])).expect("it works"));
    of.commit();
    assert!(!of.writer().extend(&now, 2, messages(&["dates"])).expect("it works"), "it has three");
    assert_eq!(of.index.message_count(), 3);
    assert_eq!(of.places("cherries"), [(100, Some(3))]);
    // Two messages back, and on elsewhere.
    assert!(of.put(&now, &["apples", "elderberries"]), "cherries are gone");
    of.commit();
    assert_eq!(of.places("cherries"), []);
    assert_eq!(of.places("bananas"), [(1, Some(2))]);
    assert_eq!(of.places("elderberries"), [(100, Some(2))]);
    of.writer().remove(now.id).expect("it works");
    of.commit();
    assert_eq!(of.places("elderberries"), []);
    assert_eq!(of.places("apples"), [(1, Some(1))]);
}

#[test]
fn two_that_go_on_from_the_same_point_do_not_mix() {
    let mut of = Fixture::new();
    let (one, other) = (live(100), live(101));
    of.put(&one, &["apples"]);
    of.put(&other, &["apples"]);
    assert!(of.writer().extend(&one, 1, messages(&["bananas"])).expect("it works"));
    assert!(of.writer().extend(&other, 1, messages(&["cherries"])).expect("it works"));
    of.commit();
    assert_eq!(of.places("bananas"), [(100, Some(2))]);
    assert_eq!(of.places("cherries"), [(101, Some(2))]);
    assert_eq!(of.index.message_count(), 3);
}

#[test]
fn the_same_messages_of_another_agent_are_its_own() {
    let mut of = Fixture::new();
    of.put(&session(1), &["apples"]);
    of.put(&Source { agent: Uuid::from_u128(8), ..session(2) }, &["apples"]);
    of.commit();
    assert_eq!(of.places("apples").len(), 2);
    let filter = Filter { agents: Some(vec![AGENT]), ..Filter::default() };
    let hits = of.index.search(&SearchQuery { filter, ..query("apples") }).expect("it works").hits;
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].agent, AGENT);
}

#[test]
fn titles_and_tags_change_without_the_messages() {
    let mut of = Fixture::new();
    of.put(&session(1), &["apples"]);
    of.commit();
    let titled = Source { title: "Fruit salad".into(), tags: vec!["kitchen".into()], ..session(1) };
    of.writer().put_header(&titled).expect("it works");
    of.commit();
    assert_eq!(of.places("salads"), [(1, None)]);
    assert_eq!(of.places("kitchen"), [(1, None)]);
    assert_eq!(of.places("apples salad"), [(1, Some(1))], "the message says more");
    let filter = |tag: &str| Filter { tag: Some(tag.into()), ..Filter::default() };
    let tagged = |tag: &str| {
        of.index.search(&SearchQuery { filter: filter(tag), ..query("apples") }).expect("it works").hits.len()
    };
    assert_eq!((tagged("kitchen"), tagged("garage")), (1, 0));
    assert_eq!(of.index.source(session(1).id).expect("it works").expect("it works").messages, 1);
    of.writer().put_header(&session(77)).expect("it works");
    of.commit();
    assert_eq!(of.index.source_count(), 1);
}

#[test]
fn words_phrases_begins_and_exclusions() {
    let mut of = Fixture::new();
    of.put(
        &session(1),
        &["we dropped redis for postgres", "redis is a cache", "postgres keeps the ledger", "the café in src/main.rs"],
    );
    of.commit();
    let numbers = |text: &str| {
        let hits = of.index.search(&SearchQuery { merge: false, ..query(text) }).expect("it works").hits;
        let mut numbers: Vec<u64> =
            hits.iter().filter(|hit| !hit.snippet.marks.is_empty()).filter_map(|hit| hit.number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers("why did we drop redis"), [1, 2]);
    assert_eq!(numbers("\"redis for postgres\""), [1]);
    assert!(numbers("\"postgres for redis\"").is_empty());
    assert_eq!(numbers("redis -cache"), [1]);
    assert_eq!(numbers("redis -\"for postgres\""), [2]);
    assert_eq!(numbers("postg*"), [1, 3]);
    assert_eq!(numbers("drop*"), [1]);
    assert_eq!(numbers("dropping*"), [1], "the index has words without their endings");
    assert_eq!(numbers("CAFE"), [4]);
    assert_eq!(numbers("main.rs"), [4]);
    assert!(numbers("\"what is\"").is_empty());
    assert_eq!(numbers("the"), [3, 4], "nothing but words that are left out otherwise");
    let excluded = of.index.search(&query("-redis")).expect("it works");
    assert!(excluded.only_exclusions && excluded.hits.is_empty());
}

#[test]
fn any_text_is_a_query() {
    let mut of = Fixture::new();
    of.put(&session(1), &["plain words, 日本語 and more"]);
    of.commit();
    let long = "word ".repeat(10_000);
    for text in [
        "",
        " ",
        "\"",
        "\"\"",
        "-",
        "--",
        "-\"",
        "*",
        "**",
        "a*",
        "(",
        ")",
        "AND",
        "OR NOT",
        "text:word",
        "word^2",
        "word~",
        "[a TO b]",
        "{",
        "\\",
        "\0",
        "日",
        "é*",
        "-a -b",
        "\"a b",
        &long,
    ] {
        of.index.search(&query(text)).expect("it works");
    }
    assert_eq!(of.places("日本"), [(1, Some(1))]);
    assert_eq!(of.places(&long), [(1, Some(1))]);
}

#[test]
fn neighbours_count_and_close_hits_are_one() {
    let mut of = Fixture::new();
    of.put(&session(1), &["which city was it", "Lisbon", "nice", "what else", "the city of Porto is a city", "x", "y"]);
    of.commit();
    let hits = of.search("city");
    let numbers: Vec<_> = hits.iter().map(|hit| hit.number).collect();
    assert_eq!(numbers, [Some(5), Some(1)]);
    let each = of.index.search(&SearchQuery { merge: false, ..query("city") }).expect("it works").hits;
    assert!(each.len() > 2 && each.iter().any(|hit| hit.number == Some(2)), "{each:?}");
    assert!(each[0].parts.iter().any(|(name, value)| *name == "words" && *value > 0.0));
    let plain = of.index.search(&SearchQuery { explain: false, ..query("city") }).expect("it works").hits;
    assert!(plain.iter().all(|hit| hit.parts.is_empty()));
}

#[test]
fn commands_speakers_and_roles() {
    let mut of = Fixture::new();
    let reply = MessageText {
        role: Role::Assistant,
        speaker: "Ada".into(),
        commands: vec!["ffmpeg -i in.mov out.mp4".into()],
        tools: vec!["Bash".into()],
        origins: vec!["import".into(), "claude-code".into()],
        ..message("converted")
    };
    of.writer().put(&session(1), [message("convert it"), reply]).expect("it works");
    of.commit();
    let hit = &of.search("what was that ffmpeg line")[0];
    assert_eq!((hit.number, hit.role, hit.speaker.as_deref()), (Some(2), Some(Role::Assistant), Some("Ada")));
    assert!(hit.snippet.text.contains("ffmpeg -i in.mov"), "{hit:?}");
    assert_eq!(of.search("ada")[0].number, Some(2));
    let count =
        |filter: Filter| of.index.search(&SearchQuery { filter, ..query("converted") }).expect("it works").hits.len();
    assert_eq!(count(Filter { tool: Some("bash".into()), ..Filter::default() }), 1);
    assert_eq!(count(Filter { origin: Some("claude-code".into()), ..Filter::default() }), 1);
    assert_eq!(count(Filter { origin: Some("discord".into()), ..Filter::default() }), 0);
    assert_eq!(count(Filter { role: Some(Role::System), ..Filter::default() }), 0);
    let at = Timestamp::from_second(1_770_000_000).expect("it works");
    assert_eq!(count(Filter { since: Some(at), ..Filter::default() }), 1);
    assert_eq!(count(Filter { until: Some(at), ..Filter::default() }), 0);
}

#[test]
fn an_index_that_cannot_be_used_is_created_again() {
    let mut of = Fixture::new();
    of.put(&session(1), &["apples"]);
    of.commit();
    let path = of.path();
    of.writer = None;
    drop(of.index);
    let reopen = |options| SearchIndex::open(&path, options).expect("it works");
    let (index, opened) = reopen(options());
    assert_eq!((opened, index.message_count()), (Opened::Existing, 1));
    drop(index);
    let (index, opened) = reopen(IndexOptions::new("german", false));
    assert!(matches!(opened, Opened::Created { .. }) && index.message_count() == 0);
    drop(index);
    fs::write(path.join("meta.json"), "{}").expect("it works");
    let (index, opened) = reopen(IndexOptions::new("german", false));
    assert!(matches!(opened, Opened::Created { .. }), "{opened:?}");
    drop(index);
    fs::remove_dir_all(&path).expect("it works");
    fs::write(&path, "a file").expect("it works");
    SearchIndex::open(&path, options()).unwrap_err();
}

#[test]
fn a_flipped_bit_is_seen() {
    let mut of = Fixture::new();
    of.put(&session(1), &["apples"]);
    of.commit();
    assert!(of.index.damaged_files().expect("it works").is_empty());
    let store = fs::read_dir(of.path()).expect("it works").map(|file| file.expect("it works").path());
    let store = store
        .into_iter()
        .find(|file| file.extension().is_some_and(|extension| extension == "store"))
        .expect("it works");
    let mut bytes = fs::read(&store).expect("it works");
    bytes[3] ^= 1;
    of.writer = None;
    let path = of.path();
    drop(of.index);
    fs::write(&store, bytes).expect("it works");
    let (index, _) = SearchIndex::open(&path, options()).expect("it works");
    assert_eq!(index.damaged_files().expect("it works").len(), 1);
}

#[test]
fn a_purge_leaves_no_bytes_of_what_was_removed() {
    let mut of = Fixture::new();
    of.put(&Source { title: "quagmire".into(), ..session(1) }, &["xylophone", "shared zither"]);
    of.put(&session(2), &["shared zither", "marmalade"]);
    of.commit();
    let path = of.path();
    for word in ["quagmir", "xylophon", "marmalad"] {
        assert!(is_in_files(&path, word), "{word}");
    }
    of.writer().remove(session(1).id).expect("it works");
    of.purge();
    for word in ["quagmir", "xylophon"] {
        assert!(!is_in_files(&path, word), "{word}");
    }
    assert_eq!(of.places("zither"), [(2, Some(1))]);
    of.writer().remove(session(2).id).expect("it works");
    of.purge();
    assert!(!is_in_files(&path, "zither") && !is_in_files(&path, "marmalad"));
    assert_eq!(of.index.message_count(), 0);
}

#[test]
fn sources_are_left_out_with_all_that_they_hold_and_passages_are_long() {
    let mut fixture = Fixture::new();
    let long = format!("{} zebra {}", "grass ".repeat(200), "sand ".repeat(200));
    fixture.put(&session(1), &["a zebra", &long]);
    fixture.put(&live(2), &["a zebra"]);
    fixture.put(&session(3), &["another zebra"]);
    fixture.commit();
    let without = Filter { without: vec![live(2).id], ..Filter::default() };
    let query = SearchQuery { filter: without, limit: 100, merge: false, ..query("zebra") };
    let hits = fixture.index.search_passages(&query, 600).expect("it works").hits;
    let found: Vec<(u128, Option<u64>)> = hits.iter().map(|hit| (hit.source.to_uuid().as_u128(), hit.number)).collect();
    assert_eq!(found, [(3, Some(1)), (1, Some(2))]);
    assert!((500..=602).contains(&hits[1].snippet.text.chars().count()), "{hits:?}");
    assert!(hits[1].snippet.text.contains("grass zebra sand"), "{hits:?}");
}

#[test]
fn hidden_conversations_are_not_found_unless_another_holds_the_message() {
    let mut fixture = Fixture::new();
    let secret = Uuid::from_u128(70);
    let of_secret = |source: Source| Source { conversation: Some(secret), ..source };
    let texts: Vec<String> = (0..500).map(|n| format!("zebra {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    fixture.put(&of_secret(session(1)), &texts);
    fixture.put(&session(2), &["zebra in public"]);
    // Restored elsewhere, as far as it went then.
    fixture.put(&session(3), &texts[..2]);
    fixture.put(&of_secret(live(4)), &["a zebra at night"]);
    fixture.commit();
    let hidden = Filter { hidden: vec![secret], ..Filter::default() };
    let query = SearchQuery { filter: hidden, limit: 100, merge: false, ..query("zebra") };
    let hits = fixture.index.search(&query).expect("it works").hits;
    let mut found: Vec<_> = hits.iter().map(|hit| (hit.source.to_uuid().as_u128(), hit.number)).collect();
    found.sort_unstable();
    assert_eq!(found, [(2, Some(1)), (3, Some(1)), (3, Some(2))]);
}

#[test]
fn a_tool_is_found_by_its_call_and_named_in_the_snippet() {
    let mut of = Fixture::new();
    let calls = |key: &str, text: &str| MessageText {
        role: Role::Assistant,
        text: text.into(),
        tools: vec!["cancel_booking".into()],
        ..message(key)
    };
    let result = MessageText { role: Role::ToolResult, text: String::new(), ..calls("c", "") };
    of.writer().put(&session(1), [calls("a", "I do that."), calls("b", ""), result]).expect("it works");
    of.commit();
    let each = SearchQuery { merge: false, ..query("the cancelled booking") };
    let hits = of.index.search(&each).expect("it works").hits;
    let mut found: Vec<_> = hits.iter().map(|hit| (hit.number, &*hit.snippet.text, hit.snippet.marks.len())).collect();
    found.retain(|(_, text, _)| !text.is_empty());
    found.sort_unstable();
    assert_eq!(found, [(Some(1), "I do that. → cancel_booking", 2), (Some(2), "→ cancel_booking", 2)]);
    let of_result = Filter { role: Some(Role::ToolResult), ..Filter::default() };
    let results = SearchQuery { filter: of_result, ..each.clone() };
    assert_eq!(of.index.search(&results).expect("it works").hits, [], "it says nothing that could be shown");
    let passages = of.index.search_passages(&each, 600).expect("it works").hits;
    assert!(passages.iter().all(|hit| !hit.snippet.text.contains('→')), "{passages:?}");
}
