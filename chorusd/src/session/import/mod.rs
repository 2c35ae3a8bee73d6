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
mod entry;
mod error;
mod fields;
mod goose;
mod lines;
mod markdown;
mod openai;
#[cfg(test)]
mod real_data;
mod scan;
mod sink;
#[cfg(test)]
mod testing;
mod values;
mod writer;

pub use entry::import;
pub use error::ImportError;
pub use sink::{About, Sink};
