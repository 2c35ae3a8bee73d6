//! `session import`: transcripts of other programs become sessions.

mod chorus;
mod chunks;
mod claude_code;
mod codex;
mod openai;
mod samples;
mod together;
mod whole;
