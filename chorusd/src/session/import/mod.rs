//! Foreign transcripts become messages: one module per format, each streaming its source into a [`Sink`].
//!
//! Nothing here holds a whole transcript. A list is split entry by entry, a file of lines is read line by line, and
//! Claude Code's tree is first indexed and then read again in its order.

mod anthropic;
mod chatgpt;
mod chorus;
mod claude_code;
mod codex;
mod detect;
mod error;
mod format_dispatch;
mod goose;
mod json_splitter;
mod json_values;
mod lines;
mod markdown;
mod openai;
mod raw_object;
#[cfg(test)]
mod real_data;
mod sink;
#[cfg(test)]
mod test_support;
mod writer;

pub use error::ImportError;
pub use format_dispatch::import;
pub use sink::{ImportSink, ImportedMetadata};
