//! Messages in the form of Anthropic's API, where texts, tool calls, results, files and thinking are blocks of one
//! content. Claude Code stores them in this form, and so do Cline, Cursor and others in lists of messages.

pub(super) mod content;
pub(super) mod message_builder;
