//! `session import`: transcripts of other programs become sessions.

mod chorus;
mod chunked;
mod claude_code;
mod codex;
mod command;
mod concurrent;
mod openai;
mod samples;
