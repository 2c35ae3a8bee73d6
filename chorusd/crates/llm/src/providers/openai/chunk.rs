//! Types of a stream chunk and of a complete reply.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A chunk of a stream, or a complete reply, which has `message` instead of `delta`.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk {
    #[serde(default)]
    pub choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub usage: Option<UsageCounts>,
    #[serde(default)]
    pub error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub index: u64,
    #[serde(default, alias = "message")]
    pub delta: Option<Delta>,
    #[serde(default)]
    pub finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub content: Option<Text>,
    #[serde(default)]
    pub refusal: Option<String>,
    /// llama.cpp, vLLM, DeepSeek.
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// OpenRouter, Ollama.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// OpenRouter: must be sent back unchanged.
    #[serde(default)]
    pub reasoning_details: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCallDelta>>,
}

/// A text; some servers send a list of parts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
    Plain(String),
    Parts(Vec<TextPart>),
}

#[derive(Debug, Deserialize)]
pub(super) struct TextPart {
    #[serde(default)]
    text: String,
}

impl Text {
    pub(super) fn into_string(self) -> String {
        match self {
            Self::Plain(text) => text,
            Self::Parts(parts) => parts.into_iter().map(|part| part.text).collect(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCallDelta {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Function {
    #[serde(default)]
    pub name: Option<String>,
    /// JSON in a string; some servers send an object.
    #[serde(default)]
    pub arguments: Option<Box<RawValue>>,
}

impl Function {
    /// The arguments as text.
    pub(super) fn arguments(&self) -> String {
        let Some(raw) = &self.arguments else { return String::new() };
        match serde_json::from_str::<Option<String>>(raw.get()) {
            Ok(text) => text.unwrap_or_default(),
            Err(_) => raw.get().to_owned(),
        }
    }
}

#[derive(Debug, Default, Clone, Deserialize)]
pub(super) struct UsageCounts {
    #[serde(default)]
    pub prompt_tokens: Option<u64>,
    #[serde(default)]
    pub completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
    /// DeepSeek.
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
    /// OpenRouter: cost of the call in US dollars.
    #[serde(default)]
    pub cost: Option<f64>,
}

#[derive(Debug, Default, Clone, Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl UsageCounts {
    /// Prompt tokens that were read from the cache.
    pub(super) fn cached(&self) -> Option<u64> {
        self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens).or(self.prompt_cache_hit_tokens)
    }
}
