//! Detects the format of a file from its first lines.

use std::io::{self, BufRead, Seek};

use chorus_proto::methods::import::ImportFormat;

use super::error::{FORMATS_HINT, ImportError, UTF16_HINT, ZIP_HINT};
use super::json_splitter::Scanner;
use super::line_reader::LineReader;
use super::object_keys::detect_object;
use super::raw_object::RawObject;
use super::{
    aider, chatgpt, chorus, claude_ai, cline, codex, copilot, cursor, gemini, gemini_apps, goose, hermes, librechat,
    open_webui, openai, pi, vscode_chat,
};
use crate::markdown::message_heading::Heading;
use crate::markdown::{SESSION_COMMENT, SUMMARY_START, Section, parse_comment};

/// Largest number of entries, lines with an object, or lines of Markdown that are examined.
const MAX_PROBED: usize = 50;

/// Detects the format of a transcript. The position of `source` afterwards is unspecified.
///
/// # Errors
/// The format is unknown, the source is empty, or it cannot be read.
pub fn detect(source: &mut (impl BufRead + Seek)) -> Result<ImportFormat, ImportError> {
    source.rewind()?;
    if matches!(source.fill_buf()?, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Err(ImportError::Unrecognised { hint: UTF16_HINT });
    }
    if source.fill_buf()?.starts_with(b"PK\x03\x04") {
        return Err(ImportError::Unrecognised { hint: ZIP_HINT });
    }
    match Scanner::new(&mut *source).peek()? {
        None => return Err(ImportError::NoMessages),
        Some(b'[') => {
            // A transcript of lines may begin with a broken line, and a list of messages contains an object.
            source.rewind()?;
            if let Some(format) = detect_list(source)? {
                return Ok(format);
            }
        }
        Some(b'{') => {
            source.rewind()?;
            if let Some(format) = detect_object(source)? {
                return Ok(format);
            }
        }
        Some(_) => {
            source.rewind()?;
            if aider::is_history(source)? {
                return Ok(ImportFormat::Aider);
            }
            source.rewind()?;
            if is_markdown(source)? {
                return Ok(ImportFormat::Markdown);
            }
        }
    }
    source.rewind()?;
    if let Some(format) = detect_lines(source)? {
        return Ok(format);
    }
    // A Markdown text may begin with a bracket, too: `[ ] to do`.
    source.rewind()?;
    if is_markdown(source)? {
        Ok(ImportFormat::Markdown)
    } else {
        Err(ImportError::Unrecognised { hint: FORMATS_HINT })
    }
}

/// Detects the format of a JSON list by its first entries that are objects. An empty list counts as a list of no
/// messages.
fn detect_list(source: &mut impl BufRead) -> Result<Option<ImportFormat>, ImportError> {
    let mut scanner = Scanner::new(source);
    let (mut seen, mut found) = (0, None);
    let walked = scanner.for_each_entry(|entry| {
        seen += 1;
        let fields = entry.bytes.and_then(|bytes| RawObject::from_bytes(bytes).ok());
        found = fields.and_then(|fields| conversation_format(&fields));
        // Stop once the format is known: the rest may be most of the file.
        if found.is_some() || seen == MAX_PROBED { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    });
    if seen == 0 && walked.is_ok() && scanner.peek()?.is_none() {
        return Ok(Some(ImportFormat::Openai));
    }
    Ok(found)
}

/// Returns the format of which an entry of a list is a conversation, or a message.
fn conversation_format(fields: &RawObject<'_>) -> Option<ImportFormat> {
    let told = [
        (librechat::is_conversation(fields), ImportFormat::Librechat),
        (openai::is_entry(fields), ImportFormat::Openai),
        (chatgpt::is_conversation(fields), ImportFormat::Chatgpt),
        (claude_ai::is_conversation(fields), ImportFormat::ClaudeAi),
        (open_webui::is_conversation(fields), ImportFormat::OpenWebui),
        (cline::is_ui_message(fields), ImportFormat::Cline),
        (gemini_apps::is_record(fields), ImportFormat::GeminiApps),
    ];
    told.into_iter().find(|(is_one, _)| *is_one).map(|(_, format)| format)
}

/// Returns whether the first lines contain the heading of a message, the comment with which an export begins, or a
/// summary.
fn is_markdown(source: &mut impl BufRead) -> io::Result<bool> {
    let mut lines = LineReader::new(source);
    for _ in 0..MAX_PROBED {
        let Some(line) = lines.next()? else { break };
        let text = line.bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        let headed = Heading::parse(text).is_some() || Section::parse(text).is_some();
        if headed || parse_comment(SESSION_COMMENT, text).is_some() || text.trim_end() == SUMMARY_START {
            return Ok(true);
        }
    }
    Ok(false)
}

fn detect_lines(source: &mut impl BufRead) -> Result<Option<ImportFormat>, ImportError> {
    let mut lines = LineReader::new(source);
    let mut seen = 0;
    while seen < MAX_PROBED {
        let Some(line) = lines.next()? else { break };
        let Some(bytes) = line.bytes else { continue };
        let Ok(fields) = RawObject::from_bytes(bytes) else { continue };
        seen += 1;
        let coding_tool = [
            (gemini::is_start(&fields), ImportFormat::Gemini),
            (copilot::is_event(&fields), ImportFormat::Copilot),
            (pi::is_start(&fields), ImportFormat::Pi),
            (hermes::is_session(&fields), ImportFormat::Hermes),
            (cursor::is_message(&fields), ImportFormat::Cursor),
            (vscode_chat::is_change(&fields), ImportFormat::VscodeChat),
        ];
        if let Some((_, format)) = coding_tool.into_iter().find(|(found, _)| *found) {
            return Ok(Some(format));
        }
        if fields.has("type") && ["uuid", "sessionId", "leafUuid", "parentUuid"].iter().any(|key| fields.has(key)) {
            return Ok(Some(ImportFormat::ClaudeCode));
        }
        if codex::is_rollout_line(&fields) {
            return Ok(Some(ImportFormat::Codex));
        }
        if chatgpt::is_conversation(&fields) {
            return Ok(Some(ImportFormat::Chatgpt));
        }
        if claude_ai::is_conversation(&fields) {
            return Ok(Some(ImportFormat::ClaudeAi));
        }
        if goose::is_session(&fields) {
            return Ok(Some(ImportFormat::Goose));
        }
        if chorus::is_message(bytes, &fields) {
            return Ok(Some(ImportFormat::Chorus));
        }
        if openai::is_entry(&fields) {
            return Ok(Some(ImportFormat::Openai));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(text: &str) -> Option<ImportFormat> {
        detect(&mut io::Cursor::new(text)).ok()
    }

    #[test]
    fn each_format_is_known_by_its_start() {
        use ImportFormat::{
            Aider, Amp, Chatgpt, Chorus, ClaudeAi, ClaudeCode, Cline, Codex, Copilot, Cursor, Gemini, Goose, Librechat,
            Markdown, OpenWebui, Openai, Opencode, Pi,
        };
        for (text, format) in [
            (" \n[{\"role\":\"user\"}]", Openai),
            ("\u{feff}{\"messages\":[]}", Openai),
            ("{\n\"model\": \"x\",\n\"messages\": [\n]}", Openai),
            ("{\"messages\":[]}\n{\"messages\":[]}", Openai),
            ("{\"role\":\"user\",\"content\":\"x\"}\n", Openai),
            ("{\"messages\":[],\"session_id\":\"x\"}", Chorus),
            ("{\"schema\":2,\"messages\":[", Chorus),
            ("{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"y\"}", ClaudeCode),
            ("oops\n42\n{\"silly\":1}\n{\"type\":\"user\",\"uuid\":\"x\"}", ClaudeCode),
            ("{\"timestamp\":\"x\",\"type\":\"session_meta\",\"payload\":{}}", Codex),
            ("oops\n{\"type\":\"function_call_output\",\"call_id\":\"c\"}", Codex),
            ("{\"id\":\"x\",\"timestamp\":\"x\",\"instructions\":null,\"git\":null}", Codex),
            ("<!-- chorus session {} -->\n", Markdown),
            ("# A plan\n\n## User\n\nHello", Markdown),
            ("**Session ID:** s\n\n## Query 1 (10:00:00)\n**You:** Hello", Markdown),
            ("[ ] to do\n[a](b)\n\n## User\n\nHello", Markdown),
            ("[] to do\n\n## User\n\nHello", Markdown),
            ("{a}\n\n## Query 1 (10:00:00)\nHello", Markdown),
            ("Notes\n<!-- SESSION_SUMMARY_START -->\n", Markdown),
            ("[{\"title\":\"x\",\"mapping\":{}}]", Chatgpt),
            ("{\"mapping\":{\"a\":{}},\"title\":\"x\"}", Chatgpt),
            ("{\"working_dir\":\"/w\",\"description\":\"x\"}\n{\"role\":\"user\",\"created\":1,\"content\":[]}", Goose),
            ("{\"id\":\"x\",\"role\":\"user\",\"created\":1,\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}", Goose),
            ("{\n\"working_dir\":\"/w\",\"conversation\":[]}", Goose),
            ("{\"id\":\"x\",\"role\":\"user\",\"content\":\"x\",\"timestamp\":\"2026-01-01T00:00:00Z\"}", Chorus),
            (
                "{\"id\":\"x\",\"role\":\"user\",\"content\":\"x\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"mood\":1}",
                Chorus,
            ),
            (
                "{\"id\":\"x\",\"role\":\"user\",\"content\":\"x\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"function_call\":null}",
                Openai,
            ),
            ("[1, {\"role\":\"user\"}]", Openai),
            (
                "{\"type\":\"session_start\",\"id\":\"x\"}\n{\"type\":\"message\",\"id\":\"y\",\"message\":{\"role\":\"user\",\"content\":[]}}",
                Openai,
            ),
            ("[1]\n{\"type\":\"user\",\"sessionId\":\"x\"}", ClaudeCode),
            ("{\"sessionId\":\"x\",\"projectHash\":\"y\"}\n{\"id\":\"1\",\"type\":\"user\"}", Gemini),
            ("{\n\"sessionId\":\"x\",\n\"projectHash\":\"y\",\"messages\":[]}", Gemini),
            ("{\n\"info\":{\"id\":\"ses_1\"},\"messages\":[]}", Opencode),
            ("[{\"uuid\":\"x\",\"name\":\"\",\"chat_messages\":[]}]", ClaudeAi),
            ("{\"uuid\":\"x\",\"chat_messages\":[]}", ClaudeAi),
            ("[{\"ts\":1,\"type\":\"say\",\"say\":\"text\",\"text\":\"hi\"}]", Cline),
            ("{\"messages\":[],\"conversationId\":\"x\"}", Librechat),
            ("{\"id\":\"x\",\"chat\":{},\"created_at\":1}", OpenWebui),
            ("{\"v\":1,\"id\":\"T-x\",\"created\":1,\"messages\":[]}", Amp),
            ("\n# aider chat started at 2026-01-01 09:00:00\n\n## User\n", Aider),
            ("{\"type\":\"session.start\",\"data\":{},\"id\":\"x\",\"parentId\":null}", Copilot),
            ("{\"role\":\"user\",\"message\":{\"content\":[]}}\n", Cursor),
            ("{\"role\":\"user\",\"id\":\"x\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n", Openai),
            ("{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"cwd\":\"/w\"}", Pi),
        ] {
            assert_eq!(guess(text), Some(format), "{text}");
        }
    }

    #[test]
    fn the_unknown_is_refused_with_the_formats_named() {
        for text in ["Dear diary", "# Dear diary\n\n## Users", "{\"a\":1}", "{", "12", "[{\"a\":1}]", "[1]"] {
            let error = detect(&mut io::Cursor::new(text)).unwrap_err();
            assert!(error.hint().unwrap().contains("claude-code"), "{text}: {error}");
        }
        assert!(matches!(detect(&mut io::Cursor::new(" \n")), Err(ImportError::NoMessages)));
        let wide = detect(&mut io::Cursor::new(b"\xff\xfe{\0")).unwrap_err();
        assert!(wide.hint().unwrap().contains("UTF-16"));
        let packed = detect(&mut io::Cursor::new(b"PK\x03\x04x")).unwrap_err();
        assert!(packed.hint().unwrap().contains("conversations.json"));
    }
}
