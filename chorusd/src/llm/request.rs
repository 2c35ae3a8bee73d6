//! What a model is asked.

use std::sync::Arc;

use chorus_proto::Message;
use serde_json::Value;

use super::providers::images::{describe_images, is_image};

/// One call, whoever the provider is.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// Legal already: a user message first, each call followed by its results.
    pub messages: Vec<Message>,
    /// The system prompt in pieces.
    pub system: Vec<String>,
    /// How many of the pieces, from the first, do not change from call to call: the provider may keep them.
    pub stable_system_pieces: usize,
    /// The messages, too, are those that later calls begin with.
    pub cache_messages: bool,
    pub tools: Vec<Arc<ToolSpec>>,
    /// It is to answer without calling any. They are shown all the same: some providers refuse calls of unknown tools in what was said.
    pub forbid_tool_calls: bool,
    /// The form that the answer is to have; `None`: as the model likes.
    pub output_format: Option<&'static OutputFormat>,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
}

impl ModelRequest {
    /// Returns true where a message has an image.
    #[must_use]
    pub fn has_images(&self) -> bool {
        self.messages.iter().flat_map(|message| &message.attachments).any(is_image)
    }

    /// The same with words in the place of its images; `None`: it has none.
    #[must_use]
    pub fn without_images(&self) -> Option<Self> {
        let mut request = self.clone();
        let images: usize = request.messages.iter_mut().map(describe_images).sum();
        (images > 0).then_some(request)
    }
}

/// The form of an answer, for providers that can hold a model to one.
#[derive(Debug)]
pub struct OutputFormat {
    /// Letters and underscores.
    pub name: &'static str,
    pub description: &'static str,
    /// JSON Schema of an object whose properties are all required, with no others.
    pub schema: fn() -> Value,
}

/// A tool as the model is shown it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}
