//! Conversations that were not written for Chorus: each comes in, survives a crash and comes back unchanged, by the
//! count of a reader that shares no code with Chorus.

mod claude_code;
mod exported;
mod openai;
mod reading;
mod window_limit;
