//! Imports Chorus's own session files of schema 1 and 2, and the messages of a session as JSONL.
//!
//! Reads a session file twice, first the header fields and then the messages: the fields may be after the messages, and
//! messages of schema 1 take their time from them.

mod header;
mod jsonl;
mod message;

use std::io::{BufRead, Seek};

use super::error::ImportError;
use super::json_splitter::{ScanError, Scanner};
use super::line_reader::LINE_TOO_LONG;
use super::raw_object::RawObject;
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use header::HeaderParser;
pub(super) use jsonl::is_message;

/// Imports one session.
pub(super) fn import(source: &mut (impl BufRead + Seek), writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let lined = jsonl::is_message_file(source)?;
    source.rewind()?;
    if lined {
        return jsonl::import(source, writer);
    }
    let mut header = HeaderParser::default();
    // An error here occurs again in the second pass, which reports it.
    if let Err(error) = read_header(&mut Scanner::new(&mut *source), &mut header, writer) {
        error.into_line_and_reason()?;
    }
    let half = source.stream_position()? / 2;
    source.rewind()?;
    let mut entries = 0;
    let end = Scanner::new(&mut *source).for_each_field(|scanner, key| {
        if key != "messages" || scanner.peek()? != Some(b'[') {
            return scanner.read_value(None).map(drop);
        }
        scanner.for_each_entry(|entry| {
            entries = entry.number;
            writer.sink.report_progress(half + entry.position / 2);
            let time = header.default_message_time().unwrap_or(writer.now);
            let read = entry.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned());
            match read.and_then(|bytes| message::parse(bytes, time, writer.new_id)) {
                Ok((message, json)) => writer.write_serialized(&message, json.as_bytes()),
                Err(reason) => {
                    writer.skip(entry.number, reason);
                    Ok(())
                }
            }
        })
    });
    let broken = end.err().map(ScanError::into_line_and_reason).transpose()?;
    if writer.message_count() == 0 {
        source.rewind()?;
        let first_line = broken.is_some() || jsonl::is_first_line_too_long(source)?;
        source.rewind()?;
        // Only the first of many lines may be broken or too long.
        if first_line && jsonl::has_any_message(source)? {
            source.rewind()?;
            return jsonl::import(source, writer);
        }
        if let Some((line, reason)) = broken {
            return Err(ImportError::Malformed { line, reason });
        }
    } else if let Some((_, reason)) = broken {
        writer.skip(entries + 1, reason);
    }
    writer.end_session(header.into_metadata())?;
    Ok(())
}

/// Parses the metadata of a header that is a JSON object of its own.
pub(super) fn parse_header_metadata(json: &[u8]) -> Option<ImportedMetadata> {
    let fields = RawObject::from_bytes(json).ok()?;
    let mut header = HeaderParser::default();
    for (key, value) in fields.iter() {
        header.set_field(key, value.get().as_bytes());
    }
    Some(header.into_metadata())
}

/// Returns the name of the agent from a header that is a JSON object of its own.
pub(super) fn parse_agent_name(json: &str) -> Option<String> {
    RawObject::from_bytes(json.as_bytes()).ok()?.get_text("agent_name").map(std::borrow::Cow::into_owned)
}

fn read_header<R: BufRead>(
    scanner: &mut Scanner<R>,
    header: &mut HeaderParser,
    writer: &mut SessionWriter<'_>,
) -> Result<(), ScanError> {
    let mut value = Vec::new();
    scanner.for_each_field(|scanner, key| {
        if !HeaderParser::is_known_field(key) {
            scanner.read_value(None)?;
        } else if scanner.read_value(Some(&mut value))? {
            header.set_field(key, &value);
        }
        writer.sink.report_progress(scanner.position() / 2);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::import::ImportFormat::Chorus;
    use chorus_proto::{Role, SummarySource, Trigger};

    use super::super::test_support::{import_as, now};
    use super::*;

    const ID: &str = "7d444840-9dc0-41d1-b245-5ffdce74fad2";

    fn schema_2(messages: &str) -> String {
        format!(
            "{{\n\"schema\": 2,\n\"id\": \"{ID}\",\n\"session_id\": \"2026-01-02_a-talk\",\n\"description\": \"A talk\",\n\
             \"summary\": \"They talked.\",\n\"summary_source\": \"llm\",\n\"saved_at\": \"2026-01-02T03:04:05Z\",\n\
             \"trigger\": \"idle_timeout\",\n\"model\": \"a/b\",\n\"message_count\": 99,\n\"tags\": [\"x\"],\n\
             \"parent_id\": null,\n\"messages\": [\n{messages}\n]\n}}\n"
        )
    }

    #[test]
    fn a_message_of_schema_2_keeps_its_bytes() {
        let line = r#"{"role":"user","id":"m1","content":"caf\u00e9","timestamp":"2026-01-02T03:00:00Z","extra":1.50}"#;
        let found = import_as(Chorus, schema_2(line)).unwrap();
        let session = &found.sessions[0];
        assert_eq!(session.json, [line]);
        assert_eq!(session.messages[0].content, "café");
        let about = &session.about;
        assert_eq!(about.id.unwrap().to_string(), ID);
        assert_eq!(about.session_id.as_deref(), Some("2026-01-02_a-talk"));
        assert_eq!(about.summary_source, Some(SummarySource::Llm));
        assert_eq!(about.trigger, Some(Trigger::IdleTimeout));
        assert_eq!(about.tags, ["x"]);
        assert_eq!(about.saved_at.unwrap().to_string(), "2026-01-02T03:04:05Z");
    }

    #[test]
    fn a_message_over_several_lines_comes_on_one() {
        let found = import_as(
            Chorus,
            schema_2(
                "{\n \"id\": \"m\",\n \"role\": \"user\", \"content\": \"a b\",\n \"timestamp\": \"2026-01-02T03:00:00Z\"\n}",
            ),
        );
        assert_eq!(
            found.unwrap().sessions[0].json,
            [r#"{"id":"m","role":"user","content":"a b","timestamp":"2026-01-02T03:00:00Z"}"#]
        );
    }

    #[test]
    fn schema_1_gets_ids_and_times_even_from_behind_the_messages() {
        let file = format!(
            r#"{{"messages": [{{"role":"user","content":"hi","mood":1.10}},
                {{"role":"assistant","content":null,"tool_calls":[{{"id":"c","function":{{"name":"ls","arguments":"{{\"a\":1.0}}"}}}}]}},
                {{"role":"tool","tool_call_id":"c","content":"out"}}],
               "session_id": "{ID}", "timestamp": "2025-05-05T05:05:05Z", "schema": 1}}"#
        );
        let found = import_as(Chorus, &file).unwrap();
        let session = &found.sessions[0];
        assert_eq!(session.about.id.unwrap().to_string(), ID);
        assert_eq!(session.about.session_id, None);
        assert_eq!(
            session.json[0],
            r#"{"id":"new-1","timestamp":"2025-05-05T05:05:05Z","role":"user","content":"hi","mood":1.10}"#
        );
        let roles: Vec<_> = session.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::ToolResult]);
        assert_eq!(session.messages[1].tool_calls[0].params.get(), r#"{"a":1.0}"#);
        assert_eq!(session.messages[1].timestamp.to_string(), "2025-05-05T05:05:05Z");
        assert_eq!(session.messages[2].tool_call_id.as_deref(), Some("c"));
    }

    #[test]
    fn a_broken_first_line_does_not_lose_the_others() {
        let whole = r#"{"id":"m","role":"user","content":"here","timestamp":"2026-01-02T03:00:00Z"}"#;
        for broken in [r#"{"id":"l","role":"user","content":"cut"#, r#"{"id":"l""#, "{oops}", "oops"] {
            let found = import_as(Chorus, format!("{broken}\n{whole}\n{whole}\n")).unwrap();
            assert_eq!(found.sessions[0].role_texts(), ["user: here", "user: here"], "{broken}");
            assert_eq!(found.skipped.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1], "{broken}");
        }
    }

    #[test]
    fn an_id_that_is_none_and_a_name_that_is_a_path_are_not_taken() {
        let file =
            r#"{"schema":2,"id":"7","session_id":"../../etc/passwd","messages":[{"role":"user","content":"x"}]}"#;
        let found = import_as(Chorus, file).unwrap();
        assert_eq!((found.sessions[0].about.id, &found.sessions[0].about.session_id), (None, &None));
        assert_eq!(found.sessions[0].messages[0].timestamp, now());
    }

    #[test]
    fn what_is_no_message_is_skipped_and_a_cut_file_gives_what_it_has() {
        let file = r#"{"schema":2,"messages":[42,{"role":"user","content":"x"},{"role":"king","content":"x"},{"role":"#;
        let found = import_as(Chorus, file).unwrap();
        assert_eq!(found.sessions[0].messages.len(), 1);
        let lines: Vec<_> = found.skipped.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 4]);
        assert!(found.skipped[1].1.contains("king"), "{:?}", found.skipped);
        let cut = import_as(Chorus, r#"{"schema":2,"messages":["#).unwrap_err();
        assert!(matches!(cut, ImportError::Malformed { line: 1, .. }), "{cut:?}");
    }
}
