//! What a model is asked.

use std::sync::Arc;

use chorus_proto::Message;
use serde_json::Value;

/// One call, whoever the provider is.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Legal already: a user message first, each call followed by its results.
    pub messages: Vec<Message>,
    /// The system prompt in pieces.
    pub system: Vec<String>,
    /// How many of the pieces, from the first, do not change from call to call: the provider may keep them.
    pub stable: usize,
    /// The messages, too, are those that later calls begin with.
    pub goes_on: bool,
    pub tools: Vec<Arc<ToolSpec>>,
    /// It is to answer without calling any. They are shown all the same: some providers refuse calls of unknown tools in what was said.
    pub no_calls: bool,
    /// The form that the answer is to have; `None`: as the model likes.
    pub shape: Option<&'static Shape>,
    /// The longest answer, in tokens.
    pub max_tokens: u32,
}

/// The form of an answer, for providers that can hold a model to one.
#[derive(Debug)]
pub struct Shape {
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
