//! The request of a model call, independent of the provider.

use std::sync::Arc;

use chorus_proto::Message;
use serde_json::Value;

use super::providers::images::{describe_images, is_image};

/// A request.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// Already in a valid order: begins with a user message, and each tool call is followed by its result.
    pub messages: Vec<Message>,
    /// The system prompt in pieces.
    pub system: Vec<String>,
    /// How many of the first pieces are the same in every call, so that the provider may cache them.
    pub stable_system_pieces: usize,
    /// Whether later calls will begin with these messages, so that the provider may cache them.
    pub cache_messages: bool,
    pub tools: Vec<Arc<ToolSpec>>,
    /// Whether the model must reply without tool calls. The tools are sent all the same, because some providers refuse
    /// a history with calls of unknown tools.
    pub forbid_tool_calls: bool,
    /// Format of the reply; `None` for free text.
    pub output_format: Option<&'static OutputFormat>,
    /// Limit of the reply in tokens.
    pub max_tokens: u32,
}

impl ModelRequest {
    /// Returns whether a message has an image.
    #[must_use]
    pub(crate) fn has_images(&self) -> bool {
        self.messages.iter().flat_map(|message| &message.attachments).any(is_image)
    }

    /// Returns the request with its images replaced by text; `None` if it has none.
    #[must_use]
    pub(crate) fn without_images(&self) -> Option<Self> {
        let mut request = self.clone();
        let images: usize = request.messages.iter_mut().map(describe_images).sum();
        (images > 0).then_some(request)
    }
}

/// Format of a reply, for providers with structured output.
#[derive(Debug)]
pub struct OutputFormat {
    /// Letters and underscores only.
    pub name: &'static str,
    pub description: &'static str,
    /// JSON Schema of an object whose properties are all required and that has no others.
    pub schema: fn() -> Value,
}

/// A tool as shown to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of an object.
    pub parameters: Value,
}
