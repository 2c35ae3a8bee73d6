//! Which format a file is in, from its first lines.

use std::io::{self, BufRead, Seek};

use chorus_proto::methods::import::ImportFormat;

use super::codex;
use super::error::{FORMATS, ImportError, UTF16};
use super::fields::Fields;
use super::lines::Lines;
use super::scan::Scanner;
use crate::session::markdown::{Heading, SESSION, commented};

/// How many lines that hold an object are looked at.
const LOOK_AT: usize = 50;

/// Looks at the file. Where it stands afterwards is left open.
pub(super) fn detect(source: &mut (impl BufRead + Seek)) -> Result<ImportFormat, ImportError> {
    source.rewind()?;
    if matches!(source.fill_buf()?, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Err(ImportError::Unrecognised { hint: UTF16 });
    }
    match Scanner::new(&mut *source).peek()? {
        None => return Err(ImportError::NoMessages),
        Some(b'[') => {
            // A transcript of lines may begin with a broken one; a list of messages has an object inside.
            source.rewind()?;
            if let Some(format) = list(source)? {
                return Ok(format);
            }
        }
        Some(b'{') => {
            source.rewind()?;
            if let Some(format) = object(source)? {
                return Ok(format);
            }
        }
        Some(b'#' | b'<') => {
            source.rewind()?;
            if markdown(source)? {
                return Ok(ImportFormat::Markdown);
            }
        }
        Some(_) => {}
    }
    source.rewind()?;
    lines(source)?.ok_or(ImportError::Unrecognised { hint: FORMATS })
}

/// A JSON list is OpenAI's, if its first entry is an object or it has none.
fn list(source: &mut impl BufRead) -> io::Result<Option<ImportFormat>> {
    let mut scanner = Scanner::new(source);
    scanner.step()?;
    Ok(matches!(scanner.peek()?, Some(b'{' | b']') | None).then_some(ImportFormat::Openai))
}

/// One object over the whole file tells by its keys; the first object of many lines does not count as one.
fn object(source: &mut impl BufRead) -> io::Result<Option<ImportFormat>> {
    let (mut ours, mut messages) = (false, false);
    let mut scanner = Scanner::new(source);
    let walked = scanner.fields(|scanner, key| {
        ours |= matches!(key, "schema" | "session_id");
        if key == "messages" && scanner.peek()? == Some(b'[') {
            messages = true;
        }
        // The list may be most of the file; walking over it is only needed while the question is open.
        if ours && messages {
            Err(io::Error::from(io::ErrorKind::Interrupted).into())
        } else {
            scanner.value(None).map(drop)
        }
    });
    if ours && messages {
        return Ok(Some(ImportFormat::Chorus));
    }
    if let Err(error) = walked {
        error.place()?;
    }
    Ok(messages.then_some(ImportFormat::Openai))
}

/// Text with the heading of a message in it, or with the comment that an export begins with.
fn markdown(source: &mut impl BufRead) -> io::Result<bool> {
    let mut lines = Lines::new(source);
    for _ in 0..LOOK_AT {
        let Some(line) = lines.next()? else { break };
        let text = line.bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        if commented(SESSION, text).is_some() || Heading::parse(text).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn lines(source: &mut impl BufRead) -> io::Result<Option<ImportFormat>> {
    let mut lines = Lines::new(source);
    let mut seen = 0;
    while seen < LOOK_AT {
        let Some(line) = lines.next()? else { break };
        let Some(fields) = line.bytes.and_then(|bytes| Fields::read(bytes).ok()) else { continue };
        seen += 1;
        if fields.has("type") && ["uuid", "sessionId", "leafUuid", "parentUuid"].iter().any(|key| fields.has(key)) {
            return Ok(Some(ImportFormat::ClaudeCode));
        }
        if codex::is_line(&fields) {
            return Ok(Some(ImportFormat::Codex));
        }
        if fields.has("role") || fields.has("messages") {
            return Ok(Some(ImportFormat::Openai));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn guess(text: &str) -> Option<ImportFormat> {
        detect(&mut Cursor::new(text)).ok()
    }

    #[test]
    fn each_format_is_known_by_its_start() {
        use ImportFormat::{Chorus, ClaudeCode, Codex, Markdown, Openai};
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
            ("[1]\n{\"type\":\"user\",\"sessionId\":\"x\"}", ClaudeCode),
        ] {
            assert_eq!(guess(text), Some(format), "{text}");
        }
    }

    #[test]
    fn the_unknown_is_refused_with_the_formats_named() {
        for text in ["Dear diary", "# Dear diary\n\n## Users", "{\"a\":1}", "{", "12"] {
            let error = detect(&mut Cursor::new(text)).unwrap_err();
            assert!(error.hint().unwrap().contains("claude-code"), "{text}: {error}");
        }
        assert!(matches!(detect(&mut Cursor::new(" \n")), Err(ImportError::NoMessages)));
        let wide = detect(&mut Cursor::new(b"\xff\xfe{\0")).unwrap_err();
        assert!(wide.hint().unwrap().contains("UTF-16"));
    }
}
