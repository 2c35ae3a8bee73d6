//! Detects the format of a file that is a single object, by its keys.

use std::io::{self, BufRead};

use chorus_proto::methods::import::ImportFormat;

use super::error::ImportError;
use super::json_splitter::Scanner;
use super::opencode;
use super::raw_object::RawObject;

/// Keys that tell a format. `[` or `{` at the end of a key is how its value must begin.
const KEYS_OF_FORMATS: [(&[&str], ImportFormat); 20] = [
    (&["projectHash"], ImportFormat::Gemini),
    (&["mapping{"], ImportFormat::Chatgpt),
    (&["chat_messages["], ImportFormat::ClaudeAi),
    (&["conversation_turns["], ImportFormat::GeminiApps),
    (&["requests[", "responderUsername"], ImportFormat::VscodeChat),
    (&["requests[", "sessionId"], ImportFormat::VscodeChat),
    (&["cursor{", "bubbles["], ImportFormat::Cursor),
    (&["cline{"], ImportFormat::Cline),
    (&["messages[", "agent", "sessionId"], ImportFormat::Cline),
    (&["conversationId", "messages["], ImportFormat::Librechat),
    (&["conversationId", "messagesTree["], ImportFormat::Librechat),
    (&["chat{", "created_at"], ImportFormat::OpenWebui),
    (&["messages[", "nextMessageId"], ImportFormat::Amp),
    (&["messages[", "v", "created"], ImportFormat::Amp),
    (&["messages[", "schema"], ImportFormat::Chorus),
    (&["messages[", "session_id"], ImportFormat::Chorus),
    (&["messages[", "working_dir"], ImportFormat::Goose),
    (&["conversation[", "working_dir"], ImportFormat::Goose),
    (&["messages[", "source", "started_at"], ImportFormat::Hermes),
    (&["conversation[", "source", "started_at"], ImportFormat::Hermes),
];

/// Detects the format of a single object. The first object of several lines does not count.
pub(super) fn detect_object(source: &mut impl BufRead) -> Result<Option<ImportFormat>, ImportError> {
    let (mut keys, mut found): (Vec<String>, _) = (Vec::new(), None);
    let mut value = Vec::new();
    let walked = Scanner::new(source).for_each_field(|scanner, key| {
        let begin = scanner.peek()?.filter(|first| matches!(first, b'[' | b'{'));
        let with_begin = begin.map(|first| format!("{key}{}", char::from(first)));
        for key in [Some(key.to_owned()), with_begin].into_iter().flatten() {
            let tells = KEYS_OF_FORMATS.iter().any(|(keys_of, _)| keys_of.contains(&key.as_str()));
            if tells && !keys.contains(&key) {
                keys.push(key);
            }
        }
        let is_known = |keys_of: &[&str]| keys_of.iter().all(|key| keys.iter().any(|seen| seen == key));
        found = KEYS_OF_FORMATS.iter().find(|(keys_of, _)| is_known(keys_of)).map(|(_, format)| *format);
        if found.is_none() && key == "info" && begin == Some(b'{') {
            let fits = scanner.read_value(Some(&mut value))?;
            let is_session = fits && RawObject::from_bytes(&value).is_ok_and(|info| opencode::is_session(&info));
            found = is_session.then_some(ImportFormat::Opencode);
            return if is_session { Err(io::Error::from(io::ErrorKind::Interrupted).into()) } else { Ok(()) };
        }
        // Stop once the format is known: the list may be most of the file.
        if found.is_some() {
            Err(io::Error::from(io::ErrorKind::Interrupted).into())
        } else {
            scanner.read_value(None).map(drop)
        }
    });
    if found.is_some() {
        return Ok(found);
    }
    if let Err(error) = walked {
        error.into_line_and_reason()?;
    }
    let has_messages = keys.iter().any(|key| key == "messages[" || key == "conversation[");
    Ok(has_messages.then_some(ImportFormat::Openai))
}
