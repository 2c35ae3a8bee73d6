//! Imports transcripts of other programs. One module for each format parses its source into messages and passes them to
//! an [`ImportSink`].
//!
//! No importer keeps a whole transcript. Lists are split into entries, files of lines are read line by line, and the
//! tree of Claude Code is indexed first and then read again in its order.

mod aider;
mod amp;
mod anthropic_blocks;
mod chat_path;
mod chatgpt;
mod chorus;
mod claude_ai;
mod claude_code;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod detect;
mod error;
mod format_dispatch;
mod gemini;
mod gemini_apps;
mod goose;
mod hermes;
mod html_text;
mod imported_call;
mod json_splitter;
mod json_values;
mod librechat;
mod line_reader;
mod line_seeker;
mod markdown;
mod message_tree;
mod object_keys;
mod object_list;
mod open_webui;
mod openai;
mod opencode;
mod pi;
mod raw_object;
#[cfg(test)]
mod real_transcript_tests;
mod sink;
#[cfg(test)]
mod test_support;
mod turn_entry;
mod vscode_chat;
mod writer;

pub use detect::detect;
pub use error::ImportError;
pub use format_dispatch::import;
pub use imported_call::ImportedCall;
pub use sink::{ImportSink, ImportedMetadata};
