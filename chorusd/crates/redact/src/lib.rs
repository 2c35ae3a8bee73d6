//! Finds and replaces secrets: the daemon's own keys by their bytes, those of others by patterns. Pure: other modules
//! decide which text is redacted, stored or shown.
//!
//! A secret becomes `[redacted:<kind>:<fingerprint>]`. The fingerprint distinguishes two secrets and identifies the
//! same one again. It is keyed with a random key of the home, so that nobody who reads it can test guesses.
//!
//! A stream is cleaned piece by piece; what may be the beginning of a secret is held back until the rest decides.
//! `examples/clean_stream.rs` cleans standard input so:
//!
//! ```
//! use std::sync::Arc;
//!
//! use chorus_redact::Redactor;
//!
//! let redactor = Arc::new(Redactor::new(|| [0; 32]));
//! let mut stream = redactor.stream();
//! let mut shown = stream.push("the key is ghp_16C7e42F292c6912".into());
//! shown += &stream.push("E7710c838347Ae178B4a, keep it".into());
//! shown += &stream.finish(false);
//! assert!(shown.starts_with("the key is [redacted:"), "{shown}");
//! assert!(!shown.contains("16C7e42F"));
//! ```

#![warn(unreachable_pub)]

mod alphabet;
mod credentials;
mod head_tail;
mod headers;
mod json;
mod key_block;
mod matcher_input;
#[cfg(test)]
mod matrix;
mod normalized_text;
mod own_key_encodings;
mod pattern_matcher;
mod pattern_types;
mod patterns;
mod prefix_search;
mod redactor;
mod scanner;
mod stream;
#[cfg(test)]
mod tests;
mod token_matchers;
mod tool_calls;

pub use head_tail::{HeadTail, OutputTail};
pub use redactor::{FingerprintKey, Redactor, SecretMention};
pub use stream::StreamRedactor;
pub use tool_calls::redact_tool_calls;
