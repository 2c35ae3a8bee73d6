//! Messages as the API of Anthropic has them: texts, calls, results, files and thinking are blocks of one content. Claude Code
//! keeps them so, and so do Cline, Cursor and others in lists of messages.

pub(super) mod content;
pub(super) mod message_builder;
