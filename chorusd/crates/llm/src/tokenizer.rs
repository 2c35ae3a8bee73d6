//! Counts tokens with the vocabulary of a model, for the models of which it is published.
//!
//! Only `o200k_base` is built in, which OpenAI's models since GPT-4o use: a vocabulary adds 4 MB to the program. It is
//! loaded when it is first needed, takes about 45 MB of memory, and is released when nobody counts for a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_base::sync::Mutex;
use chorus_proto::{Message, Role};
use serde_json::Value;
use tiktoken_rs::CoreBPE;

use crate::providers::images::is_image;
use crate::request::ToolSpec;

/// Beginnings of the names of the models that use `o200k_base`.
const O200K_MODELS: [&str; 9] = ["gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "chatgpt-4o", "o1", "o3", "o4"];

/// Longest text that is counted at once. The expressions that split a text would fail on longer runs of one character.
const MAX_CHUNK_BYTES: usize = 32 << 10;

/// Tokens of a message besides its text: its delimiters and its role.
const MESSAGE_TOKENS: u64 = 4;
/// Tokens with which the reply begins.
const REPLY_TOKENS: u64 = 3;
/// Tokens of a tool call besides its name and parameters.
const CALL_TOKENS: u64 = 8;
/// Tokens of a function, of its list of properties, of each property and of each value of an enumeration; the first
/// value is cheaper.
const FUNCTION_TOKENS: u64 = 7 + 12;
const PROPERTIES_TOKENS: u64 = 3;
const PROPERTY_TOKENS: u64 = 3;
const ENUM_VALUE_TOKENS: u64 = 3;

/// A loaded vocabulary.
pub struct Tokenizer(CoreBPE);

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tokenizer")
    }
}

/// Returns whether the vocabulary of a model is known. A router puts the vendor before the name: `openai/gpt-5`.
#[must_use]
pub fn has_tokenizer(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let named = |known: &str| {
        name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '.', '@']))
    };
    O200K_MODELS.into_iter().any(named)
}

impl Tokenizer {
    /// Loads the vocabulary, which takes a tenth of a second: blocks. `None` if the data is damaged.
    fn load() -> Option<Self> {
        tiktoken_rs::o200k_base().map(Self).inspect_err(|e| tracing::error!("cannot load a tokenizer: {e}")).ok()
    }

    /// Returns the tokens of a text.
    #[must_use]
    pub fn count(&self, text: &str) -> u64 {
        let (mut rest, mut tokens) = (text, 0);
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(chunk_end(rest));
            tokens += self.0.count_ordinary(chunk) as u64;
            rest = behind;
        }
        tokens
    }

    /// Returns the tokens of a message as OpenAI's chat format has it; `None` if it has an image or another file, whose
    /// tokens only the provider knows.
    #[must_use]
    pub fn count_message(&self, message: &Message) -> Option<u64> {
        if message.attachments.iter().any(|file| is_image(file) || file.data.is_some()) {
            return None;
        }
        let calls = message.tool_calls.iter();
        let calls: u64 = calls.map(|call| CALL_TOKENS + self.count(&call.name) + self.count(call.params.get())).sum();
        let result = if message.role == Role::ToolResult { 1 } else { 0 };
        Some(MESSAGE_TOKENS + result + self.count(&message.content) + calls)
    }

    /// Returns the tokens of everything that precedes the messages, and of the beginning of the reply. The pieces of
    /// the system prompt are one message.
    #[must_use]
    pub fn count_head(&self, system: &[String], tools: &[Arc<ToolSpec>]) -> u64 {
        let prompt = if system.is_empty() { 0 } else { MESSAGE_TOKENS + self.count(&system.join("\n\n")) };
        prompt + tools.iter().map(|tool| self.count_tool(tool)).sum::<u64>() + REPLY_TOKENS
    }

    fn count_tool(&self, tool: &ToolSpec) -> u64 {
        let line = format!("{}:{}", tool.name, tool.description.trim_end_matches('.'));
        FUNCTION_TOKENS + self.count(&line) + self.count_properties(&tool.parameters)
    }

    fn count_properties(&self, schema: &Value) -> u64 {
        let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) else {
            return 0;
        };
        let mut tokens = PROPERTIES_TOKENS;
        for (name, property) in properties {
            let text = |key: &str| property[key].as_str().unwrap_or_default();
            let line = format!("{name}:{}:{}", text("type"), text("description").trim_end_matches('.'));
            let values = property["enum"].as_array().map_or(&[][..], Vec::as_slice);
            let value = |value: &Value| ENUM_VALUE_TOKENS + self.count(value.as_str().unwrap_or_default());
            let values = values.iter().map(value).sum::<u64>().saturating_sub(ENUM_VALUE_TOKENS);
            let nested = self.count_properties(property) + self.count_properties(&property["items"]);
            tokens += PROPERTY_TOKENS + self.count(&line) + values + nested;
        }
        tokens
    }
}

/// Returns where the first chunk of a text ends: at its end or, if it is too long, behind the last line whose successor
/// begins with a letter. No token of the vocabulary goes across that place, so the sum is exact.
fn chunk_end(text: &str) -> usize {
    if text.len() <= MAX_CHUNK_BYTES {
        return text.len();
    }
    let end = (0..=MAX_CHUNK_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(MAX_CHUNK_BYTES);
    let bytes = text.as_bytes();
    let after_line = |at: &usize| bytes[at - 1] == b'\n' && bytes[*at].is_ascii_alphabetic();
    (end / 2..end).rev().find(after_line).unwrap_or(end)
}

/// The tokenizer, loaded on demand.
#[derive(Debug, Default)]
pub struct TokenizerCache(Mutex<Option<CachedTokenizer>>);

#[derive(Debug)]
struct CachedTokenizer {
    tokenizer: Arc<Tokenizer>,
    last_used: Instant,
}

impl TokenizerCache {
    /// Returns the tokenizer if it is loaded.
    #[must_use]
    pub fn loaded(&self) -> Option<Arc<Tokenizer>> {
        let mut cached = self.0.lock();
        let cached = cached.as_mut()?;
        cached.last_used = Instant::now();
        Some(cached.tokenizer.clone())
    }

    /// Returns the tokenizer, and whether this call loaded it. Blocks.
    #[must_use]
    pub fn load(&self) -> Option<(Arc<Tokenizer>, bool)> {
        if let Some(tokenizer) = self.loaded() {
            return Some((tokenizer, false));
        }
        // Two at once may load it twice, which is better than a lock that is held for so long.
        let tokenizer = Arc::new(Tokenizer::load()?);
        let mut cached = self.0.lock();
        let is_first = cached.is_none();
        let cached = cached.get_or_insert(CachedTokenizer { tokenizer, last_used: Instant::now() });
        Some((cached.tokenizer.clone(), is_first))
    }

    /// Releases the tokenizer if nobody used it for this long. Returns whether none is loaded now.
    pub fn release_unused(&self, idle: Duration) -> bool {
        let mut cached = self.0.lock();
        if cached.as_ref().is_some_and(|cached| cached.last_used.elapsed() >= idle) {
            *cached = None;
        }
        cached.is_none()
    }
}

#[cfg(test)]
mod tests {
    use chorus_proto::NewMessage;
    use serde_json::json;

    use super::*;

    #[test]
    fn models_are_known_by_their_names() {
        for known in ["gpt-4o", "gpt-4o-mini-2024-07-18", "gpt-5", "gpt-5.1", "openai/gpt-5-mini", "o3", "o4-mini"] {
            assert!(has_tokenizer(known), "{known}");
        }
        for unknown in ["gpt-4", "gpt-4-turbo", "claude-sonnet-4-5", "o", "o1x", "llama-3", "large", ""] {
            assert!(!has_tokenizer(unknown), "{unknown}");
        }
    }

    #[test]
    fn texts_of_any_length_are_counted_as_the_vocabulary_has_them() {
        let cache = TokenizerCache::default();
        assert!(cache.loaded().is_none());
        let (tokenizer, is_new) = cache.load().unwrap();
        assert!(is_new && !cache.load().unwrap().1);
        let counts =
            ["", "Hello, world!", "发票必须在三十天内付清。", "fn main() {}\n"].map(|text| tokenizer.count(text));
        assert_eq!(counts, [0, 4, 11, 4]);
        let line = "The invoice is in integer cents; pay it within 30 days.\n";
        assert_eq!(tokenizer.count(&line.repeat(5000)), 5000 * tokenizer.count(line), "cut between lines");
        for odd in [" ", "\n", "a", "漢", "-", "🎉"] {
            assert!(tokenizer.count(&odd.repeat(300_000)) > 1000, "{odd:?}");
        }
        assert!(!cache.release_unused(Duration::from_secs(60)) && cache.release_unused(Duration::ZERO));
        assert!(cache.loaded().is_none());
    }

    #[test]
    fn a_chat_has_the_tokens_that_its_vendor_documents() {
        let (tokenizer, _) = TokenizerCache::default().load().unwrap();
        // The example of OpenAI's cookbook, for gpt-4o.
        let tool = ToolSpec {
            name: "get_current_weather".into(),
            description: "Get the current weather in a given location".into(),
            parameters: json!({"type": "object", "properties": {
                "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
                "unit": {"type": "string", "description": "The unit of temperature to return", "enum": ["celsius", "fahrenheit"]},
            }, "required": ["location"]}),
        };
        let system = "You are a helpful assistant that can answer to questions about the weather.".to_owned();
        let asked = NewMessage::text(Role::User, "What's the weather like in San Francisco?")
            .complete(|| "m".into(), jiff::Timestamp::UNIX_EPOCH);
        let tokens = tokenizer.count_head(&[system], &[Arc::new(tool)]) + tokenizer.count_message(&asked).unwrap();
        assert_eq!(tokens, 101);
    }
}
