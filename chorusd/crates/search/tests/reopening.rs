//! An index that is opened again is the same index.

use chorus_proto::Role;
use chorus_search::{Filter, IndexOptions, MessageText, Mode, SearchIndex, SearchQuery, Source, SourceId, SourceKind};
use jiff::Timestamp;
use uuid::Uuid;

const MEMORY: usize = 15 << 20;

fn session(number: u8) -> Source {
    Source {
        id: SourceId::from(Uuid::from_u128(number.into())),
        kind: SourceKind::Session,
        agent: Uuid::from_u128(7),
        conversation: None,
        name: format!("2026-02-12_s{number}"),
        title: String::new(),
        texts: Vec::new(),
        tags: Vec::new(),
        model: None,
        at: Timestamp::UNIX_EPOCH,
        stamp: number.to_string(),
        header_stamp: String::new(),
    }
}

fn message(key: u8, text: &str) -> MessageText {
    MessageText {
        key: [key; 16],
        role: Role::User,
        at: Timestamp::UNIX_EPOCH,
        speaker: String::new(),
        text: text.into(),
        commands: Vec::new(),
        tools: Vec::new(),
        origins: Vec::new(),
    }
}

fn count_hits(index: &SearchIndex, text: &str) -> usize {
    let query = SearchQuery {
        text: text.into(),
        filter: Filter::default(),
        limit: 10,
        merge: true,
        explain: false,
        mode: Mode::Text,
        meaning: None,
        now: "2026-02-12T10:00:00[UTC]".parse().expect("a time"),
    };
    index.search(&query).expect("found").hits.len()
}

#[test]
fn it_finds_the_same_and_is_written_further() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = IndexOptions::new("english", false);
    let (index, _) = SearchIndex::open(&dir.path().join("index"), options).expect("an index");
    let mut writer = index.writer(MEMORY).expect("a writer");
    writer.put(&session(1), [message(1, "apples"), message(2, "bananas")]).expect("put");
    writer.commit().expect("committed");
    writer.finish().expect("finished");
    let again = index.reopen().expect("opened again");
    assert_eq!((again.source_count(), again.message_count()), (1, 2));
    assert_eq!((count_hits(&index, "apples"), count_hits(&again, "apples")), (1, 1), "both serve searches");
    drop(index);
    let mut writer = again.writer(MEMORY).expect("a writer of the new one");
    writer.put(&session(2), [message(3, "cherries")]).expect("put");
    writer.commit().expect("committed");
    assert_eq!((again.source_count(), again.message_count()), (2, 3));
    assert_eq!((count_hits(&again, "bananas"), count_hits(&again, "cherries")), (1, 1));
}

/// Returns the number of parts of the index whose files are in a directory.
fn count_parts(dir: &std::path::Path) -> usize {
    let names = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    let parts = names.filter_map(|name| name.to_string_lossy().split_once('.').map(|(part, _)| part.to_owned()));
    parts.filter(|part| part.len() == 32).collect::<std::collections::HashSet<_>>().len()
}

#[test]
fn merges_have_ended_once_the_writer_is_finished() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("index");
    let (index, _) = SearchIndex::open(&dir, IndexOptions::new("english", false)).expect("an index");
    let mut writer = index.writer(MEMORY).expect("a writer");
    // Eight parts of this size are merged.
    for number in 0..8 {
        let texts = (0..200).map(|n| format!("a long text of number{n}, which is the same in each part"));
        let key = |n: usize| u8::try_from(n).expect("few");
        let messages = texts.enumerate().map(|(n, text)| {
            let mut message = message(key(n), &text);
            message.key[1] = number;
            message
        });
        writer.put(&session(number), messages).expect("put");
        writer.commit().expect("committed");
    }
    writer.finish().expect("finished");
    assert!(!dir.join("writing").exists());
    let again = index.reopen().expect("opened again");
    assert_eq!((again.source_count(), again.message_count()), (8, 1600));
    assert!(count_parts(&dir) < 8, "{} parts", count_parts(&dir));
    assert_eq!(count_hits(&again, "number7"), 8);
}
