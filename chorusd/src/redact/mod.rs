//! Secrets, found and replaced: the daemon's own keys by their bytes, those of others by their shape. Pure: what is read, kept
//! and told is decided elsewhere.
//!
//! A secret becomes `[redacted:<kind>:<fingerprint>]`. The fingerprint tells two secrets apart and finds the same one again; it
//! is made with a key of the home's own, so that nobody who reads it can try guesses.

mod alphabet;
mod credentials;
mod custom_matchers;
mod head_tail;
mod headers;
mod json;
mod key_block;
mod matchers;
#[cfg(test)]
mod matrix;
mod own_secrets;
mod pattern_list;
mod patterns;
mod redactor;
mod scanner;
mod stream;
#[cfg(test)]
mod tests;
mod tool_calls;
mod view;
mod view_text;

pub use head_tail::{HeadTail, OutputTail};
pub use redactor::{FingerprintKey, Redactor};
pub use stream::StreamRedactor;
pub use tool_calls::redact_tool_calls;
