//! Secrets, found and replaced: the daemon's own keys by their bytes, those of others by their shape. Pure: what is read, kept
//! and told is decided elsewhere.
//!
//! A secret becomes `[redacted:<kind>:<fingerprint>]`. The fingerprint tells two secrets apart and finds the same one again; it
//! is made with a key of the home's own, so that nobody who reads it can try guesses.

mod alphabet;
mod block;
mod bytes;
mod credentials;
mod ends;
mod find;
mod flow;
mod headers;
mod json;
mod known;
mod list;
mod look;
#[cfg(test)]
mod matrix;
mod redactor;
mod reply;
mod shapes;
mod special;
#[cfg(test)]
mod tests;
mod view;

pub use ends::{Behind, Ends};
pub use flow::Flow;
pub use redactor::{FingerprintKey, Redactor};
pub use reply::kept_calls;
