//! Tests of the index: reading through it gives the same as parsing the file as a whole.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;

use super::{MAX_BYTES_PER_ENTRY, MAX_MESSAGES_PER_ENTRY, SessionIndex, SessionReader, build};
use crate::gzip::GzipWriter;
use crate::{FormatError, SessionFile, SessionInput, file};

/// Formats a session file in the native layout with one message for each text.
fn session(texts: impl IntoIterator<Item = String>) -> String {
    let line = |(n, text): (usize, String)| {
        let content = serde_json::to_string(&text).unwrap();
        format!("    {{\"id\":\"{n}\",\"role\":\"user\",\"content\":{content},\"timestamp\":\"2026-02-12T09:00:00Z\"}}")
    };
    let lines: Vec<String> = texts.into_iter().enumerate().map(line).collect();
    format!(
        "{{\n  \"schema\": 2,\n  \"session_id\": \"2026-02-12_x\",\n  \"saved_at\": \"2026-02-12T10:00:00Z\",\n  \
         \"message_count\": {},\n  \"messages\": [\n{}{}  ]\n}}\n",
        lines.len(),
        lines.join(",\n"),
        if lines.is_empty() { "" } else { "\n" }
    )
}

fn many() -> String {
    // Every 50th message is long, so that entries are added for both limits.
    session(
        (0..300)
            .map(|n| if n % 50 == 7 { "x".repeat(MAX_BYTES_PER_ENTRY as usize + n) } else { format!("{n} \"é\"\n") }),
    )
}

fn placed(text: &[u8]) -> Arc<SessionInput> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text).unwrap();
    Arc::new(SessionInput::new(file).unwrap())
}

fn opened(text: &str) -> (Arc<SessionInput>, Result<Arc<SessionIndex>, FormatError>) {
    let file = placed(text.as_bytes());
    let index = build(&file).unwrap();
    (file, index.map(Arc::new))
}

/// As [`opened`], for the compressed file.
fn opened_compressed(text: &str) -> (Arc<SessionInput>, Result<Arc<SessionIndex>, FormatError>) {
    let mut packed = GzipWriter::new(Vec::new());
    packed.write_all(text.as_bytes()).unwrap();
    let file = placed(&packed.finish().unwrap());
    let index = build(&file).unwrap();
    (file, index.map(Arc::new))
}

fn from(file: &Arc<SessionInput>, index: &Arc<SessionIndex>, number: u64) -> Vec<Bytes> {
    let mut reader = SessionReader::new(file.clone(), index.clone(), number);
    std::iter::from_fn(|| reader.read().unwrap().unwrap()).map(|message| message.json().clone()).collect()
}

/// Asserts that reading through the index returns the same as parsing the file as a whole.
fn check(text: &str) {
    let SessionFile { header, messages, sha256 } = file::parse(&Bytes::from(text.to_owned())).unwrap();
    let all: Vec<Bytes> = messages.iter().map(|message| message.json().clone()).collect();
    let count = messages.len();
    for (file, index) in [opened(text), opened_compressed(text)] {
        let index = index.unwrap();
        assert_eq!((&index.header, &index.sha256), (&header, &sha256));
        for number in [
            0,
            1,
            MAX_MESSAGES_PER_ENTRY as usize - 1,
            MAX_MESSAGES_PER_ENTRY as usize,
            199,
            count.saturating_sub(1),
            count,
            count + 9,
        ] {
            assert_eq!(from(&file, &index, number as u64), all[number.min(count)..], "from {number}");
        }
    }
}

#[test]
fn every_layout_is_read_as_it_is_read_at_once() {
    check(&many());
    check(&session([]));
    check(&session(["one".into()]));
    let value: serde_json::Value = serde_json::from_str(&many()).unwrap();
    check(&serde_json::to_string_pretty(&value).unwrap());
    check(&value.to_string());
    let old =
        many().replace("\"schema\": 2", "\"schema\": 1").replace("\"id\":\"5\",", "").replace("\"id\":\"150\",", "");
    check(&old.replace(",\"timestamp\":\"2026-02-12T09:00:00Z\"", ""));
    check(&many().replace(",\n    {\"id\":\"9\"", ", {\"id\":\"9\""));
    check(&many().replace("    {\"id\":\"9\"", "      {\"id\":\"9\""));
}

#[test]
fn marks_are_as_few_as_messages_and_bytes_allow() {
    let (_, index) = opened(&session((0..6400).map(|n| n.to_string())));
    let index = index.unwrap();
    assert_eq!(index.offsets.0.len(), 100);
    assert!(index.resident_bytes() < 8 << 10, "{}", index.resident_bytes());
}

#[test]
fn what_is_wrong_is_said_as_by_reading_at_once() {
    let good = many();
    let wrong = [
        String::new(),
        good[..good.len() / 2].to_owned(),
        good[..good.len() - 4].to_owned(),
        good.replace("\"message_count\": 300", "\"message_count\": 299"),
        good.replacen("\"user\"", "\"robot\"", 1),
        good.replace("\"schema\": 2", "\"schema\": 3"),
        good.replace("\n  ]\n", ",\n  ]\n"),
        good.replacen("},\n", "}\n", 1),
        format!("{good}x"),
    ];
    for (n, text) in wrong.iter().enumerate() {
        let said = file::parse(&Bytes::from(text.clone())).unwrap_err();
        assert_eq!(opened(text).1.unwrap_err(), said, "{n}");
        assert_eq!(opened_compressed(text).1.unwrap_err(), said, "{n}");
    }
}

#[test]
fn a_file_that_becomes_another_one_is_no_panic() {
    let (file, index) = opened(&many());
    let index = index.unwrap();
    file.file().set_len(0).unwrap();
    assert!(SessionReader::new(file.clone(), index.clone(), 0).read().is_err());
    let mut writer = file.file();
    std::io::Seek::rewind(&mut writer).unwrap();
    writer.write_all(&vec![b'\n'; 4 << 20]).unwrap();
    assert!(matches!(SessionReader::new(file, index, 250).read(), Ok(Err(FormatError::Json(_)))));
    let (file, index) = opened_compressed(&many());
    file.file().set_len(1000).unwrap();
    assert!(matches!(SessionReader::new(file, index.unwrap(), 250).read(), Ok(Err(FormatError::Compression(_)))));
}
