//! Properties that hold for any bytes: the bodies of the fuzz targets in fuzz/, and a mutator for random bytes.

use std::io::{self, Cursor};

use bytes::{Bytes, BytesMut};
use chorus_config::ProviderKind;
use chorus_llm::providers::read_events;
use chorus_llm::sse::SseParser;
use chorus_permissions::{Action, Profile, ProfileSpec};
use chorus_proto::frame_codec::FrameCodec;
use chorus_proto::methods::import::ImportFormat;
use chorus_proto::methods::{agent, context, daemon, import, session};
use chorus_proto::{Message, Method, frame};
use chorus_session::file;
use chorus_session::import::{ImportSink, ImportedMetadata, import};
use chorusd::server::parse_request;
use jiff::Timestamp;
use tokio_util::codec::Decoder as _;

use crate::export_checks;
use crate::rng::Rng;

/// Longest frame in [`frames`]: small, so that inputs on both sides of the limit occur.
const MAX_FRAME_BYTES: usize = 1 << 16;

/// Frames decode the same however the bytes arrive, and an announced length reserves no memory.
pub fn frames(data: &[u8]) {
    let decode = |step: usize| {
        let (mut codec, mut incoming, mut found) = (FrameCodec::new(MAX_FRAME_BYTES), BytesMut::new(), Vec::new());
        for piece in data.chunks(step.max(1)) {
            incoming.extend_from_slice(piece);
            loop {
                match codec.decode(&mut incoming) {
                    Ok(Some(body)) => found.push(body.to_vec()),
                    Ok(None) => break,
                    Err(_) => return (found, true),
                }
            }
            assert!(
                incoming.capacity() <= 4 * data.len() + 2 * MAX_FRAME_BYTES,
                "{} bytes reserved",
                incoming.capacity()
            );
        }
        (found, false)
    };
    let whole = decode(data.len());
    assert_eq!(whole, decode(1), "byte by byte");
    assert_eq!(whole, decode(7), "in pieces");
    let (mut reader, mut body, mut found) = (Cursor::new(data), Vec::new(), Vec::new());
    let failed = loop {
        match frame::read(&mut reader, &mut body, MAX_FRAME_BYTES) {
            Ok(true) => found.push(body.clone()),
            Ok(false) => break false,
            Err(e) => break e.kind() == io::ErrorKind::InvalidData,
        }
    };
    assert_eq!(whole, (found, failed), "the blocking reader");
}

/// A request is accepted or refused with a JSON-RPC code, and so are its parameters for any method.
pub fn requests(data: &[u8]) {
    let request = match parse_request(data) {
        Ok(request) => request,
        Err(error) => {
            assert!([-32700, -32600, -32000].contains(&error.code), "{error:?}");
            return;
        }
    };
    let params = request.params.map_or("{}", |params| params.get());
    fn read<M: Method>(params: &str) {
        if let Ok(params) = serde_json::from_str::<M::Params>(params) {
            let written = serde_json::to_string(&params).expect("what was read can be written");
            serde_json::from_str::<M::Params>(&written).expect("and be read again");
        }
    }
    read::<daemon::Hello>(params);
    read::<daemon::Status>(params);
    read::<agent::Init>(params);
    read::<agent::Destroy>(params);
    read::<agent::Config>(params);
    read::<context::Append>(params);
    read::<context::Show>(params);
    read::<context::Save>(params);
    read::<context::History>(params);
    read::<context::Restore>(params);
    read::<session::Get>(params);
    read::<import::Begin>(params);
    read::<import::Add>(params);
}

/// A session file is refused with a reason, or parses; then it can be written and parsed again as the same session.
pub fn session_file(data: &[u8]) {
    let read = match file::parse(&Bytes::copy_from_slice(data)) {
        Ok(read) => read,
        Err(reason) => {
            assert!(!reason.to_string().is_empty());
            return;
        }
    };
    assert_eq!(read.header.message_count, read.messages.len() as u64);
    let mut out = Vec::new();
    file::write_header(&mut out, &read.header).expect("memory takes it");
    for (index, message) in read.messages.iter().enumerate() {
        assert!(!message.json().contains(&b'\n'), "a message on several lines");
        file::write_message(&mut out, message.json(), index == 0).expect("memory takes it");
    }
    file::write_end(&mut out).expect("memory takes it");
    let again = file::parse(&Bytes::from(out)).expect("what was written can be read");
    assert_eq!(again.sha256, read.sha256);
    let value = |header| serde_json::to_value(header).expect("serialises");
    assert_eq!(value(&again.header), value(&read.header));
}

/// A shell command gets a verdict, which is never milder than the verdict on one of its parts.
pub fn shell_command(data: &[u8]) {
    let Ok(command) = std::str::from_utf8(data) else { return };
    let pattern = |text: &str| vec![text.to_owned()];
    let spec = ProfileSpec { deny: pattern("tool:bash:rm( .*)?"), allow: pattern("tool:.*"), ..ProfileSpec::default() };
    let profile = Profile::new(spec).expect("a profile");
    let verdict = profile.judge(&Action::Bash { command }.to_string());
    assert!(verdict.parts.iter().all(|part| verdict.decision <= part.decision), "{verdict:?}");
}

/// Checks that an import calls its sink in the right order.
#[derive(Debug, Default)]
struct StrictSink {
    open: bool,
    messages: usize,
}

impl ImportSink for StrictSink {
    fn begin_session(&mut self) -> io::Result<()> {
        assert!(!std::mem::replace(&mut self.open, true), "a session begins inside another");
        Ok(())
    }

    fn add_message(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        assert!(self.open, "a message of no session");
        assert!(!json.contains(&b'\n'), "a message on several lines");
        let again: Message = serde_json::from_slice(json).expect("the serialised form is a message");
        assert_eq!((&again.id, &again.content), (&message.id, &message.content));
        self.messages += 1;
        Ok(())
    }

    fn end_session(&mut self, _about: ImportedMetadata) -> io::Result<()> {
        assert!(std::mem::take(&mut self.open), "an end without a beginning");
        Ok(())
    }

    fn report_skipped(&mut self, _line: u64, reason: String) {
        assert!(!reason.is_empty());
    }
}

/// A transcript is imported as complete sessions of complete messages, or refused, in every format.
pub fn transcript(data: &[u8]) {
    for format in [
        ImportFormat::Auto,
        ImportFormat::Chorus,
        ImportFormat::ClaudeCode,
        ImportFormat::Openai,
        ImportFormat::Codex,
        ImportFormat::Markdown,
        ImportFormat::Chatgpt,
        ImportFormat::Goose,
        ImportFormat::Gemini,
        ImportFormat::Opencode,
        ImportFormat::Copilot,
        ImportFormat::Pi,
        ImportFormat::Hermes,
        ImportFormat::ClaudeAi,
        ImportFormat::Cursor,
        ImportFormat::VscodeChat,
        ImportFormat::GeminiApps,
        ImportFormat::Cline,
        ImportFormat::Aider,
        ImportFormat::Amp,
        ImportFormat::OpenWebui,
        ImportFormat::Librechat,
    ] {
        let (mut sink, mut count) = (StrictSink::default(), 0_u32);
        let mut new_id = || {
            count += 1;
            count.to_string()
        };
        let taken = import(&mut Cursor::new(data), format, Timestamp::UNIX_EPOCH, &mut new_id, &mut sink);
        if taken.is_ok() {
            assert!(!sink.open && sink.messages > 0, "{format:?}: taken, and not whole");
        }
    }
}

/// Longest event in [`event_stream`]: small, so that inputs on both sides of the limit occur.
const MAX_EVENT_BYTES: usize = 1 << 10;

/// Events are the same however the bytes arrive, none is longer than the limit, and both wire formats accept them or
/// refuse them with a reason.
pub fn event_stream(data: &[u8]) {
    let cut = |step: usize| {
        let (mut cutter, mut found) = (SseParser::new(MAX_EVENT_BYTES), Vec::new());
        for piece in data.chunks(step.max(1)) {
            cutter.push(piece);
            loop {
                match cutter.next_event() {
                    Ok(Some(event)) => found.push(event),
                    Ok(None) => break,
                    Err(_) => return (found, true),
                }
            }
        }
        found.extend(cutter.finish());
        (found, false)
    };
    let whole = cut(data.len());
    // If an event is too long, how much is dropped with it depends on the pieces.
    let (bytewise, pieces) = (cut(1), cut(7));
    if !(whole.1 || bytewise.1 || pieces.1) {
        assert_eq!(whole, bytewise, "byte by byte");
        assert_eq!(whole, pieces, "in pieces");
    }
    // Replacing invalid UTF-8 makes the text longer.
    assert!(whole.0.iter().all(|event| event.data.len() <= 4 * MAX_EVENT_BYTES));
    for kind in [ProviderKind::Anthropic, ProviderKind::Openai] {
        match read_events(kind, &whole.0) {
            Ok(reply) => assert!(reply.tool_calls.iter().all(|call| !call.params.get().contains('\n'))),
            Err(error) => assert!(!error.message.is_empty()),
        }
    }
}

/// Tokens of JSON, so that mutated inputs get further than the first brace.
const JSON_TOKENS: [&[u8]; 17] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b"\n",
    b"\x0c",
    b"null",
    b"-1",
    b"1e999",
    b"\\ud800",
    b"\xff",
    b"\0\0\0\x05",
    b"\xff\xff\xff\xff",
    b"18446744073709551616",
];

/// Mutates `seed` in one to four places. `seed` must not be empty.
pub fn mutate(seed: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(6) {
            0 => bytes[at] = rng.next_u64() as u8,
            1 if bytes.len() > 1 => _ = bytes.remove(at),
            2 if rng.below(4) == 0 => bytes.truncate(at + 1),
            3 => {
                _ = bytes
                    .splice(at..at, JSON_TOKENS[rng.below(JSON_TOKENS.len() as u64) as usize].iter().copied())
                    .count()
            }
            4 => {
                let end = (at + rng.below(40) as usize).min(bytes.len());
                if end - at < bytes.len() {
                    bytes.drain(at..end);
                }
            }
            _ => {
                let end = (at + rng.below(40) as usize).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = rng.below(bytes.len() as u64) as usize;
                _ = bytes.splice(to..to, piece).count();
            }
        }
    }
    bytes
}

/// A session of any texts survives the Markdown round trip, and its HTML page contains only text.
pub fn exported(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let texts: Vec<&str> = text.split("\n\n").collect();
    let whole = [&*text, &*text, &*text, &*text];
    export_checks::check_exports(&export_checks::build_session(&whole));
    export_checks::check_exports(&export_checks::build_session(&texts));
}
