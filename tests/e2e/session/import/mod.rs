//! `session import`: transcripts of other programs become sessions.

mod again;
mod chat_exports;
mod chorus;
mod chunked;
mod claude_code;
mod codex;
mod coding_tools;
mod command;
mod concurrent;
mod conversation_info;
mod databases;
mod listing;
mod lost;
mod openai;
mod opencode_files;
mod samples;
mod task_files;
