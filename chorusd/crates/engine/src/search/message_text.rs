//! The texts of a message that are indexed.

use std::borrow::Cow;

use chorus_proto::{Role, SourceKind};
use chorus_search::MessageText;
use chorus_session::stored_message::StoredMessage;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Parameters of tool calls that say in a few words what was done: commands, and what they were about. The contents of files
/// are none of them.
const SHORT_PARAMS: [&str; 11] =
    ["command", "cmd", "script", "path", "file_path", "filename", "pattern", "query", "url", "args", "argument"];

/// Longest parameter other than a command that is indexed, in bytes.
const MAX_PARAM_BYTES: usize = 512;

/// The tool whose words are those of a question, which are no answer to the same question.
const SEARCH_TOOL: &str = "search_sessions";

#[derive(Deserialize)]
struct Probe<'a> {
    role: Role,
    #[serde(borrow)]
    content: Cow<'a, str>,
    timestamp: Timestamp,
    #[serde(default)]
    tool_calls: Vec<CallProbe>,
    #[serde(borrow, default)]
    author: Option<AuthorProbe<'a>>,
    #[serde(default)]
    source: Option<SourceProbe>,
    /// The tool whose result it is.
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct CallProbe {
    name: String,
    params: Value,
}

#[derive(Deserialize)]
struct AuthorProbe<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct SourceProbe {
    kind: SourceKind,
    #[serde(default)]
    format: Option<String>,
}

/// Returns the key of a message: the same for the same bytes, wherever they are.
#[must_use]
pub(super) fn key(message: &StoredMessage) -> [u8; 16] {
    let hash = Sha256::digest(message.json());
    let mut key = [0; 16];
    key.copy_from_slice(&hash[..16]);
    key
}

/// Extracts what is indexed of a message of the agent called `agent`. Results of tools have no text unless
/// `tool_results`; a message that cannot be read has none either, but keeps its place.
#[must_use]
pub(super) fn extract(message: &StoredMessage, agent: &str, tool_results: bool) -> MessageText {
    let empty = |role| MessageText {
        key: key(message),
        role,
        at: Timestamp::UNIX_EPOCH,
        speaker: String::new(),
        text: String::new(),
        commands: Vec::new(),
        tools: Vec::new(),
        origins: Vec::new(),
    };
    let Ok(probe) = serde_json::from_slice::<Probe<'_>>(message.json()) else { return empty(message.role()) };
    let speaker = match (&probe.author, probe.role) {
        (Some(author), _) => author.name.clone().into_owned(),
        (None, Role::Assistant) => agent.to_owned(),
        (None, _) => String::new(),
    };
    let mut tools: Vec<String> = probe.tool_calls.iter().map(|call| call.name.clone()).collect();
    tools.extend(probe.name.map(Cow::into_owned));
    let is_hidden = probe.role == Role::ToolResult && !tool_results;
    MessageText {
        at: probe.timestamp,
        speaker,
        text: if is_hidden { String::new() } else { probe.content.into_owned() },
        commands: probe
            .tool_calls
            .iter()
            .filter(|call| call.name != SEARCH_TOOL)
            .flat_map(|call| short_params(&call.params))
            .collect(),
        tools,
        origins: probe.source.map(origins).unwrap_or_default(),
        ..empty(probe.role)
    }
}

fn origins(source: SourceProbe) -> Vec<String> {
    let kind = match source.kind {
        SourceKind::Cli => "cli",
        SourceKind::Discord => "discord",
        SourceKind::Import => "import",
        SourceKind::Agent => "agent",
    };
    std::iter::once(kind.to_owned()).chain(source.format).collect()
}

/// Returns the parameters of a call that are indexed, commands first.
fn short_params(params: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let words: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            (!words.is_empty()).then(|| words.join(" "))
        }
        _ => None,
    };
    let is_command = |name: &str| matches!(name, "command" | "cmd" | "script");
    SHORT_PARAMS
        .iter()
        .filter_map(|name| Some((*name, text(params.get(name)?)?)))
        .filter(|(name, text)| is_command(name) || text.len() <= MAX_PARAM_BYTES)
        .map(|(_, text)| text)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(message: Value) -> StoredMessage {
        StoredMessage::parse(serde_json::to_vec(&message).unwrap().into()).unwrap()
    }

    #[test]
    fn commands_and_paths_of_calls_are_found_and_contents_are_not() {
        let message = stored(json!({"id": "1", "role": "assistant", "content": "I convert it.",
            "timestamp": "2026-02-12T10:00:00Z", "source": {"kind": "import", "format": "claude-code"},
            "tool_calls": [
                {"id": "a", "name": "Bash", "params": {"command": "ffmpeg -i in.mov out.mp4", "description": "convert"}},
                {"id": "b", "name": "shell", "params": {"cmd": ["git", "log", "-1"]}},
                {"id": "c", "name": "create_file", "params": {"path": "src/main.rs", "content": "fn main() {}"}},
                {"id": "d", "name": "search_sessions", "params": {"query": "the ffmpeg line"}}]}));
        let text = extract(&message, "api", false);
        assert_eq!(text.commands, ["ffmpeg -i in.mov out.mp4", "git log -1", "src/main.rs"]);
        assert_eq!(text.tools, ["Bash", "shell", "create_file", "search_sessions"]);
        assert_eq!((&*text.speaker, &*text.text), ("api", "I convert it."));
        assert_eq!(text.origins, ["import", "claude-code"]);
    }

    #[test]
    fn results_of_tools_are_texts_only_if_asked_for() {
        let message = stored(json!({"id": "1", "role": "tool_result", "content": "12 files", "tool_call_id": "a",
            "name": "bash", "timestamp": "2026-02-12T10:00:00Z"}));
        assert_eq!(extract(&message, "api", false).text, "");
        let text = extract(&message, "api", true);
        assert_eq!((&*text.text, &text.tools[..]), ("12 files", &["bash".to_owned()][..]));
    }

    #[test]
    fn the_same_bytes_have_the_same_key() {
        let one = json!({"id": "1", "role": "user", "content": "hello", "timestamp": "2026-02-12T10:00:00Z"});
        let other = json!({"id": "2", "role": "user", "content": "hello", "timestamp": "2026-02-12T10:00:00Z"});
        assert_eq!(key(&stored(one.clone())), key(&stored(one.clone())));
        assert_ne!(key(&stored(one)), key(&stored(other)));
    }
}
